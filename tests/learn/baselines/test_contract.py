"""The contract that every baseline must meet."""

from itertools import islice

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

import auxhash
from auxhash.codes import pack
from auxhash.learn import baselines
from tests.conftest import SOAK

QUICK = {  # smaller than the defaults, for speed
    "BRE": {"n_train": 60, "max_iter": 3},
    "BinaryAutoencoder": {"max_iter": 4},
    "ILH": {"n_subset": 80},
    "KSH": {"n_anchors": 60, "max_iter": 20},
    "SDH": {"n_anchors": 60},
    "SPH": {"max_iter": 20},
    "AGH": {"n_anchors": 140},
}
SUPERVISED = ("TSH", "FastHash", "KSH", "CCAITQ", "OneHot", "LogitLSH", "SDH", "ILH")
FROM_PAIRS = ("TSH", "FastHash", "KSH", "ILH")
FROM_PAIRS_TOO = ("BRE", "STH")  # if they are given any
UNSUPERVISED = tuple(sorted(set(baselines.__all__) - set(SUPERVISED)))
VARIANTS = [
    *((name, {}) for name in baselines.__all__),
    ("TSH", {"stagewise": False}),
    ("FastHash", {"stagewise": False}),
    ("AGH", {"layers": 2}),
    ("KSH", {"hash_function": "linear"}),
    ("BRE", {"supervised": True}),
    ("BRE", {"kernel": "rbf"}),
    ("STH", {"supervised": True}),
]
FEATURES = 16
NO_MORE_THAN_FEATURES = ("TPCA", "ITQ", "PCARR")


def few(name, data):
    """Points, as many as many bits need: for tests of the bits alone."""
    n = 160 if SOAK or name in ("AGH", "STH") else 40
    return tuple(part[:n] for part in data)


def make(name, n_bits, **changes):
    method = getattr(baselines, name)
    params = {**QUICK.get(name, {}), **changes}
    if "random_state" in method().get_params():
        params.setdefault("random_state", 0)
    return method(n_bits=n_bits, **params)


def label(variant):
    name, changes = variant
    return "-".join([name, *(f"{key}={value}" for key, value in changes.items())])


every_variant = pytest.mark.parametrize(("name", "changes"), VARIANTS, ids=map(label, VARIANTS))
SOME = VARIANTS if SOAK else [(name, {}) for name in baselines.__all__]
some_variants = pytest.mark.parametrize(("name", "changes"), SOME, ids=map(label, SOME))


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(160, FEATURES, centers=4, cluster_std=4.0, random_state=3)
    return X, y


@pytest.fixture(scope="module")
def fitted(data):
    """A function that gives each variant with 12 bits, fitted once: tests must not change it."""
    models = {}

    def fit(name, changes):
        key = label((name, changes))
        if key not in models:
            models[key] = make(name, 12, **changes).fit(*data)
        return models[key]

    return fit


def sklearn_checks():
    """In soak all of each method; else every third, others of the next method."""
    step = 1 if SOAK else 3
    for at, variant in enumerate(SOME):
        result = estimator_checks_generator(make(variant[0], 2, **variant[1]))
        for estimator, check in islice(result, at % step, None, step):
            yield pytest.param(estimator, check, id=f"{label(variant)}-{check.func.__name__}")


@pytest.mark.parametrize(("estimator", "check"), list(sklearn_checks()))
@pytest.mark.filterwarnings("ignore:.*share a codeword")
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_the_public_names():
    assert auxhash.baselines is baselines
    assert set(baselines.__all__) <= set(dir(baselines))
    with pytest.raises(AttributeError, match="no attribute 'Nonesuch'"):
        baselines.Nonesuch  # noqa: B018


@every_variant
def test_shapes_types_and_training_codes(name, changes, data, fitted):
    X, y = data
    hasher = fitted(name, changes)
    outputs, codes, packed = hasher.decision_function(X), hasher.transform(X), hasher.encode(X)
    assert outputs.shape == codes.shape == (len(X), 12)
    assert outputs.dtype == np.float64
    assert codes.dtype == np.int8
    assert set(np.unique(codes)) <= {-1, 1}
    np.testing.assert_array_equal(codes > 0, outputs >= 0)
    assert packed.dtype == np.uint8
    np.testing.assert_array_equal(packed, pack(codes))
    np.testing.assert_array_equal(packed, hasher.codes_)
    np.testing.assert_array_equal(hasher.labels_, y)
    assert 0.4 < hasher.score(X, y, k=20) <= 1  # chance is 0.25


