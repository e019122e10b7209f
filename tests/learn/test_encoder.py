"""An encoder gives the codes of the estimator in the file, and leaves to it what is not plain."""

from dataclasses import replace

import numpy as np
import pandas
import pytest
from sklearn.linear_model import LogisticRegression

import auxhash
from auxhash import ModelFileError
from auxhash.learn import baselines, encoder
from auxhash.learn.encoder import Encoder
from auxhash.learn.summary import summary
from auxhash.mac.hashfunctions import Scaled
from auxhash.model import modelfile

pytestmark = pytest.mark.usefixtures("briefly_refined")


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return rng.standard_normal((90, 6)), rng.integers(0, 3, 90)


def saved(path, points, **parameters):
    model = auxhash.MACHash(**{"n_bits": 11, "max_iter": 2, "random_state": 0, **parameters})
    model.fit(*points).save(path)
    return path


@pytest.mark.parametrize("hash_function", ["linear", "rbf", "network"])
def test_codes_are_those_of_the_estimator(tmp_path, points, hash_function):
    path = saved(tmp_path / "m.safetensors", points, hash_function=hash_function)
    found, expected = encoder.load(path), auxhash.load(path)
    assert isinstance(found, Encoder)
    assert (found.n_bits, found.n_features_in_) == (11, 6)
    X = points[0]
    big = X.astype(">f4"), X.astype(np.float16), (9 * X).astype(np.int16), np.asfortranarray(X)
    for each in (X, X.astype(np.float32), X[:1], X[::2], *big):
        np.testing.assert_array_equal(
            found.decision_function(each), expected.decision_function(each)
        )
        np.testing.assert_array_equal(found.encode(each), expected.encode(each))


@pytest.mark.parametrize("hash_function", ["linear", "rbf", "network"])
def test_codes_of_a_model_learnt_without_labels(tmp_path, points, hash_function):
    path, X = tmp_path / "m.safetensors", points[0]
    hasher = auxhash.NeighborHash(11, hash_function=hash_function, n_steps=3, random_state=0)
    hasher.fit(X).save(path)
    found = encoder.load(path)
    assert isinstance(found, Encoder)
    np.testing.assert_array_equal(found.decision_function(X), hasher.decision_function(X))
    told = summary(path)
    assert (told.kind, told.loss, len(told.history)) == ("NeighborHash", None, 3)


def test_points_are_refused_as_the_estimator_refuses_them(tmp_path, points):
    path = saved(tmp_path / "m.safetensors", points)
    found, expected = encoder.load(path), auxhash.load(path)
    X = points[0]
    wrong = (
        X[:, :5],
        X[0],
        X[:0],
        np.where(X > 1, np.nan, X),
        np.full((2, 6), "a"),
        X[None],
        np.where(X > 1, np.inf, X),
    )
    for each in (*wrong, np.ma.masked_array(X, X > 1), X + 1j):
        with pytest.raises((ValueError, TypeError)) as one:
            found.encode(each)
        with pytest.raises((ValueError, TypeError)) as other:
            expected.encode(each)
        assert str(one.value) == str(other.value)
    for each in ((X > 0).tolist(), X.astype(str)):
        np.testing.assert_array_equal(found.encode(each), expected.encode(each))


def test_points_without_outputs_are_refused(tmp_path, points):
    found = encoder.load(saved(tmp_path / "m.safetensors", points))
    found.hash_function = replace(found.hash_function, map=Scaled(0.0, 1e-9))
    far = np.array([[1e308, -1e308] * 3])
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="row 0 has outputs that"):
        found.encode(far)


def test_other_models_are_estimators(tmp_path, points):
    path = saved(tmp_path / "m.safetensors", points, hash_function=LogisticRegression())
    assert type(encoder.load(path)) is auxhash.MACHash
    baselines.ITQ(n_bits=4).fit(points[0]).save(path)
    assert type(encoder.load(path)) is baselines.ITQ


