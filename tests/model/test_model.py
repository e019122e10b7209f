"""A model is a value: it encodes as its estimator does, has a fingerprint, needs nothing else."""

import json
import pickle
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier

import auxhash
from auxhash import Model, ModelFileError
from auxhash.learn import baselines, encoder
from auxhash.learn.smooth import Refine
from auxhash.mac.hashfunctions import (
    ClassifierHash,
    NetworkHash,
    RadialBasis,
    Scaled,
    SVMHash,
    Unit,
)
from auxhash.model import modelfile
from auxhash.model.functions import Centred, WeightedHash
from auxhash.model.model import LearntFrom

FIXTURES = Path(__file__).parent / "fixtures"  # files of format 1, by auxhash 0.1.0
OLD = json.loads((FIXTURES / "codes.json").read_text())
POINTS = np.loadtxt(FIXTURES / "points.csv", delimiter=",")
KINDS = {
    "linear": {"hash_function": "linear"},
    "rbf": {"hash_function": "rbf"},
    "network": {"hash_function": "network"},
}
RNG = np.random.default_rng(0)
X, y = RNG.standard_normal((90, 6)), RNG.integers(0, 3, 90)


@cache
def fitted(kind="linear", n_bits=11):
    """For tests that leave it as it is."""
    brief = {"max_iter": 2, "refine": Refine(n_steps=20), "random_state": 0}
    return auxhash.MACHash(n_bits, **KINDS[kind], **brief).fit(X, y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_those_of_the_estimator(kind, path):
    hasher = fitted(kind)
    hasher.save(path)
    loaded = Model.load(path)
    assert type(loaded) is Model
    assert (loaded.n_bits, loaded.n_features, loaded.learnt.method) == (11, 6, "MACHash")
    others = X.astype(">f4"), X.astype(np.float16), (9 * X).astype(np.int16), np.asfortranarray(X)
    for each in (X, X.astype(np.float32), X[:1], X[::2], *others):
        for method in ("decision_function", "encode", "transform"):
            np.testing.assert_array_equal(
                getattr(loaded, method)(each), getattr(hasher, method)(each)
            )


@pytest.mark.parametrize("kind", KINDS)
def test_codes_of_a_model_learnt_without_labels(kind, path):
    hasher = auxhash.NeighborHash(11, **KINDS[kind], n_steps=3, random_state=0).fit(X)
    hasher.save(path)
    loaded = Model.load(path)
    assert loaded.metric == "cosine"
    np.testing.assert_array_equal(loaded.decision_function(X), hasher.decision_function(X))


def test_a_value_is_not_changed():
    with pytest.raises(FrozenInstanceError):
        fitted().model_.n_bits = 12
    assert replace(fitted().model_, n_jobs=1).fingerprint == fitted().model_.fingerprint


def test_an_estimator_keeps_the_model_that_it_has_learnt():
    hasher = auxhash.TwoStepHash(4, random_state=0).fit(X, y)
    model = hasher.model_
    assert hasher.model_ is model
    assert hasher.fingerprint_ == hasher.fingerprint == model.fingerprint
    hasher.fit(X[:, :5], y)
    assert (hasher.model_.n_features, model.n_features) == (5, 6)
    hasher.image_feature_ = "gist:32"
    assert hasher.model_.image_feature == "gist:32"
    assert pickle.loads(pickle.dumps(hasher)).fingerprint_ == hasher.fingerprint_


def test_an_estimator_pickled_by_an_older_version():
    hasher = fitted()
    state = hasher.__getstate__()
    assert "model_" not in state
    state["fingerprint_"] = state.pop("data_fingerprint_")  # as it was called
    old = object.__new__(auxhash.MACHash)
    old.__setstate__(state)
    assert old.data_fingerprint_ == hasher.data_fingerprint_
    assert old.fingerprint_ == hasher.fingerprint_


def test_what_it_was_learnt_from():
    hasher = fitted()
    learnt = hasher.model_.learnt
    assert (learnt.method, learnt.n_points, learnt.loss) == ("MACHash", 90, hasher.loss_)
    assert learnt.data == hasher.data_fingerprint_ != hasher.fingerprint_
    assert learnt.parameters["n_bits"] == 11
    assert learnt.parameters["refine"].startswith("Refine(n_steps=20, ")
    bits = np.unpackbits(hasher.codes_, axis=1, count=11, bitorder="little")
    np.testing.assert_allclose(learnt.balance, bits.mean(axis=0))


def lists(*arrays):
    return tuple(array.tolist() for array in arrays)


@pytest.mark.parametrize("validation", [(X[:50], y[:50]), lists(X[:50], y[:50])])
def test_no_data_are_inside(validation, path):
    sizes = []
    for settings in ({}, {"validation": validation, "init": np.ones((90, 4), np.int8)}):
        hasher = auxhash.TwoStepHash(4, random_state=np.random.default_rng(3), **settings)
        hasher.fit(X, y).model_.save(path)
        sizes.append(path.stat().st_size)
    assert sizes[1] - sizes[0] < 100
    loaded = auxhash.load(path)
    assert type(loaded) is Model
    assert loaded.learnt.parameters["validation"] == "points of shape (50, 6)"
    assert loaded.learnt.parameters["random_state"] == "Generator"


@pytest.mark.parametrize(("n_features", "n_bits"), [(6, 8), (300, 64)])
def test_the_size_of_a_file_beside_its_arrays(n_features, n_bits, path):
    points = np.random.default_rng(0).standard_normal((500, n_features))
    baselines.LSH(n_bits, random_state=0).fit(points).model_.save(path)
    arrays = 8 * (n_features * (n_bits + 1) + n_bits)
    assert arrays < path.stat().st_size < arrays + 2500
    h = SVMHash(Scaled(), W=np.ones((n_features + 1, n_bits)))
    Model(h, n_bits, n_features, LearntFrom("MACHash", 3, "none")).save(path)
    assert path.stat().st_size < 8 * (n_features + 1) * n_bits + 2500


def test_an_estimator_s_file_holds_no_array_twice(path):
    points = np.random.default_rng(0).standard_normal((90, 200))
    for hasher in (baselines.LSH(64, random_state=0), baselines.SDH(8, 80, random_state=0)):
        hasher.fit(points, np.arange(90) % 3).save(path)
        arrays = modelfile.read(path).arrays
        sizes = [array.nbytes for array in arrays.values() if array.nbytes > 4000]
        assert len(sizes) == len(set(sizes))
        loaded = auxhash.load(path)
        assert loaded.model_.fingerprint == hasher.fingerprint_


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (X[:, :5], "X has 5 features, but MACHash is expecting 6 features"),
        (X[0], r"X must be of shape \(n, 6\).*got shape \(6,\)"),
        (X[None], r"X must be of shape \(n, 6\)"),
        (3.0, r"X must be of shape \(n, 6\)"),
        (X[:0], "X must hold at least one point, got none"),
        (np.where(np.arange(90)[:, None] == 7, np.nan, X), "X must be finite; row 7 is not"),
        (np.where(np.arange(90)[:, None] == 7, np.inf, X), "X must be finite; row 7 is not"),
        (np.full((2, 6), "a"), "X must hold numbers: could not convert"),
        (np.array([[None] * 6]), "X must be finite; row 0 is not"),
        (np.array([[{}] * 6]), "X must hold numbers: float"),
        (np.ma.masked_array(X, X > 1), "X must not be missing; row"),
        (X + 1j, "X must hold real numbers, got complex128"),
        (csr_array(X), r"X must be dense, got a csr_array: give X\.toarray\(\)"),
    ],
)
def test_wrong_points_are_refused(wrong, message):
    for method in (fitted().model_.encode, fitted().model_.decision_function):
        with pytest.raises(ValueError, match=message) as caught:
            method(wrong)
        assert "\n" not in str(caught.value)