@every_variant
def test_the_same_seed_gives_the_same_codes_on_any_number_of_threads(name, changes, data):
    X, y = data
    hasher = make(name, 8, **changes)
    first = clone(hasher).fit(X, y).encode(X)
    if "n_jobs" not in hasher.get_params():
        np.testing.assert_array_equal(clone(hasher).fit(X, y).encode(X), first)
        return
    for n_jobs in (1, 2, 4):
        again = clone(hasher).set_params(n_jobs=n_jobs).fit(X, y)
        np.testing.assert_array_equal(again.encode(X), first)


MANY_BITS = baselines.__all__ if SOAK else NO_MORE_THAN_FEATURES  # others: 65, below


@pytest.mark.parametrize(
    ("n_bits", "name"),
    [*((8, name) for name in baselines.__all__), *((128, name) for name in MANY_BITS)],
)
def test_8_to_128_bits(name, n_bits, data):
    X, y = few(name, data)
    hasher = make(name, n_bits)
    if name in NO_MORE_THAN_FEATURES and n_bits > FEATURES:
        with pytest.raises(ValueError, match=f"n_bits={n_bits}, n_features={FEATURES}"):
            hasher.fit(X, y)
    else:
        assert hasher.fit(X, y).transform(X[:5]).shape == (5, n_bits)


@every_variant
def test_refuses_nan(name, changes, data, fitted):
    X, y = data
    hasher = fitted(name, changes)
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            make(name, 4, **changes).fit(spoilt, y)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            hasher.encode(spoilt)


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_unsupervised_ones_take_no_notice_of_labels(name, data):
    X, y = data
    with_labels = make(name, 8).fit(X, y)
    without = make(name, 8).fit(X)
    np.testing.assert_array_equal(with_labels.codes_, without.codes_)
    assert without.labels_ is None
    with pytest.raises(ValueError, match="fit with y"):
        without.score(X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        make(name, 8).fit(X, y[:-1])


@pytest.mark.parametrize(
    "hasher",
    [
        *(make(name, 8) for name in SUPERVISED),
        make("BRE", 8, supervised=True),
        make("STH", 8, supervised=True),
    ],
    ids=repr,
)
def test_supervised_ones_demand_labels(hasher, data):
    with pytest.raises(ValueError, match="requires y to be passed"):
        hasher.fit(data[0], None)
    assert hasher.__sklearn_tags__().target_tags.required


@pytest.mark.parametrize("name", [*FROM_PAIRS, *FROM_PAIRS_TOO])
def test_an_affinity_takes_the_place_of_labels(name, data):
    X, y = data
    pairs = auxhash.affinity.from_labels(y, 20, 60, random_state=0)
    hasher = make(name, 8).fit(X, affinity=pairs)
    assert hasher.labels_ is None
    assert make(name, 8).fit(X, y, affinity=pairs).score(X, y, k=20) > 0.4
    with pytest.raises(ValueError, match="affinity is for 160 points, but X has 159"):
        make(name, 8).fit(X[:-1], affinity=pairs)
    with pytest.raises(TypeError, match="affinity must be an"):
        make(name, 8).fit(X, affinity=y)


@pytest.mark.parametrize("name", [*FROM_PAIRS, "BRE"])
def test_several_labels_a_point(name, data):
    X, y = data
    labels = np.eye(4, dtype=int)[y]
    changes = {"supervised": True} if name == "BRE" else {}
    assert make(name, 8, **changes).fit(X, labels).score(X, labels, k=20) > 0.4


@pytest.mark.parametrize("name", baselines.__all__)
@pytest.mark.parametrize(
    ("n_bits", "error"),
    [(0, ValueError), (32_768, ValueError), (8.0, TypeError), (True, TypeError)],
)
def test_refuses_a_wrong_number_of_bits(name, n_bits, error, data):
    with pytest.raises(error, match="n_bits must be a whole number from 1 to 32767"):
        make(name, n_bits).fit(*data)


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [
        ("AGH", {"layers": 3}, ValueError, "layers must be 1 or 2"),
        ("AGH", {"n_anchors": 8}, ValueError, "at most 7 bits from 8 anchors"),
        ("BRE", {"kernel": "cubic"}, ValueError, "kernel must be"),
        ("BRE", {"supervised": 1}, TypeError, "supervised must be True or False"),
        ("LSH", {"center": None}, TypeError, "center must be True or False"),
        ("STH", {"supervised": "yes"}, TypeError, "supervised must be True or False"),
        ("BRE", {"pairs": 0.0}, ValueError, "pairs must be a number above 0"),
        ("BinaryAutoencoder", {"mu": -1.0}, ValueError, 'above 0 or "auto"'),
        ("BinaryAutoencoder", {"alpha": 1.0}, ValueError, "alpha must be a number above 1"),
        ("CCAITQ", {"regularization": 0}, ValueError, "regularization must be"),
        ("FastHash", {"stagewise": "yes"}, TypeError, "stagewise must be True or False"),
        ("FastHash", {"hash_function": "tres"}, ValueError, "did you mean 'trees'"),
        ("ILH", {"n_subset": 1}, ValueError, "n_subset must be"),
        ("ITQ", {"n_iter": 0}, ValueError, "n_iter must be"),
        ("KSH", {"n_anchors": 0}, ValueError, "n_anchors must be"),
        ("KSH", {"hash_function": "linea"}, ValueError, "did you mean 'linear'"),
        ("LogitLSH", {"classifier": "trees"}, TypeError, "classifier must be a scikit-learn"),
        ("SDH", {"nu": 0.0}, ValueError, "nu must be"),
        ("SPH", {"max_iter": 0}, ValueError, "max_iter must be"),
        ("STH", {"n_neighbors": 0}, ValueError, "n_neighbors must be"),
        ("TSH", {"loss": "kss"}, ValueError, "did you mean 'ksh'"),
    ],
)
def test_wrong_parameters_are_named(name, changes, error, message, data):
    with pytest.raises(error, match=message):
        make(name, 8, **changes).fit(*data)


