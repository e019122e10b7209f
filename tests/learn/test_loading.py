"""Every estimator is saved and loaded; wrong files and models are refused."""

import copy
import math
import pickle
import re
import sys
import warnings
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import auxhash
from auxhash import MACHash, ModelFileError, NeighborHash, TwoStepHash, Validation
from auxhash.compute import registry
from auxhash.compute.extras import install
from auxhash.learn import baselines
from auxhash.learn.smooth import Refine
from auxhash.mac.hashfunctions import ClassifierHash, RadialBasis, Scaled, linear
from auxhash.mac.hashfunctions.classifiers import Constant
from auxhash.mac.zstep import Cut, Quad
from auxhash.model import classifiers as sklearnmodels
from auxhash.model import encoding, modelfile
from auxhash.model.fitted import NOT_SAVED, TIMES, resolved
from tests.conftest import SOAK
from tests.learn.baselines.test_contract import VARIANTS, label, make
from tests.programs import run_python

FEW_PAIRS = {"n_similar": 10, "n_dissimilar": 20, "random_state": 0, "n_jobs": 1}
BRIEF = {**FEW_PAIRS, "refine": Refine(n_steps=20)}
SMALL_TREES = ClassifierHash(HistGradientBoostingClassifier(max_iter=3, max_depth=3))

X, y = make_blobs(120, 6, centers=4, cluster_std=4.0, random_state=3)
HASHERS = {
    **{label(variant): make(variant[0], 6, **variant[1]) for variant in VARIANTS},
    "MAC": MACHash(n_bits=9, **FEW_PAIRS),
    "MAC-rbf": MACHash(n_bits=9, hash_function="rbf", z_step="cut", **FEW_PAIRS),
    "MAC-network": MACHash(n_bits=9, hash_function="network", **BRIEF),
    "MAC-cut": MACHash(n_bits=9, z_step=Cut("fixed"), start="zeros", max_iter=3, **FEW_PAIRS),
    "MAC-augmented": MACHash(
        n_bits=9, penalty="augmented", loss="hinge", validation=0.2, **FEW_PAIRS
    ),
    "two-step": TwoStepHash(n_bits=9, **FEW_PAIRS),
    "neighbours": NeighborHash(n_bits=9, n_steps=5, random_state=0, n_jobs=1),
    "neighbours-rbf": NeighborHash(9, "euclidean", "rbf", n_steps=5, random_state=0, n_jobs=1),
    "logistic": MACHash(n_bits=3, hash_function=LogisticRegression(), max_iter=2, **FEW_PAIRS),
    "trees": TwoStepHash(n_bits=3, hash_function=SMALL_TREES, **FEW_PAIRS),
}


@cache
def fitted(name):
    """For tests that leave it as it is."""
    return clone(HASHERS[name]).fit(X, y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def through_file(hasher, path, **options):
    hasher.save(path)
    return auxhash.load(path, **options)


@pytest.mark.parametrize(
    "solver", [Cut("fixed", overlap=True), Quad("eigenvector", "sign", None)], ids=str
)
def test_solvers_come_back_with_their_settings(solver, path):
    hasher = TwoStepHash(n_bits=4, z_step=solver, **FEW_PAIRS).fit(X, y)
    loaded = through_file(hasher, path)
    assert loaded.z_step == solver
    np.testing.assert_array_equal(loaded.fit(X, y).codes_, hasher.codes_)


@pytest.mark.parametrize("name", HASHERS)
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda i: pickle.loads(pickle.dumps(i))]
)
def test_every_estimator_can_be_copied(name, copied):
    hasher = fitted(name)
    np.testing.assert_array_equal(copied(hasher).encode(X), hasher.encode(X))


@pytest.mark.parametrize("name", HASHERS)
def test_every_estimator_comes_back(name, path):
    hasher = fitted(name)
    loaded = through_file(hasher, path)
    assert type(loaded) is type(hasher)
    assert repr(loaded.get_params()) == repr(hasher.get_params())
    for points in (X, X[:1], X.astype(np.float32)):
        outputs = loaded.decision_function(points)
        assert outputs.tobytes() == hasher.decision_function(points).tobytes()
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
    assert loaded.score(X, y, k=10) == hasher.score(X, y, k=10)
    assert loaded.n_features_in_ == 6
    assert loaded.fingerprint_ == hasher.fingerprint_
    assert loaded.data_fingerprint_ == hasher.data_fingerprint_
    assert list(loaded.get_feature_names_out()) == list(hasher.get_feature_names_out())
    assert set(vars(hasher)) - set(vars(loaded)) <= set(NOT_SAVED)
    first = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == first