def test_anything_that_holds_numbers_is_taken():
    model = fitted().model_
    for each in ((X > 0).tolist(), X.astype(str), X.astype(object), pandas.DataFrame(X)):
        expected = model.encode(np.asarray(each, np.float64))
        np.testing.assert_array_equal(model.encode(each), expected)


def test_the_names_of_columns():
    model = replace(fitted().model_, feature_names=tuple("abcdef"))
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    np.testing.assert_array_equal(model.encode(frame), model.encode(X))
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match=r"X must have the feature names.*: a, b, c, \.\.\."):
        model.encode(frame[list("bacdef")])


def test_points_without_outputs_are_refused():
    model = fitted().model_
    model = replace(model, hash_function=replace(model.hash_function, map=Scaled(0.0, 1e-9)))
    far = np.array([[1e308, -1e308] * 3])
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="row 0 has outputs that"):
        model.encode(far)


def test_a_value_with_an_unusual_classifier_needs_trust(path):
    pytest.importorskip("skops")
    hasher = baselines.OneHot(4, classifier=AdaBoostClassifier(n_estimators=2), random_state=0)
    model = hasher.fit(X, y).model_
    with pytest.warns(UserWarning, match=r"cannot check; whoever loads it.*trusted=\['sklearn"):
        model.save(path)
    with pytest.raises(ModelFileError, match="could crash the process") as caught:
        Model.load(path)
    trusted = re.findall(r"'(sklearn[\w.]+)'", str(caught.value).partition("trusted=")[2])
    np.testing.assert_array_equal(Model.load(path, trusted).encode(X), hasher.encode(X))


