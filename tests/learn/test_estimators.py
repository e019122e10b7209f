import pickle
import re
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import auxhash
from auxhash import EndToEndHash, MACHash, TwoStepHash
from auxhash.codes import pack
from auxhash.compute import bars
from auxhash.learn import baselines, estimators
from auxhash.learn.baselines import ITQ
from auxhash.learn.smooth import Refine
from auxhash.mac import affinity, loop, losses
from auxhash.search import metrics
from tests import oracle
from tests.conftest import SOAK

N = 600 if SOAK else 240


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:N], y[:N], X[600:800], y[600:800]


BRIEF = Refine(n_steps=20)
SMALL = {"n_bits": 8, "n_similar": 10, "n_dissimilar": 20, "refine": BRIEF, "random_state": 0}


@pytest.mark.parametrize("Method", [MACHash, TwoStepHash])
def test_check_estimator(Method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(Method(n_bits=2, refine=BRIEF), on_skip=None)


def test_codes_and_outputs(digits):
    X, y, queries, labels = digits
    hasher = MACHash(**SMALL).fit(X, y)
    Z = hasher.transform(queries)
    assert Z.dtype == np.int8
    assert Z.shape == (200, 8)
    np.testing.assert_array_equal(Z, np.where(hasher.decision_function(queries) >= 0, 1, -1))
    np.testing.assert_array_equal(hasher.encode(queries), pack(Z))
    np.testing.assert_array_equal(hasher.encode(X), hasher.codes_)
    assert hasher.loss_ == losses.total(hasher.transform(X), hasher.affinity_, "ksh")
    assert hasher.loss_ == min(step.loss for step in hasher.history_)
    assert hasher.score(queries, labels, k=50) == metrics.precision_at_k(
        Z, hasher.transform(X), labels, y, 50
    )
    assert list(hasher.get_feature_names_out()[:2]) == ["machash0", "machash1"]


def test_two_step_is_the_first_step_of_mac_bit_for_bit(digits, monkeypatch):
    X, y, queries, _ = digits
    for validation in (None, 0.2):
        settings = {**SMALL, "validation": validation, "z_step": "cut"}
        settings["max_iter"] = 50 if SOAK else 8
        two, full = TwoStepHash(**settings).fit(X, y), MACHash(**settings).fit(X, y)
        assert len(two.history_) == 1
        assert two.history_[0].loss == full.history_[0].loss
        assert two.history_[0].free_loss == full.history_[0].free_loss
        assert full.loss_ <= two.loss_
        np.testing.assert_array_equal(
            full.two_step_.decision(full.two_step_.features(queries)),
            two.decision_function(queries),
        )
        # Told to return its first step, after all the others, MACHash gives the same outputs.
        with monkeypatch.context() as patch:
            patch.setattr(loop, "lowest", lambda steps: min(steps, key=lambda s: s[0].iteration))
            first = MACHash(**settings).fit(X, y)
        assert len(first.history_) == len(full.history_)
        np.testing.assert_array_equal(
            two.decision_function(queries), first.decision_function(queries)
        )


@pytest.mark.parametrize("hash_function", ["linear", "rbf"])
@pytest.mark.parametrize("z_step", ["cut", "quad", "descent"])
def test_same_seed_same_codes_at_1_2_and_4_threads(digits, hash_function, z_step):
    n = N if SOAK else 200
    X, y, queries = digits[0][:n], digits[1][:n], digits[2]
    settings = {**SMALL, "hash_function": hash_function, "z_step": z_step, "max_iter": 4}
    fitted = [MACHash(**settings, n_jobs=n).fit(X, y) for n in (1, 2, 4)]
    for other in fitted[1:]:
        np.testing.assert_array_equal(
            fitted[0].decision_function(queries), other.decision_function(queries)
        )
    again = MACHash(**{**settings, "random_state": 1}).fit(X, y)
    assert (again.transform(queries) != fitted[0].transform(queries)).any()


@pytest.mark.parametrize("b", [1, 7, 8, 9, 63, 64, 65, 128, 256])
def test_any_number_of_bits(digits, b):
    X, y, queries, _ = digits
    hasher = MACHash(**{**SMALL, "n_bits": b, "max_iter": 3}).fit(X[:200], y[:200])
    assert hasher.encode(queries).shape == (200, -(-b // 8))
    assert hasher.loss_ <= hasher.history_[0].loss


@pytest.mark.parametrize(
    "classifier",
    [
        LinearSVC(C=1.0),
        SVC(kernel="rbf"),
        GradientBoostingClassifier(n_estimators=20, max_depth=2),
        LogisticRegression(max_iter=500),
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_classifier_as_hash_function(digits, classifier):
    X, y, queries, labels = digits
    settings = {**SMALL, "n_bits": 6, "hash_function": classifier, "max_iter": 4, "refine": "auto"}
    hasher = MACHash(**settings).fit(X[:250], y[:250])
    assert hasher.loss_ <= TwoStepHash(**settings).fit(X[:250], y[:250]).loss_
    assert hasher.score(queries, labels, k=20) > 0.3
    assert hasher.transform(queries).shape == (200, 6)


def test_own_loss_and_own_solver(digits):
    X, y, _, _ = digits

    def greedy(bit, z, rng):
        return np.where(bit.field(z) + bit.c > 0, -1, 1)

    settings = {**SMALL, "loss": oracle.similar_or_not, "z_step": greedy}
    hasher = MACHash(**settings).fit(X, y)
    assert hasher.loss_ <= hasher.history_[0].loss
    np.testing.assert_allclose(
        hasher.loss_, losses.total(hasher.transform(X), hasher.affinity_, oracle.similar_or_not)
    )


def test_affinities_instead_of_labels(digits):
    X, y, queries, labels = digits
    A = affinity.from_neighbors(X, 10, 30, random_state=0)
    hasher = MACHash(**SMALL).fit(X, affinity=A)
    assert hasher.affinity_ is A
    with pytest.raises(ValueError, match="score needs labels"):
        hasher.score(queries, labels)
    both = MACHash(**SMALL).fit(X, y, affinity=A)
    np.testing.assert_array_equal(both.transform(queries), hasher.transform(queries))
    assert 0 < both.score(queries, labels) < 1
    distances = affinity.from_neighbors(X, 10, 30, values="distance", random_state=0)
    for loss in ("bre", "ksh"):
        fitted = MACHash(**SMALL, loss=loss).fit(X, affinity=distances)
        assert fitted.loss_ <= fitted.history_[0].loss


def test_several_labels(digits):
    X, y, queries, labels = digits
    many = np.column_stack([y % 2 == 0, y < 3, y > 6, y == 5]).astype(int)
    many_labels = np.column_stack([labels % 2 == 0, labels < 3, labels > 6, labels == 5])
    hasher = MACHash(**SMALL).fit(X, many)
    assert hasher.score(queries, many_labels.astype(int)) > 0.6


@pytest.mark.parametrize("how", ["fraction", "given"])
def test_accepted_validation_precision_never_falls(digits, how):
    X, y, queries, labels = digits
    validation = 0.2 if how == "fraction" else (queries, labels)
    hasher = MACHash(**SMALL, validation=validation).fit(X, y)
    scores = [step.score for step in hasher.history_ if step.accepted]
    assert scores == sorted(scores)
    assert hasher.affinity_.n_points == (N * 8 // 10 if how == "fraction" else N)
    if how == "given":
        chosen = [s for s in hasher.history_ if s.accepted and s.loss == hasher.loss_]
        np.testing.assert_allclose(hasher.score(queries, labels, k=100), chosen[0].score)


def test_score_takes_no_more_neighbours_than_a_class_has():
    """Of 100 neighbours where a class has 40, at most 40% could be right."""
    X, y = load_digits(return_X_y=True)
    X, queries, y, labels = X[:400], X[600:800], y[:400], y[600:800]
    hasher = baselines.OneHot(10).fit(X, y)
    typical = int(np.median(np.unique(y, return_counts=True)[1]))
    assert typical < 50
    assert hasher.score(queries, labels) == hasher.score(queries, labels, k=typical)
    assert hasher.score(queries, labels) > 0.7
    many = np.eye(10, dtype=int)[y]
    several = MACHash(**SMALL).fit(X, many)
    assert several.score(queries, np.eye(10, dtype=int)[labels]) == several.score(
        queries, np.eye(10, dtype=int)[labels], k=typical
    )


def test_validation_with_an_affinity_keeps_the_points_apart(digits):
    X, y, _, _ = digits
    A = affinity.from_labels(y, 10, 20, random_state=0)
    hasher = MACHash(**SMALL, validation=0.25).fit(X, y, affinity=A)
    assert hasher.affinity_.n_points == len(hasher.codes_) == N * 3 // 4


def test_given_codes(digits):
    X, y, _, _ = digits
    Z = oracle.codes(np.random.default_rng(0), N, 8)
    hasher = MACHash(**SMALL, init=Z).fit(X, y)
    assert hasher.history_[0].free_loss == losses.total(Z, hasher.affinity_, "ksh")


@pytest.mark.parametrize("h_step", ["monotone", "plain"])
def test_the_lowest_iterate_or_the_last(h_step):
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 5)) + 0.3 * np.eye(3, 5)[y]  # noise, mostly
    few = {**SMALL, "n_bits": 5, "n_similar": 5, "n_dissimilar": 8, "max_iter": 8, "alpha": 2.0}
    few |= {"random_state": 5, "h_step": h_step, "tol": None}
    lowest, last = (MACHash(**few | {"refine": None}, iterate=each) for each in ("lowest", "last"))
    path = [step.loss for step in lowest.fit(X, y).history_]
    assert lowest.loss_ == min(path) < path[-1]
    assert (
        last.fit(X, y).loss_ == path[-1] == losses.total(last.transform(X), last.affinity_, "ksh")
    )
    # Refinement starts there, and is compared with all steps.
    starts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Refine, "steps", lambda self, step, state, *rest: starts.append(state.H) or ()
        )
        for each in ("lowest", "last"):
            assert MACHash(**few, iterate=each).fit(X, y).loss_ == min(path)
    for H, model in zip(starts, (lowest, last), strict=True):
        np.testing.assert_array_equal(pack(H), model.codes_)
    # Going on with the same points, the last iterate is taken even where it is worse than before.
    last.set_params(warm_start=True, max_iter=1, mu=1e-3, C=1e-6)
    assert last.fit(X, y).loss_ == last.history_[-1].loss > path[-1]


def test_warm_start_goes_on_with_new_data(digits):
    X, y, queries, _ = digits
    hasher = MACHash(**SMALL, warm_start=True).fit(X[: N // 2], y[: N // 2])
    before = hasher.transform(queries)
    hasher.fit(X[N // 2 :], y[N // 2 :])
    agree = (hasher.transform(queries) == before).mean()
    cold = MACHash(**SMALL).fit(X[N // 2 :], y[N // 2 :])
    assert agree > 0.1 + (cold.transform(queries) == before).mean()
    # Never worse on the new data than the hash function it started from.
    old = losses.total(
        MACHash(**SMALL).fit(X[: N // 2], y[: N // 2]).transform(X[N // 2 :]),
        hasher.affinity_,
        "ksh",
    )
    assert hasher.loss_ <= old
    # Going on with the same data keeps what was learnt, or betters it.
    loss = hasher.loss_
    assert hasher.fit(X[N // 2 :], y[N // 2 :]).loss_ <= loss
    hasher.n_bits = 9
    with pytest.raises(ValueError, match="goes on from 8 bits"):
        hasher.fit(X, y)


def test_in_scikit_learn_s_company(digits):
    X, y, queries, labels = digits
    copy = clone(MACHash(**SMALL, hash_function=LinearSVC()))
    assert copy.get_params()["hash_function__C"] == 1.0
    pipeline = make_pipeline(StandardScaler(), MACHash(**SMALL)).fit(X, y)
    assert pipeline.transform(queries).shape == (200, 8)
    assert pipeline.score(queries, labels) > 0.3
    search = GridSearchCV(
        MACHash(**{**SMALL, "max_iter": 3}), {"n_bits": [2, 12], "loss": ["ksh", "hinge"]}, cv=2
    )
    search.fit(X, y)
    assert search.best_params_["n_bits"] == 12


def test_progress_is_shown(digits, capsys, monkeypatch):
    monkeypatch.setattr(bars, "LINE_SECONDS", 1e-3)
    X, y, _, _ = digits
    MACHash(**SMALL, verbose=1, validation=0.2).fit(X, y)
    shown = capsys.readouterr().err
    assert "refining" in shown
    assert "precision" in shown
    TwoStepHash(**SMALL, verbose=1).fit(X, y)
    out, shown = capsys.readouterr()
    assert "two-step 1 of 1" in shown
    assert not out


def test_few_points_use_what_there_is_and_warn_once(digits):
    X, y, _, _ = digits
    with pytest.warns(UserWarning, match="n_similar=100") as caught:
        MACHash(n_bits=4, n_dissimilar=20, max_iter=2).fit(X[:60], y[:60])
    assert len(caught) == 1


X = np.random.default_rng(0).normal(size=(30, 4))
y = np.arange(30) % 3


def with_nan(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


@pytest.mark.parametrize(
    ("parameters", "data", "error", "says"),
    [
        ({}, (with_nan(np.nan), y), ValueError, "NaN"),
        ({}, (with_nan(np.inf), y), ValueError, "infinity"),
        ({}, (X, np.zeros(30)), ValueError, "at least two classes"),
        ({}, (X, np.arange(30)), ValueError, "no similar pairs"),
        ({}, (X, y[:20]), ValueError, "inconsistent numbers of samples"),
        ({}, (X, None), ValueError, "requires y to be passed"),
        ({}, (X, np.linspace(0, 1, 30)), ValueError, "y holds continuous numbers"),
        ({}, (X[0], y), ValueError, "2D array"),
        ({}, (csr_array(X), y), TypeError, "Sparse data"),
        ({}, (X, y, "labels"), TypeError, "affinity must be"),
        (
            {},
            (X, None, partial(affinity.from_labels, y[:20], 2, 3)),
            ValueError,
            "affinity is for 20 points",
        ),
        ({"n_bits": 0}, (X, y), ValueError, "n_bits must be a whole number from 1 to 32767"),
        ({"n_bits": 8.5}, (X, y), TypeError, "n_bits"),
        ({"loss": "kshh"}, (X, y), ValueError, "loss must be one of"),
        ({"z_step": "cuts"}, (X, y), ValueError, "z_step must be one of"),
        ({"hash_function": "rbg"}, (X, y), ValueError, "hash_function must be one of"),
        ({"penalty": "cubic"}, (X, y), ValueError, "penalty must be"),
        ({"mu": 0}, (X, y), ValueError, 'mu must be a number above 0 or "auto"'),
        ({"mu": "fast"}, (X, y), TypeError, 'mu must be a number above 0 or "auto"'),
        ({"alpha": 1.0}, (X, y), ValueError, "alpha must be a number above 1"),
        ({"max_iter": 0}, (X, y), ValueError, "max_iter"),
        ({"tol": -0.1}, (X, y), ValueError, 'tol must be a number of at least 0 or "auto"'),
        ({"tol": "none"}, (X, y), TypeError, "tol must be a number"),
        ({"tol": np.nan}, (X, y), ValueError, "tol must be a number"),
        ({"tol": np.array([0.1, 0.2])}, (X, y), TypeError, "tol must be a number"),
        ({"max_sweeps": 0}, (X, y), ValueError, "max_sweeps"),
        ({"h_step": "exact"}, (X, y), ValueError, "h_step must be one of monotone, plain"),
        ({"iterate": "best"}, (X, y), ValueError, "iterate must be one of lowest, last"),
        ({"C": -1}, (X, y), ValueError, "C must be"),
        ({"n_similar": -3}, (X, y), ValueError, "n_similar must be"),
        ({"validation": 1.5}, (X, y), ValueError, "validation must be a fraction"),
        ({"validation": 0.01}, (X, y), ValueError, "would hold out 0"),
        ({"validation": (X,)}, (X, y), ValueError, "pair"),
        ({"validation": (X, y[:3])}, (X, y), ValueError, "one row for each of 30 points, got 3"),
        ({"validation": (X[:, :2], y)}, (X, y), ValueError, "features"),
        (
            {"validation": (X, y)},
            (X, None, partial(affinity.from_labels, y, 2, 3)),
            ValueError,
            "needs y",
        ),
        ({"init": np.ones((3, 4))}, (X, y), ValueError, "init must be of shape"),
        ({"init": np.zeros((30, 4))}, (X, y), ValueError, "init must hold only -1 and"),
        ({"random_state": "seed"}, (X, y), TypeError, "seed"),
        ({"n_jobs": 0}, (X, y), ValueError, "n_jobs"),
    ],
)
def test_bad_input(parameters, data, error, says):
    settings = {"n_bits": 4, "n_similar": 3, "n_dissimilar": 5, **parameters}
    with pytest.raises(error, match=says):
        MACHash(**settings).fit(*(part() if callable(part) else part for part in data))


def test_labels_as_pandas_gives_them():
    pandas = pytest.importorskip("pandas")
    text = np.array(list("abc"))[y]
    quick = {"n_bits": 4, "n_similar": 3, "n_dissimilar": 5, "random_state": 0}
    expected = TwoStepHash(**quick).fit(X, y).codes_
    labelings = [
        pandas.Series(y),
        *(pandas.Series(y, dtype=kind) for kind in ("Int64", "category")),
    ]
    labelings += [pandas.Series(text, dtype=kind) for kind in ("string", "object", "category")]
    labelings += [pandas.Categorical(text), pandas.DataFrame({"y": y}), y.astype(object)]
    for labels in labelings:
        hasher = TwoStepHash(**quick).fit(pandas.DataFrame(X).astype("Float64"), labels)
        np.testing.assert_array_equal(hasher.codes_, expected)
        assert hasher.labels_.dtype.kind in "iU"  # as a model file holds them; no float, no object
        assert hasher.score(X, labels, 5) == metrics.precision_at_k(
            hasher.codes_, hasher.codes_, labels, labels, 5
        )
    for kind in ("string", "category"):
        with pytest.raises(ValueError, match="y must not be missing; row 0 is"):
            TwoStepHash(**quick).fit(X, pandas.Series([None, *text[1:]], dtype=kind))
    with pytest.raises(ValueError, match="y must be numbers or text, got Timestamp"):
        TwoStepHash(**quick).fit(X, pandas.Series(pandas.to_datetime(y, utc=True)))


def test_points_that_are_all_the_same_are_told():
    for method in (TwoStepHash(n_bits=2, n_similar=3, n_dissimilar=5), ITQ(n_bits=2)):
        with pytest.warns(UserWarning, match="all 30 points of X are the same"):
            method.fit(np.ones((30, 4)), y)


@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        (1e6, np.float64),
        (-1e6, np.float32),
        (10**6, np.int64),
        (1e90, np.float64),
        (1e30, np.float32),
    ],
)
def test_a_row_that_outweighs_all_others_is_told(digits, size, dtype):
    X, y = digits[0][:60].astype(dtype), digits[1][:60]
    ITQ(4).fit(X)  # without a word
    X[17, 5] = size
    message = f"row 17 of X outweighs all other 59 together (column 5 of row 17 holds {size:g})"
    for method in (ITQ(4), TwoStepHash(4, n_similar=2, n_dissimilar=10)):
        with np.errstate(all="ignore"), pytest.warns(UserWarning, match=re.escape(message)):
            method.fit(X, y)
    X[[3, 40], 8] = size
    message = "3 rows of X outweigh all other 57 together (column 5 of row 17 holds"
    if abs(size) == 1e6:
        with pytest.warns(
            UserWarning, match=re.escape(message).replace("17", ".*").replace("5", ".")
        ):
            ITQ(4).fit(X)
    cosine = auxhash.NeighborHash(4, metric="cosine", n_steps=2, hash_function="linear")
    cosine.fit(X)  # lengths do not count
    with np.errstate(all="ignore"):
        ITQ(4).fit(X[:49])  # one of few may well be far from the others


@pytest.mark.parametrize("kind", ["one feature", "rare ones", "long tails"])
def test_ordinary_points_are_not_told(digits, kind):
    rng = np.random.default_rng(0)
    X = {
        "one feature": digits[0][:, 30:31],
        "rare ones": (rng.random((1000, 8)) < 0.01).astype(float),
        "long tails": rng.lognormal(0, 3, (1000, 16)),
    }[kind]
    baselines.LSH(4).fit(X)


def test_half_precision_is_weighed_as_it_is(digits):
    """Squares of a share of the largest number would be 0 in half precision."""
    X = np.ones((70_000, 10), np.float16)
    X[5, 3] = 800  # 640,000 of 1,340,000
    baselines.LSH(4).fit(X)  # without a word
    X[5, 3] = 900
    with pytest.warns(UserWarning, match="row 5 of X outweighs all other 69,999"):
        baselines.LSH(4).fit(X)


def test_a_loss_that_does_not_depend_on_d_is_told_before_training():
    constant = TwoStepHash(n_bits=2, n_similar=3, n_dissimilar=5, loss=lambda d, y, b: y**2)
    with pytest.warns(UserWarning, match="loss of these pairs does not depend on the distance d"):
        constant.fit(X, y)


def test_the_cost_of_very_long_codes_is_told_before_training(monkeypatch):
    many = np.random.default_rng(0).normal(size=(600, 2))
    monkeypatch.setattr(estimators, "Training", None)
    with (
        pytest.warns(UserWarning, match=r"2,048 bits of 600 points: .* 0.2 GB .*64 times as long"),
        pytest.raises(TypeError),
    ):
        MACHash(n_bits=2048).fit(many, np.arange(600) % 3)


def test_use_before_and_after_fit():
    hasher = MACHash(n_bits=4, n_similar=3, n_dissimilar=5)
    with pytest.raises(NotFittedError):
        hasher.transform(X)
    hasher.fit(X, y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        hasher.transform(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        hasher.encode(with_nan(np.nan))


def test_a_column_of_labels_is_its_labels(digits):
    X, y, queries, labels = digits
    plain = TwoStepHash(**SMALL).fit(X, y)
    column = TwoStepHash(**SMALL).fit(X, y[:, None])
    np.testing.assert_array_equal(plain.codes_, column.codes_)
    assert plain.score(queries, labels) == column.score(queries, labels[:, None])
    settings = {"validation": (queries, labels[:, None])}
    np.testing.assert_array_equal(TwoStepHash(**SMALL, **settings).fit(X, y).codes_, plain.codes_)


def test_sparse_labels(digits):
    X, y, *_ = digits
    several = np.eye(10, dtype=int)[y] | np.eye(10, dtype=int)[(y + 1) % 10]
    plain = TwoStepHash(**SMALL).fit(X, several)
    np.testing.assert_array_equal(
        plain.codes_, TwoStepHash(**SMALL).fit(X, csr_array(several)).codes_
    )


@pytest.mark.parametrize("method", [MACHash, EndToEndHash])
def test_a_hash_function_without_gradient_is_refused_before_a_folder_is_made(
    digits, tmp_path, method
):
    X, y, *_ = digits
    model = method(**SMALL | {"hash_function": "trees", "refine": Refine()})
    with pytest.raises(TypeError, match=r"no gradient|by gradients alone"):
        model.fit(X, y, checkpoint=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    TwoStepHash(**SMALL | {"refine": Refine()})._check_parameters()  # refines nothing


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"refine": Refine(pairs="fresh")}, "needs an affinity drawn from classes"),
        ({"hash_function": "trees", "refine": Refine()}, "no gradient"),
        ({"validation": (np.zeros((3, 64)), ["a", "b", "c"])}, "label"),
        ({"validation": (np.zeros((3, 64)), [1, 2])}, "one row for each of 3 points"),
        ({"validation": (np.zeros((3, 64)), np.eye(3, 4))}, "label"),
        ({"validation": (np.zeros((3, 64)), [1, 2, np.nan])}, "missing"),
    ],
)
def test_what_can_be_refused_is_refused_before_training(digits, monkeypatch, settings, message):
    X, y, *_ = digits

    def train(*args):
        raise AssertionError("trained")

    monkeypatch.setattr(loop.MAC, "two_step", train)
    pairs = affinity.from_pairs([0, 1, 2], [1, 2, 3], [0.1, 0.2, 0.3], len(X))
    with pytest.raises((ValueError, TypeError), match=message):
        MACHash(**{**SMALL, **settings}).fit(X, y, affinity=pairs)


def test_refinement_asks_for_no_affinity_that_is_not_there(digits):
    X, *_ = digits

    def picky(d, y, b):
        if np.min(y) <= 0 or np.max(y) > 1:
            raise ValueError("y must lie in (0, 1]")
        return y * (d / b) ** 2 + (1 - y) * np.maximum(0, 0.5 - d / b) ** 2

    rng = np.random.default_rng(0)
    i = rng.integers(0, N // 2, 2000)
    pairs = affinity.from_pairs(
        i, i + 1 + rng.integers(0, N // 3, 2000), rng.uniform(0.1, 1, 2000), N
    )
    hasher = MACHash(**{**SMALL, "loss": picky}).fit(X, affinity=pairs)
    assert hasher.history_[-1].mu == np.inf


@pytest.mark.parametrize("z_step", ["descent", "cut"])
def test_any_number_of_iterations(digits, z_step):
    X, y, *_ = digits
    hasher = MACHash(**{**SMALL, "refine": None}, z_step=z_step, max_iter=5000).fit(
        X[:100], y[:100]
    )
    assert hasher.history_[-1].violations == 0
    assert 0 < hasher.history_[1].mu < np.inf


def test_mu_never_leaves_the_double_range(digits):
    X, y, *_ = digits
    settings = {**SMALL, "refine": None, "penalty": "augmented", "mu": 1e-3, "alpha": 1e30}
    hasher = MACHash(**settings, max_iter=300).fit(X[:100], y[:100])
    assert all(np.isfinite(step.penalized_loss) for step in hasher.history_)


@pytest.mark.parametrize("Method", [MACHash, TwoStepHash])
def test_small_integers_of_numpy(digits, Method):
    X, y, *_ = digits
    expected = Method(**SMALL).fit(X, y).codes_
    small = {"n_bits": np.uint8(8), "n_similar": np.uint8(10), "n_dissimilar": np.uint8(20)}
    small |= {"max_iter": np.int8(50), "max_sweeps": np.uint8(2)}
    np.testing.assert_array_equal(Method(**{**SMALL, **small}).fit(X, y).codes_, expected)


def test_pickles_leave_the_pairs_behind(digits):
    X, y, queries, _ = digits
    hasher = MACHash(**SMALL).fit(X, y)
    copy = pickle.loads(pickle.dumps(hasher))
    np.testing.assert_array_equal(copy.encode(queries), hasher.encode(queries))
    assert len(pickle.dumps(hasher)) < 200_000
    assert not hasattr(copy, "affinity_")
    assert hasattr(hasher, "affinity_")


def test_a_range_that_no_double_can_span(digits):
    X, y, *_ = digits
    wide = pytest.raises(ValueError, match="more than double precision can span")
    with np.errstate(all="ignore"), wide:
        MACHash(**SMALL).fit(np.where(X > 8, 1.5e308, -1.5e308), y)


def test_outputs_that_are_no_numbers(digits):
    X, y, *_ = digits
    hasher = auxhash.baselines.KSH(n_bits=8, max_iter=5).fit(X, y)
    far = X[:5].copy()
    far[3] = np.where(np.arange(64) % 2, 1.7e308, -1.7e308)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="row 3"):
        hasher.encode(far)


@pytest.mark.parametrize(
    "small",
    [
        {"max_iter": np.uint8(30)},
        {"max_iter": np.int8(127)},
        {"alpha": np.float32(1.5)},
        {"mu": np.float16(0.125), "alpha": np.float16(1.5)},
        {"max_sweeps": np.uint8(3), "C": np.float32(50)},
    ],
    ids=str,
)
def test_small_numbers_of_numpy_are_as_good_as_python_s(digits, small):
    X, y = digits[0][:200], digits[1][:200]
    plain = {name: value.item() for name, value in small.items()}
    fits = [MACHash(**{**SMALL, "refine": None, **more}).fit(X, y) for more in (small, plain)]
    steps = [[(step.mu, step.loss) for step in hasher.history_] for hasher in fits]
    assert steps[0] == steps[1]
    assert len(steps[0]) > 2


def test_warm_start_keeps_its_kind_and_takes_another_cost(digits):
    X, y, _, _ = digits
    hasher = MACHash(**SMALL, warm_start=True).fit(X, y)
    assert hasher.set_params(C=3).fit(X, y).hash_function_.C == 3
    for other in ("rbf", "network", "trees", SVC()):
        with pytest.raises(ValueError, match="hash_function must stay what it was"):
            hasher.set_params(hash_function=other, refine=None).fit(X, y)
    own = {**SMALL, "refine": None, "hash_function": LinearSVC(max_iter=50)}
    hasher = MACHash(**own, warm_start=True)
    hasher.fit(X[:100], y[:100]).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="LinearSVC of Scaled of ClassifierHash and SVC"):
        hasher.set_params(hash_function=SVC()).fit(X[:100], y[:100])


def test_labels_and_points_that_numpy_would_change(digits):
    X, y, _, _ = digits
    with pytest.raises(ValueError, match="all text or all numbers"):
        MACHash(**SMALL).fit(X[:4], [1, "1", 2, "2"])
    with pytest.raises(ValueError, match="y must not be missing; row 0 is masked"):
        MACHash(**SMALL).fit(X, np.ma.array(y, mask=y == 0))
    masked = np.ma.array(X, mask=X > 15)
    with pytest.raises(ValueError, match="X must not be missing"):
        MACHash(**SMALL).fit(masked, y)
    with pytest.raises(ValueError, match="X must not be missing"):
        TwoStepHash(**SMALL).fit(X, y).encode(masked)


def test_an_affinity_without_pairs(digits):
    X, y, _, _ = digits
    none = affinity.from_pairs([0], [1], [-1.0], len(X)).subset(np.arange(2, len(X)))
    with pytest.raises(ValueError, match="affinity holds no pairs"):
        MACHash(**SMALL).fit(X[2:], affinity=none)
    one = affinity.from_pairs([0], [1], [-1.0], 4)
    with pytest.raises(ValueError, match="leave no pairs"):
        MACHash(**SMALL, validation=0.5).fit(X[:4], y[:4], affinity=one)


@pytest.mark.parametrize("hash_function", ["linear", "network"])
def test_going_on_forgets_nothing(digits, hash_function):
    """At least as good as the new points alone, and as what there was before."""
    X, y = load_digits(return_X_y=True)
    queries, labels, base = X[1300:], y[1300:], slice(700, 1300)
    settings = {**SMALL, "n_bits": 16, "hash_function": hash_function, "refine": None}

    def precision(hasher):
        asked_codes, base_codes = hasher.encode(queries), hasher.encode(X[base])
        return metrics.precision_at_k(asked_codes, base_codes, labels, y[base], 50)

    gains = []
    for seed in range(3 if SOAK else 1):
        order = np.random.default_rng(seed).permutation(700)
        old, new = (order[:500], order[500:650]) if SOAK else (order[:200], order[500:600])
        hasher = MACHash(**{**settings, "random_state": seed}, warm_start=True)
        before = precision(hasher.fit(X[old], y[old]))
        after = precision(hasher.fit(X[new], y[new]))
        anew = precision(MACHash(**{**settings, "random_state": seed}).fit(X[new], y[new]))
        gains.append((after - anew, after - before))
        assert hasher.n_learnt_ == len(old) + len(new)
    assert (np.mean(gains, axis=0) > 0).all()
    again = hasher.fit(X[new], y[new])  # the same points are counted once
    assert again.n_learnt_ == len(old) + len(new)


def test_mac_ends_sooner_where_refinement_follows(digits, monkeypatch):
    X, y, *_ = digits
    # Few points: MAC gains for long.
    monkeypatch.setattr("auxhash.learn.training.run.MIN_GAIN", 0.01)

    def path(**settings):
        fitted = MACHash(**{**SMALL, **settings}).fit(X, y)
        return [step.loss for step in fitted.history_ if step.mu < np.inf]

    losses = path(refine=None)
    gains = [(before - after) / after for before, after in pairwise(losses)]
    few = next(number for number, gain in enumerate(gains, 2) if gain < 0.01)
    assert 1 < few < len(losses)
    assert path() == path(tol=0.01, refine=None) == losses[:few]
    assert path(tol=None) == losses
    tree = DecisionTreeClassifier(max_depth=1)  # which cannot be refined
    own = {"hash_function": tree, "refine": "auto"}
    assert len(path(**own, tol=0.01)) < len(path(**own)) == len(path(**own, tol=None))


def test_pairs_that_are_all_similar_keep_no_codes_apart():
    X = np.random.default_rng(0).normal(size=(12, 3))
    alike = affinity.from_pairs(range(11), range(1, 12), np.ones(11), 12)
    with pytest.warns(UserWarning, match="all pairs of affinity are similar"):
        MACHash(4, refine=None, random_state=0).fit(X, affinity=alike)