def test_more_bits_than_points_are_refused_by_sth(data):
    with pytest.raises(ValueError, match="n_bits=20, n_samples=20"):
        make("STH", 20).fit(data[0][:20])


def test_classes_that_share_a_codeword_are_warned_of(data):
    X, y = data
    with pytest.warns(UserWarning, match="1 bits cannot tell 4 classes apart"):
        make("OneHot", 1, classifier=LogisticRegression(max_iter=500)).fit(X, y)


@some_variants
def test_small_integers_of_numpy(name, changes, data):
    X, y = few(name, data)
    n_bits, small = (130, np.uint8) if SOAK else (65, np.int8)  # twice as much is more than fits
    if name in NO_MORE_THAN_FEATURES:
        n_bits = 14
    elif name == "STH":
        n_bits, small = 65, np.int8  # of 160 points
    expected = make(name, n_bits, **changes).fit(X, y)
    model = make(name, small(n_bits), **changes).fit(X, y)
    np.testing.assert_array_equal(model.codes_, expected.codes_)
    assert model.codes_.shape[1] == -(-n_bits // 8)


@every_variant
@pytest.mark.parametrize("scale", [1e-170, 1e-60, 1e60, 1e160])
def test_scales_are_dealt_with_or_refused(name, changes, data, scale):
    """No scale may silently give all points the same code."""
    X, y = data
    hasher = make(name, 8, **changes)
    if name not in ("TSH", "FastHash") and not 1e-100 < scale < 1e100:
        with pytest.raises(ValueError, match="scale X first"):
            hasher.fit(X * scale, y)
        return
    with np.errstate(all="ignore"):
        codes = hasher.fit(X * scale, y).codes_
    assert len(np.unique(codes, axis=0)) > 2


@every_variant
def test_far_from_the_origin(name, changes, data, fitted):
    """Rounding must not change the codes: far from the origin nearly all bits are the same."""
    X, y = data
    near = fitted(name, changes).transform(X)
    far = make(name, 12, **changes).fit(X + 1e7, y).transform(X + 1e7)
    assert (near == far).mean() > 0.98


def test_sparse_labels_are_kept_to_score_by(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.eye(2, dtype=int)[np.arange(40) % 2]
    one, other = (baselines.LSH(4, random_state=0).fit(X, labels) for labels in (y, csr_array(y)))
    assert one.score(X, y, 5) == other.score(X, csr_array(y), 5)
    other.save(tmp_path / "model")