def test_it_knows_the_names_of_its_columns(tmp_path, points):
    model = auxhash.MACHash(n_bits=4, max_iter=1).fit(*points)
    expected = model.encode(points[0])
    model.feature_names_in_ = np.array(list("abcdef"), object)
    model.save(tmp_path / "m.safetensors")
    found = encoder.load(tmp_path / "m.safetensors")
    assert type(found) is Encoder
    assert found.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(found.encode(points[0]), expected)
    frame = pandas.DataFrame(points[0], columns=list("bacdef"))
    with pytest.raises(ValueError, match="feature names"):
        found.encode(frame)


def change_bits(content, arrays):
    content["parameters"]["dict"]["n_bits"] = 12


def change_width(content, arrays):
    content["learnt"]["dict"]["hash_function_"]["object"][1]["map"]["object"][1]["width"] = -1.0


def change_weights(content, arrays):
    name = next(name for name in arrays if name.endswith(".W"))
    arrays[name] = np.full_like(arrays[name], np.nan)


def change_features(content, arrays):
    content["learnt"]["dict"]["n_features_in_"] = 1


def change_feature(content, arrays):
    content["learnt"]["dict"]["image_feature_"] = "gist:1"


def lose(content, arrays):
    del content["learnt"]["dict"]["hash_function_"]


@pytest.mark.parametrize(
    "change", [change_bits, change_width, change_weights, change_features, change_feature, lose]
)
def test_a_forged_model_is_refused_as_ever(tmp_path, points, change):
    path = saved(tmp_path / "m.safetensors", points)
    model = modelfile.read(path)
    arrays = dict(model.arrays)
    change(model.content["dict"], arrays)
    modelfile.write(path, model._replace(arrays=arrays))
    with pytest.raises(ModelFileError) as one:
        encoder.load(path)
    with pytest.raises(ModelFileError) as other:
        auxhash.load(path)
    assert str(one.value) == str(other.value)


@pytest.mark.parametrize("n_bits", [8, 11])
def test_a_summary_tells_what_the_estimator_holds(tmp_path, points, n_bits):
    path = saved(tmp_path / "m.safetensors", points, n_bits=n_bits, mu=0.5)
    found, expected = summary(path), auxhash.load(path)
    assert (found.kind, found.n_bits, found.n_features) == ("MACHash", n_bits, 6)
    assert found.parameters == expected.get_params(deep=False)
    assert [*found.parameters] == [*expected.get_params(deep=False)]
    np.testing.assert_array_equal(found.codes, expected.codes_)
    assert (found.fingerprint, found.loss) == (expected.fingerprint_, expected.loss_)
    assert [str(vars(step)) for step in found.history] == [
        str(vars(step)) for step in expected.history_
    ]


def test_a_summary_of_other_models(tmp_path, points):
    path = tmp_path / "m.safetensors"
    saved(path, points, refine=auxhash.Refine())
    assert summary(path).parameters["refine"] == auxhash.Refine()
    baselines.ITQ(n_bits=4).fit(points[0]).save(path)
    assert (summary(path).kind, summary(path).loss, summary(path).history) == ("ITQ", None, [])


def change_history(content, arrays):
    content["learnt"]["dict"]["history_"][0]["object"][1]["loss"] = "low"


def change_codes(content, arrays):
    name = next(name for name in arrays if name.endswith(".codes_"))
    arrays[name] = arrays[name] | np.uint8(255)


def change_loss(content, arrays):
    content["learnt"]["dict"]["loss_"] = "low"


@pytest.mark.parametrize("change", [change_bits, change_history, change_codes, change_loss])
def test_a_summary_of_a_forged_model_is_refused(tmp_path, points, change):
    path = saved(tmp_path / "m.safetensors", points)
    model = modelfile.read(path)
    arrays = dict(model.arrays)
    change(model.content["dict"], arrays)
    modelfile.write(path, model._replace(arrays=arrays))
    with pytest.raises(ModelFileError):
        summary(path)