def test_what_was_learnt_is_kept(path):
    hasher = MACHash(n_bits=4, validation=0.2, **FEW_PAIRS).fit(X, y)
    loaded = through_file(hasher, path)
    times = dict.fromkeys(TIMES, 0.0)
    assert [replace(step, **times) for step in loaded.history_] == [
        replace(step, **times) for step in hasher.history_
    ]
    assert all(math.isnan(getattr(step, name)) for step in loaded.history_ for name in TIMES)
    assert loaded.loss_ == hasher.loss_
    assert loaded.n_iter_ == hasher.n_iter_
    assert not hasattr(loaded, "affinity_")


def test_labels_of_any_type(path):
    for labels in (y.astype(str), y.astype(str).astype(object), y > 1, np.eye(4, dtype=int)[y]):
        hasher = MACHash(n_bits=4, max_iter=1, **BRIEF).fit(X, labels)
        loaded = through_file(hasher, path)
        assert loaded.labels_.dtype == hasher.labels_.dtype
        np.testing.assert_array_equal(loaded.labels_, hasher.labels_)
        assert loaded.score(X, labels) == hasher.score(X, labels)


def test_feature_names_and_output_container(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    hasher = baselines.LSH(n_bits=4, random_state=0).set_output(transform="pandas").fit(frame)
    loaded = through_file(hasher, path)
    assert list(loaded.feature_names_in_) == list("abcdef")
    pandas.testing.assert_frame_equal(loaded.transform(frame), hasher.transform(frame))


@pytest.mark.parametrize(
    "validation", [(X[:9], y[:9]), (X[:9].tolist(), y[:9].tolist()), Validation(X[:9], neighbors=3)]
)
def test_files_hold_no_data_that_parameters_are(validation, path):
    init = np.where(np.random.default_rng(0).normal(size=(120, 4)) > 0, 1, -1)
    settings = {"init": init, "validation": validation}
    hasher = MACHash(n_bits=4, **settings, max_iter=1, **BRIEF).fit(X, y)
    loaded = through_file(hasher, path)
    size = path.stat().st_size
    assert (loaded.init.name, loaded.validation.name) == (
        "codes of shape (120, 4)",
        "points of shape (9, 6)",
    )
    hasher.set_params(init=None, validation=None).save(path)
    assert size - path.stat().st_size < 300
    with pytest.raises(ValueError, match=r"(init|validation) was .* set_params\(\1=\.\.\.\)"):
        clone(loaded).fit(X, y)
    np.testing.assert_array_equal(loaded.set_params(**settings).fit(X, y).codes_, hasher.codes_)


def test_files_of_before_hold_them_and_load(path, monkeypatch):
    init = np.where(np.random.default_rng(0).normal(size=(120, 4)) > 0, 1, -1)
    hasher = MACHash(n_bits=4, init=init, validation=(X[:9], y[:9]), max_iter=1, **BRIEF).fit(X, y)
    monkeypatch.setattr("auxhash.model.fitted.OF_DATA", {})
    loaded = through_file(hasher, path)
    np.testing.assert_array_equal(loaded.init, init)
    assert isinstance(loaded.validation, tuple)
    np.testing.assert_array_equal(loaded.fit(X, y).codes_, hasher.codes_)


def test_files_hold_nothing_that_a_classifier_has_learnt_elsewhere(path):
    many = np.random.default_rng(0).normal(size=(2000, 6))
    sizes = []
    for classifier in (KNeighborsClassifier(), KNeighborsClassifier().fit(many, many[:, 0] > 0)):
        hasher = MACHash(n_bits=2, hash_function=classifier, max_iter=1, **FEW_PAIRS).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # neighbours are for those who trust the file
            hasher.save(path)
        sizes.append(path.stat().st_size)
    assert sizes[0] == sizes[1]


def test_fitting_goes_on(path):
    hasher = MACHash(n_bits=4, warm_start=True, max_iter=2, **BRIEF).fit(X, y)
    loaded = through_file(hasher, path)
    assert loaded.fit(X, y).loss_ == hasher.fit(X, y).loss_


@pytest.mark.parametrize("seeded", [np.random.default_rng, np.random.RandomState])
def test_a_generator_goes_on_where_it_stood(seeded, path):
    hasher = MACHash(n_bits=4, **{**BRIEF, "random_state": seeded(5)}).fit(X, y)
    loaded = through_file(hasher, path)
    for _ in range(2):  # each fit draws from the generator: the second differs from the first
        np.testing.assert_array_equal(loaded.fit(X, y).codes_, hasher.fit(X, y).codes_)


def half(d, y, b):
    return np.where(y > 0, d / b, np.maximum(0, 0.5 - d / b)) ** 2


def solver(bit, z, rng):
    return z


@pytest.mark.parametrize("changes", [{"loss": half}, {"z_step": solver}], ids=["loss", "z_step"])
def test_functions_are_kept_by_name(changes, path):
    [(name, value)] = changes.items()
    hasher = MACHash(n_bits=4, max_iter=2, **BRIEF, **changes).fit(X, y)
    loaded = through_file(hasher, path)
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
    assert loaded.get_params()[name].name == value.__name__
    with pytest.raises(ValueError, match=rf"set_params\({name}=\.\.\.\), before fitting"):
        loaded.fit(X, y)
    with pytest.raises(ValueError, match="by name only"):
        through_file(loaded, path).fit(X, y)
    loaded.set_params(**changes).fit(X, y)
    np.testing.assert_array_equal(loaded.codes_, hasher.codes_)


class Mine:
    """A user's hash function that was not registered."""

    def __init__(self, h):
        self.h = h

    def __getattr__(self, name):
        if name.startswith("__") or name == "h":
            raise AttributeError(name)
        return getattr(self.h, name)

    def prepare(self, X, rng):
        return Mine(self.h.prepare(X, rng))

    def refit(self, *args):
        return Mine(self.h.refit(*args))

    def take(self, other, bits):
        return Mine(self.h.take(other.h, bits))


def test_a_hash_function_of_one_s_own(path):
    hasher = TwoStepHash(n_bits=4, hash_function=Mine(linear()), **FEW_PAIRS).fit(X, y)
    with pytest.raises(TypeError, match=r"hash_function is of type Mine.*auxhash\.register"):
        hasher.save(path)
    assert not path.exists()


def test_a_registered_hash_function(path, monkeypatch):
    monkeypatch.setattr(registry, "CLASSES", dict(registry.CLASSES))
    monkeypatch.setattr(encoding, "CLASSES", registry.CLASSES)

    @registry.register("test.Doubled")
    @dataclass(frozen=True)
    class Doubled(Scaled):
        def __call__(self, X):
            return 2 * super().__call__(X)

        def fit(self, X, rng):
            fitted = super().fit(X, rng)
            return Doubled(fitted.low, fitted.width)

    h = linear()
    hasher = TwoStepHash(n_bits=4, hash_function=type(h)(Doubled()), **FEW_PAIRS).fit(X, y)
    loaded = through_file(hasher, path)
    np.testing.assert_array_equal(loaded.decision_function(X), hasher.decision_function(X))
    del registry.CLASSES["test.Doubled"]
    with pytest.raises(ModelFileError, match=r"'test\.Doubled' is unknown here"):
        auxhash.load(path)


def test_a_damaged_classifier_is_refused(path):
    """Even with a correct checksum of the file: skops's archive has checksums of its own."""
    trees = AdaBoostClassifier(n_estimators=2)
    hasher = TwoStepHash(n_bits=2, hash_function=trees, **FEW_PAIRS).fit(X, y)
    with pytest.warns(UserWarning, match="cannot check"):
        hasher.save(path)
    model = modelfile.read(path)
    trusted = sorted(encoding.to_trust(model.content, model.arrays))
    name = max(model.arrays, key=lambda name: model.arrays[name].size)
    rng = np.random.default_rng(0)
    refused, tries = 0, 300 if SOAK else 60
    for _ in range(tries):
        data = model.arrays[name].copy()
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        modelfile.write(path, model._replace(arrays={**model.arrays, name: data}))
        try:
            loaded = auxhash.load(path, trusted=trusted)
        except ModelFileError:
            refused += 1
        else:
            np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
    assert refused > tries * 2 / 3


def test_without_skops(path, monkeypatch):
    hasher = baselines.OneHot(n_bits=8, classifier=AdaBoostClassifier(n_estimators=2)).fit(X, y)
    with pytest.warns(UserWarning, match="cannot check"):
        hasher.save(path)
    monkeypatch.setitem(sys.modules, "skops", None)
    for attempt in (hasher.save, auxhash.load):
        with pytest.raises(ImportError, match=re.escape(install("classifiers"))):
            attempt(path)


def test_an_unfitted_estimator_is_not_saved(path):
    with pytest.raises(NotFittedError):
        MACHash().save(path)


class Own(baselines.LSH):
    pass


def test_an_estimator_of_one_s_own_is_not_saved(path):
    with pytest.raises(TypeError, match="Own is a class of your own"):
        Own(n_bits=2).fit(X).save(path)


def changed(path, change, kind=None):
    """Rewrite the file as of format 1, its content changed, with checksums that match."""
    model = modelfile.read(path)
    value = encoding.decode(model.content, model.arrays, unstored={"n_jobs": None})
    value["learnt"] = resolved(value["learnt"], value.pop("model").hash_function)
    change(value)
    coded, arrays = encoding.encode(value)
    modelfile.write(path, modelfile.StoredModel(kind or model.kind, coded, arrays, "0.0.9"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda v: v["parameters"].update(n_bits=5),
            "n_bits is 5, but it was fitted to 4 bits",
        ),
        (lambda v: v["parameters"].update(n_bits="4"), "n_bits must be a whole number"),
        (lambda v: v["parameters"].update(n_bits=4.0), "n_bits must be a whole number"),
        (lambda v: v["parameters"].update(n_bits=True), "n_bits must be a whole number"),
        (lambda v: v["parameters"].update(n_bits=0), "n_bits must be a whole number"),
        (lambda v: v["parameters"].update(colour=1), "unexpected keyword argument 'colour'"),
        (lambda v: v["learnt"].pop("mean_"), "no attribute 'mean_'"),
        (lambda v: v["learnt"].pop("codes_"), "no attribute 'codes_'"),
        (lambda v: v["learnt"].update(encode=1), "LSH has no learnt attribute encode"),
        (lambda v: v["learnt"].update(n_features_in_=7), "operands could not be broadcast"),
        (
            lambda v: v["learnt"].update(n_features_in_=2**62),
            "n_features_in_ is not right: 4611686",
        ),
        (lambda v: v["learnt"].update(mean_=np.zeros((6, 1))), "shape .6, 4. for 1 points"),
        (lambda v: v["learnt"].update(hyperplanes_=np.zeros((4, 6))), "mismatch"),
        (
            lambda v: v["learnt"].update(hyperplanes_=np.zeros((6, 1))),
            "n_bits is 4, but it was fitted to 1 bits",
        ),
        (
            lambda v: v["learnt"].update(codes_=np.zeros((9, 2), np.uint8)),
            "codes_, of shape .9, 2., are no",
        ),
        (lambda v: v["learnt"].update(codes_=np.zeros((9, 1))), "codes_ is not right: .float64"),
        (lambda v: v["learnt"].update(labels_=np.zeros(3)), "3 labels for 120 training points"),
        (lambda v: v["learnt"].update(codes_=np.full((9, 1), 16, np.uint8)), "are no codes of 4"),
        (lambda v: v["learnt"].update(feature_names_in_=["a"]), "feature_names_in_ is not right"),
        (
            lambda v: v["learnt"].update(feature_names_in_=np.array(["a"], object)),
            "1 feature names for 6",
        ),
        (lambda v: v["learnt"].update(colour_=1), "LSH has no learnt attribute colour_"),
        (lambda v: v["learnt"].update(n_bits=4), "LSH has no learnt attribute n_bits"),
        (lambda v: v["learnt"].update(mean_=np.full(6, np.nan)), "mean_ is not right"),
        (lambda v: v["learnt"].update(mean_=np.full(6, np.inf)), "mean_ is not right"),
        (lambda v: v["learnt"].update(mean_=np.zeros(6, np.float32)), "mean_ is not right"),
        (lambda v: v["learnt"].update(mean_=[0.0] * 6), "mean_ is not right"),
        (lambda v: v["learnt"].update(fingerprint_=3), "fingerprint_ is not right"),
        (lambda v: v["learnt"].update(labels_=3), "labels_ is not right"),
        (lambda v: v["learnt"].update(image_feature_="gist:40000"), "side from 16 to 64"),
        (lambda v: v["learnt"].update(image_feature_="gist"), "or .module:function."),
        (lambda v: v["learnt"].update(image_feature_="os; x:f"), "or .module:function."),
        (lambda v: v["learnt"].update(image_feature_=3), "image_feature_ is not right"),
        (
            lambda v: v["learnt"].update(_sklearn_output_config={"transform": "x"}),
            "_sklearn_output_config is not right",
        ),
        (lambda v: v.pop("learnt"), "learnt"),
    ],
)
def test_parts_that_do_not_fit_together(change, message, path):
    baselines.LSH(n_bits=4, random_state=0).fit(X, y).save(path)
    changed(path, change)
    with pytest.raises(ModelFileError, match=rf"of auxhash 0\.0\.9.*cannot be loaded: .*{message}"):
        auxhash.load(path)