def test_tables_are_refused_where_there_are_none():
    with pytest.raises(ValueError, match="this model of MACHash has learnt no tables of queries"):
        fitted().model_.tables(X)


FUNCTIONS = {
    "linear": SVMHash(Scaled(1.0, 2.0), W=np.arange(12.0).reshape(4, 3)),
    "rbf": SVMHash(RadialBasis(9, Unit(), np.arange(6.0).reshape(2, 3), 0.5), W=np.ones((3, 2))),
    "network": NetworkHash(2, V=np.ones((4, 2)), W=np.arange(12.0).reshape(6, 2)),
    "baseline": WeightedHash(Centred(np.arange(3.0)), np.ones((3, 2))),
}
WITHOUT_EFFECT = [
    ("linear", {"C": 3.0}),
    ("linear", {"decay": 0.5}),
    ("linear", {"W": np.asfortranarray(FUNCTIONS["linear"].W)}),
    ("linear", {"W": FUNCTIONS["linear"].W.astype(">f8")}),
    ("rbf", {"map": replace(FUNCTIONS["rbf"].map, n_centers=10)}),
    ("network", {"n_hidden": None, "dropout": 0.7, "noise": 0.1, "thinned": True}),
    ("network", {"C": 3.0, "decay": 0.5}),
]
OF_EFFECT = [
    ("linear", {"W": FUNCTIONS["linear"].W + 1e-16 * np.eye(4, 3)}),
    ("linear", {"W": FUNCTIONS["linear"].W[:, ::-1]}),
    ("linear", {"W": FUNCTIONS["linear"].W.reshape(3, 4)}),
    ("linear", {"map": Scaled(1.0, 3.0)}),
    ("linear", {"map": Unit()}),
    ("rbf", {"map": replace(FUNCTIONS["rbf"].map, sigma=0.6)}),
    ("rbf", {"map": replace(FUNCTIONS["rbf"].map, scaled=Scaled())}),
    ("network", {"V": 2 * FUNCTIONS["network"].V}),
    ("baseline", {"map": Centred(np.ones(3))}),
    ("baseline", {"W": np.zeros((3, 2))}),
]


