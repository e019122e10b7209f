"""The exported graph, run in onnxruntime, gives the bytes that `encode` gives."""

import re
import sys
from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import auxhash
from auxhash import MACHash, NeighborHash, TwoStepHash
from auxhash.compute.extras import install
from auxhash.learn import baselines
from tests.learn.baselines.test_contract import VARIANTS, label, make

pytestmark = pytest.mark.usefixtures("briefly_refined", "keeps_tables")

FEW_PAIRS = {"n_similar": 10, "n_dissimilar": 20, "random_state": 0, "n_jobs": 1, "max_iter": 3}
NOTHING = 1e-9  # outputs up to this, relative to the largest, are within rounding of zero

X, y = make_blobs(160, 16, centers=4, cluster_std=4.0, random_state=3)
HASHERS = {
    **{label(variant): make(variant[0], 12, **variant[1]) for variant in VARIANTS},
    "MAC": MACHash(n_bits=12, **FEW_PAIRS),
    "MAC-rbf": MACHash(n_bits=17, hash_function="rbf", **FEW_PAIRS),
    "MAC-network": MACHash(n_bits=17, hash_function="network", **FEW_PAIRS),
    "two-step": TwoStepHash(n_bits=8, **FEW_PAIRS),
    "neighbours": NeighborHash(n_bits=17, n_steps=5, random_state=0, n_jobs=1),
    "neighbours-linear": NeighborHash(17, "euclidean", "linear", n_steps=5, random_state=0),
    "neighbours-rbf": NeighborHash(12, "cosine", "rbf", n_steps=5, random_state=0, n_jobs=1),
    **{
        f"tables-{of}-{by}": NeighborHash(
            17, "euclidean", of, query_function=by, n_steps=5, random_state=0, n_jobs=1
        )
        for of in ("linear", "rbf", "network")
        for by in ("linear", "network")
    },
    "LSH-1": baselines.LSH(n_bits=1, random_state=0),
}


@cache
def fitted(name):
    """For tests that leave it as it is."""
    return clone(HASHERS[name]).fit(X, y)


def queries(dtype):
    """Training points with noise, and the training points themselves."""
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=2.0, size=(2000, 16))
    return np.concatenate([X[rng.integers(len(X), size=2000)] + noise, X]).astype(dtype)


def run(path, points):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["codes"], {"features": points})[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", HASHERS)
def test_the_same_bytes(name, dtype, tmp_path, record_property):
    hasher = fitted(name)
    auxhash.export_onnx(hasher, tmp_path / "model.onnx", dtype)
    points = queries(dtype)
    result, expected = run(tmp_path / "model.onnx", points), hasher.encode(points)
    assert result.dtype == np.uint8
    assert result.shape == expected.shape
    outputs = np.abs(hasher.decision_function(points))
    near = (outputs <= NOTHING * outputs.max()).any(axis=1)
    other = (result != expected).any(axis=1)
    record_property("points with an output within rounding of zero", int(near.sum()))
    record_property("exceptions among them", int(other.sum()))
    assert not (other & ~near).any()
    assert near.mean() < 0.01 or name.startswith("AGH")  # AGH's outputs can be 0


@pytest.mark.parametrize("name", [name for name in HASHERS if name.startswith("tables")])
def test_the_same_tables(name, tmp_path):
    hasher = fitted(name)
    auxhash.export_onnx(hasher, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [output.name for output in session.get_outputs()] == ["codes", "tables"]
    points = queries(np.float32)
    tables, expected = session.run(["tables"], {"features": points})[0], hasher.tables(points)
    assert (tables.dtype, tables.shape) == (np.float32, (len(points), 3, 256))
    np.testing.assert_allclose(tables, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    empty = session.run(None, {"features": points[:0]})
    assert [part.shape for part in empty] == [(0, 3), (0, 3, 256)]


def test_it_says_what_it_is(tmp_path):
    auxhash.export_onnx(fitted("MAC-rbf"), tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    assert model.producer_name == "auxhash"
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata == {"fingerprint": fitted("MAC-rbf").fingerprint_}
    assert "bit k of a code at byte k // 8, bit k % 8" in model.doc_string
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]
    assert run(tmp_path / "model.onnx", np.empty((0, 16), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("method", [baselines.OneHot, baselines.LogitLSH])
@pytest.mark.parametrize("two", [False, True], ids=["several classes", "two classes"])
@pytest.mark.parametrize(
    "scaler", [StandardScaler(with_mean=False), StandardScaler(with_std=False)], ids=repr
)
def test_logistic_regression(method, two, scaler, tmp_path):
    labels = y > 1 if two else y
    classifier = make_pipeline(scaler, LogisticRegression(max_iter=2000))
    hasher = method(n_bits=10, classifier=classifier, random_state=0).fit(X, labels)
    auxhash.export_onnx(hasher, tmp_path / "model.onnx", "float64")
    points = queries(np.float64)
    np.testing.assert_array_equal(run(tmp_path / "model.onnx", points), hasher.encode(points))


@pytest.mark.parametrize(
    "hasher",
    [
        TwoStepHash(n_bits=2, hash_function=LogisticRegression(), **FEW_PAIRS),
        baselines.OneHot(n_bits=4, classifier=GaussianNB()),
    ],
    ids=["ClassifierHash", "GaussianNB"],
)
def test_other_models_are_refused(hasher, tmp_path, request):
    hasher.fit(X, y)
    name = request.node.callspec.id
    with pytest.raises(TypeError, match=f"{name} cannot be exported to ONNX: only"):
        auxhash.export_onnx(hasher, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_wrong_arguments(tmp_path, monkeypatch):
    with pytest.raises(NotFittedError):
        auxhash.export_onnx(MACHash(), tmp_path / "model.onnx")
    fitted = clone(HASHERS["LSH-1"]).fit(X)
    with pytest.raises(ValueError, match='dtype must be "float32" or "float64"'):
        auxhash.export_onnx(fitted, tmp_path / "model.onnx", "float16")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=re.escape(install("onnx"))):
        auxhash.export_onnx(fitted, tmp_path / "model.onnx")