def with_h(**changes):
    def change(value):
        h = value["learnt"]["hash_function_"]
        value["learnt"]["hash_function_"] = replace(h, **changes)

    return change


def with_first_step(**changes):
    def change(value):
        value["learnt"]["history_"][0] = replace(value["learnt"]["history_"][0], **changes)

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("MAC", with_h(W=np.full((7, 9), np.nan)), "W must hold finite numbers"),
        ("MAC", with_h(W=np.zeros((7, 9), np.float32)), "W must be an array of float64"),
        ("MAC", with_h(W=np.zeros((0, 9))), "W must hold"),
        ("MAC", with_h(W=[[1.0]]), "W must be an array"),
        ("MAC", with_h(map=Scaled(0.0, 0.0)), "width must be a number above 0"),
        ("MAC", with_h(map=Scaled(np.nan, 1.0)), "low must be a number"),
        ("MAC", with_h(C=-1.0), "C must be a number above 0"),
        ("MAC", with_h(decay=np.inf), "decay must be a number"),
        ("MAC", with_h(map="map"), "not callable"),
        ("MAC-rbf", with_h(map=RadialBasis(3, Scaled(), np.ones((3, 6)), 0.0)), "sigma must be"),
        ("MAC-rbf", with_h(map=RadialBasis(3, Scaled(), np.ones(3), 1.0)), "centers must be"),
        ("MAC-network", with_h(V=np.full((7, 256), np.inf)), "V must hold finite"),
        ("MAC-network", with_h(n_hidden="many"), "n_hidden must be a whole number"),
        ("trees", with_h(fitted=(Constant(7.0),) * 3), "value must be -1 or 1"),
        ("trees", with_h(fitted=(3, 4, 5)), "fitted must be classifiers"),
        ("trees", with_h(fitted=()), "."),
        ("MAC", with_first_step(loss="low"), "loss must be a number"),
        ("MAC", with_first_step(z_seconds="long"), "z_seconds must be a number"),
        ("MAC", with_first_step(skipped=-1), "skipped must be a whole number"),
        ("MAC", with_first_step(iteration=-1), "iteration must be a whole number"),
        ("MAC", lambda v: v["learnt"].update(history_=[1]), "history_ is not right"),
        ("MAC", lambda v: v["learnt"].update(loss_=math.nan), "loss_ is not right"),
        ("MAC", lambda v: v["learnt"].update(interrupted_="no"), "interrupted_ is not right"),
        ("MAC", lambda v: v["learnt"].update(n_iter_=1.5), "n_iter_ is not right"),
        ("MAC", lambda v: v["parameters"].update(alpha=0.5), "alpha must be a number above 1"),
        ("MAC", lambda v: v["parameters"].update(loss="none"), "loss must be one of"),
        ("AGH", lambda v: v["parameters"].update(layers=3), "layers must be 1 or 2"),
        ("SH", lambda v: v["learnt"].update(omega_=np.full(6, np.inf)), "omega_ is not right"),
        ("SDH", lambda v: v["learnt"].update(map_=Scaled()), "map_ is not right"),
        ("OneHot", lambda v: v["learnt"].update(codewords_=np.ones((4, 6))), "codewords_ is not"),
    ],
)
def test_values_that_no_fit_gives(name, change, message, path, monkeypatch):
    fitted(name).save(path)
    with monkeypatch.context() as patch:  # to forge
        patch.setattr(encoding, "_check_object", lambda value, name: None)
        changed(path, change)
    with pytest.raises(ModelFileError, match=rf"cannot be loaded: .*{message}"):
        auxhash.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_bits": 5}, "n_bits is 5, but it was fitted to 4 bits"),
        ({"n_bits": "4"}, "n_bits must be a whole number"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"penalty": "none"}, "penalty must be"),
    ],
)
def test_a_model_that_could_not_be_loaded_is_not_saved(change, message, path):
    hasher = MACHash(n_bits=4, max_iter=1, **BRIEF).fit(X, y).set_params(**change)
    with pytest.raises(ValueError, match=f"not as it was fitted and cannot be saved: {message}"):
        hasher.save(path)
    assert not path.exists()