def mark(h):
    return Model(h, 2, 3, LearntFrom("none", 1, "")).fingerprint


@pytest.mark.parametrize(("name", "changes"), WITHOUT_EFFECT)
def test_training_alone_does_not_count_for_the_fingerprint(name, changes):
    assert mark(replace(FUNCTIONS[name], **changes)) == mark(FUNCTIONS[name])


@pytest.mark.parametrize(("name", "changes"), OF_EFFECT)
def test_what_decides_the_bits_counts_for_the_fingerprint(name, changes):
    assert mark(replace(FUNCTIONS[name], **changes)) != mark(FUNCTIONS[name])


def test_the_classifiers_of_bits_count_and_their_pattern_does_not():
    trees = ClassifierHash(HistGradientBoostingClassifier(max_iter=2, max_depth=2))
    h = auxhash.TwoStepHash(2, hash_function=trees, random_state=0).fit(X, y).hash_function_
    assert mark(replace(h, seed=7, classifier=None)) == mark(h)
    assert mark(replace(h, fitted=h.fitted[::-1])) != mark(h)


def test_a_fingerprint_is_the_same_on_every_machine():
    assert {name: mark(h) for name, h in FUNCTIONS.items()} == {
        "linear": "1963bc26ab0392f9",
        "rbf": "e7d6664d3ff44af0",
        "network": "12fdecbf2325bbac",
        "baseline": "0315a8d80d16f94e",
    }


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", OLD)
def test_files_of_format_1_load(name, path):
    file, expected = FIXTURES / f"{name}.safetensors", OLD[name]
    hasher, model = auxhash.load(file), encoder.load(file)
    assert (type(hasher).__name__, hasher.n_bits) == (expected["kind"], expected["n_bits"])
    assert hasher.data_fingerprint_ == model.learnt.data == expected["learnt_from"]
    assert model.fingerprint == hasher.fingerprint_
    for one in (hasher, model):
        assert one.encode(POINTS).tobytes().hex() == expected["codes"]
    hasher.save(path)
    loaded = Model.load(path)
    assert loaded.fingerprint == model.fingerprint
    assert loaded.feature_names == model.feature_names
    assert loaded.image_feature == model.image_feature
    np.testing.assert_array_equal(loaded.learnt.balance, model.learnt.balance)


def test_a_baseline_of_format_1_needs_its_estimator():
    with pytest.raises(ModelFileError, match=r"holds 'ITQ': auxhash\.load\(path\)\.model_ reads"):
        Model.load(FIXTURES / "ITQ.safetensors")
    assert type(Model.load(FIXTURES / "mac-linear.safetensors")) is Model


ALONE = """
    import sys
    from auxhash.model import Model
    import numpy as np
    X = np.load(sys.argv[1])
    for path in sys.argv[2:]:
        print(Model.load(path).encode(X).tobytes().hex())
    heavy = {"sklearn", "scipy", "numba", "numpy.ma", "pandas", "safetensors", "rich"}
    assert not heavy & {*sys.modules}, heavy & {*sys.modules}
    assert not [name for name in sys.modules if name.startswith("auxhash.learn")]
"""


def test_nothing_but_numpy_is_imported(tmp_path):
    np.save(tmp_path / "X.npy", X)
    paths = []
    for kind in KINDS:
        paths.append(tmp_path / kind)
        fitted(kind).save(paths[-1])
    paths.append(tmp_path / "LSH")
    lsh = baselines.LSH(8, random_state=0).fit(X)
    lsh.save(paths[-1])
    code = "\n".join(line[4:] for line in ALONE.splitlines())
    command = [sys.executable, "-c", code, str(tmp_path / "X.npy"), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = [*(fitted(kind) for kind in KINDS), lsh]
    assert done.stdout.split() == [one.encode(X).tobytes().hex() for one in expected]


def test_the_training_codes_are_not_read(path):
    fitted().save(path)
    data = path.read_bytes()
    codes = fitted().codes_.tobytes()
    assert data.count(codes) == 1
    path.write_bytes(data.replace(codes, bytes(len(codes))))
    assert Model.load(path).fingerprint == fitted().fingerprint_
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        auxhash.load(path)


def test_a_damaged_weight_is_noticed(path):
    fitted().save(path)
    data, W = path.read_bytes(), fitted().hash_function_.W
    path.write_bytes(data.replace(W.tobytes(), (W + 1).tobytes()))
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        Model.load(path)


def stored(path):
    """The content of a file, the fields of the model in it, and its arrays."""
    fitted().save(path)
    model = modelfile.read(path)
    return model, model.content["dict"]["model"]["object"][1], dict(model.arrays)


def change_bits(fields, arrays):
    fields["n_bits"] = 12


def change_width(fields, arrays):
    fields["hash_function"]["object"][1]["map"]["object"][1]["width"] = -1.0


def change_weights(fields, arrays):
    name = next(name for name in arrays if name.endswith(".W"))
    arrays[name] = np.full_like(arrays[name], np.nan)


def change_features(fields, arrays):
    fields["n_features"] = 1


def change_picture(fields, arrays):
    fields["image_feature"] = "gist:1"


def change_names(fields, arrays):
    fields["feature_names"] = {"tuple": ["a"]}


def change_metric(fields, arrays):
    fields["metric"] = "hamming"


def change_prefixes(fields, arrays):
    fields["prefixes"] = {"tuple": [4]}


def change_origin(fields, arrays):
    fields["learnt"] = None


def change_points(fields, arrays):
    fields["learnt"]["object"][1]["n_points"] = -1


def lose(fields, arrays):
    del fields["hash_function"]


FORGERIES = [
    (change_bits, "n_bits is 12, but it was fitted to 11 bits"),
    (change_width, "width must be a number above 0"),
    (change_weights, "W must hold finite numbers"),
    (change_features, "mismatch|shape"),
    (change_picture, "image_feature_ must be"),
    (change_names, "1 feature names for 6 features"),
    (change_metric, "metric must be one of"),
    (change_prefixes, "prefixes must be a whole number from 8"),
    (change_origin, "does not say what it was learnt from"),
    (change_points, "n_points must be a whole number"),
    (lose, "malformed|hash_function|nothing refers"),
]


@pytest.mark.parametrize(("change", "message"), FORGERIES)
def test_a_forged_model_is_refused(change, message, path):
    model, fields, arrays = stored(path)
    change(fields, arrays)
    modelfile.write(path, model._replace(arrays=arrays))
    for load in (Model.load, encoder.load, auxhash.load):
        with pytest.raises(ModelFileError, match=f"cannot be loaded: .*({message})"):
            load(path)


def test_an_estimator_beside_another_model_is_refused(path):
    baselines.LSH(4, random_state=0).fit(X).save(path)
    lsh = modelfile.read(path)
    other = baselines.LSH(4, random_state=1).fit(X)
    arrays = {**lsh.arrays, "LSH.learnt.hyperplanes_": other.hyperplanes_}
    lsh.content["dict"]["learnt"]["dict"]["hyperplanes_"] = {
        "array": ["LSH.learnt.hyperplanes_", "float64", [6, 4], "C"]
    }
    modelfile.write(path, lsh._replace(arrays=arrays))
    with pytest.raises(ModelFileError, match="its model is not that of the LSH beside it"):
        auxhash.load(path)


@pytest.mark.parametrize("place", ["__class__", "map.__init__", "V"])
def test_a_place_that_is_no_field_is_refused(place, path):
    model, _, _ = stored(path)
    learnt = model.content["dict"]["learnt"]["dict"]
    learnt["hash_function_"] = {"object": ["OfModel", {"place": place}]}
    modelfile.write(path, model)
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        auxhash.load(path)