def test_weights_that_are_no_numbers_are_not_saved(path):
    hasher = MACHash(n_bits=4, max_iter=1, **BRIEF).fit(X, y)
    hasher.hash_function_.W[0, 0] = np.nan
    with pytest.raises(ValueError, match="cannot be saved: SVMHash is not right: W must hold"):
        hasher.save(path)


AGAIN = """
    import sys
    held = [bytearray(i) for i in range(9999)]
    from tests.learn.test_loading import fitted

    for name in sys.argv[2:]:
        fitted(name).save(f"{sys.argv[1]}/{name}")
"""


def test_two_fits_give_the_same_file(tmp_path, path):
    """In two processes, the other one with other data in memory."""
    names = ["MAC", "MAC-network", "logistic", "trees", "OneHot", "ITQ", "BinaryAutoencoder"]
    run_python(AGAIN, tmp_path, *names)
    for name in names:
        fitted(name).save(path)
        assert path.read_bytes() == (tmp_path / name).read_bytes(), name


def test_a_classifier_that_skops_stores_gives_the_same_bytes():
    trees = GradientBoostingClassifier(n_estimators=2, random_state=0)
    first, second = (sklearnmodels.to_bytes(clone(trees).fit(X, y)) for _ in range(2))
    assert first == second
    result = sklearnmodels.from_bytes(first, sklearnmodels.types(first))
    np.testing.assert_array_equal(result.predict_proba(X), trees.fit(X, y).predict_proba(X))


def test_a_kind_that_is_no_estimator(path):
    baselines.LSH(n_bits=4).fit(X).save(path)
    changed(path, lambda value: None, kind="__class__")
    with pytest.raises(ModelFileError, match="'__class__', which is no estimator of auxhash"):
        auxhash.load(path)


def test_loading_in_another_process(path):
    hasher = MACHash(n_bits=4, **BRIEF).fit(X, y)
    hasher.save(path)
    np.save(path.with_suffix(".npy"), X)
    code = f"""
        import numpy as np, auxhash
        X = np.load({str(path.with_suffix(".npy"))!r})
        print(auxhash.load({str(path)!r}).encode(X).tobytes().hex())
    """
    assert run_python(code).strip() == hasher.encode(X).tobytes().hex()


def test_libsvm_as_hash_function_is_saved(tmp_path, recwarn):
    """The kernel machine of the paper's footnote; nothing of it has to be trusted."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    libsvm = SVC(kernel="rbf", C=100.0, gamma=0.5)
    settings = {"n_similar": 5, "n_dissimilar": 10, "max_iter": 3, "random_state": 0}
    hasher = MACHash(6, hash_function=libsvm, **settings).fit(X, y)
    hasher.save(tmp_path / "model")
    assert not len(recwarn)
    np.testing.assert_array_equal(auxhash.load(tmp_path / "model").encode(X), hasher.encode(X))


def test_tables_that_are_none_are_none_after_loading(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 6))
    for query_function in (None, "linear"):
        hasher = NeighborHash(8, "euclidean", n_steps=2, query_function=query_function).fit(X)
        hasher.save(tmp_path / "m.safetensors")
        loaded = auxhash.load(tmp_path / "m.safetensors")
        assert (loaded.tables_ is None) == (hasher.tables_ is None)
