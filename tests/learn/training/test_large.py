"""Training and encoding of sets that are large: nothing of the size of X is made in doubles."""

import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits

from auxhash import MACHash, TwoStepHash, load
from auxhash.compute import context, threads
from auxhash.compute.arrays import Computed
from auxhash.learn import encoder
from auxhash.learn.baselines import LSH
from auxhash.learn.smooth import Refine
from auxhash.mac.hashfunctions import features, step, svm
from tests.conftest import SOAK

X, y = (part[:600] for part in load_digits(return_X_y=True))
FEW_PAIRS = {"n_bits": 8, "n_similar": 10, "n_dissimilar": 30, "max_iter": 3, "random_state": 0}
TYPES = ("uint8", "int16", "int64", "float16", "float32")


@pytest.fixture
def computed(monkeypatch):
    """Features are computed when needed, however small."""
    monkeypatch.setattr(features, "MAX_FEATURE_BYTES", 0)


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_features_computed_when_needed_give_the_same_codes(kind, monkeypatch):
    def fitted():
        return MACHash(**FEW_PAIRS, hash_function=kind, refine=None).fit(X, y)

    if kind == "network":  # whose hidden layer depends on sums over all points
        moments = features.moments(features.Scaled().fit(X, None), X)
        module = sys.modules["auxhash.mac.hashfunctions.network"]
        monkeypatch.setattr(module, "moments", lambda *args: moments)
    expected = fitted()
    monkeypatch.setattr(features, "MAX_FEATURE_BYTES", 0)
    model = fitted()
    np.testing.assert_array_equal(expected.codes_, model.codes_)
    np.testing.assert_array_equal(expected.decision_function(X), model.decision_function(X))
    assert expected.loss_ == model.loss_


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_their_principal_coordinates(kind, computed):
    h = step.get(kind, 1.0).prepare(X, np.random.default_rng(0))
    rows = h.training_features(X)
    assert isinstance(rows, Computed)
    Z = np.where(np.random.default_rng(0).random((len(X), 4)) < 0.5, -1, 1).astype(np.int8)
    h = h.refit(rows, Z, np.arange(4))
    plain, large = (h.smooth(F, np.random.default_rng(0)).principal for F in (rows[:], rows))
    np.testing.assert_allclose(plain.variance, large.variance, atol=1e-6)
    some = np.array([5, 3, 77])
    same = np.abs(plain.axes.T @ large.axes)  # up to signs, where variances differ
    np.testing.assert_allclose(np.diag(same)[-20:], 1, atol=1e-6)
    sign = np.sign(np.diag(plain.axes.T @ large.axes))[-20:]
    np.testing.assert_allclose(plain.X[some][:, -21:-1] * sign, large.X[some][:, -21:-1], atol=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("far", [0, 200])  # an origin far away takes digits from what is rounded
def test_weights_are_turned_in_place_of_points(dtype, far, computed):
    points = (X + far).astype(dtype)
    h = step.get("linear", 1.0).prepare(points, np.random.default_rng(0))
    F = h.training_features(points)
    assert (F.single is None) == (dtype == "float64")
    W = np.random.default_rng(0).standard_normal((65, 4))
    smooth = h.with_linear(W).smooth(F, np.random.default_rng(0))
    rows, pull = np.array([5, 3, 77]), np.float32([[1, 2, 3, 4], [0, 1, -1, 2], [-3, 0, 1, 1]])
    with context.using(n_jobs=2), threads.pool() as run:
        outputs, [slope] = smooth.batch(rows, run), smooth.gradients(rows, pull, run)
    scaled = (points[rows].astype(float) - h.map.low) / h.map.width
    centred = np.hstack([scaled - smooth.principal.mean, np.ones((3, 1))])
    turn = np.eye(65)
    turn[:-1, :-1] = smooth.principal.axes / smooth.principal.scale
    coordinates = centred @ turn
    np.testing.assert_allclose(outputs, coordinates @ smooth.W, atol=1e-5)
    decayed = 0.005 * np.vstack([smooth.W[:-1], np.zeros((1, 4))])
    np.testing.assert_allclose(slope, coordinates.T @ pull + decayed, atol=1e-4)
    np.testing.assert_allclose(smooth.principal.take(rows), coordinates, atol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_rough_products_lead_to_the_same_optimum(dtype, computed):
    """Conjugate gradients in single precision; what they lead to is judged in double."""
    points = X.astype(dtype)
    Z = np.where(np.random.default_rng(0).random((len(X), 6)) < 0.5, -1, 1).astype(np.int8)
    h = step.get("linear", 100.0).prepare(points, np.random.default_rng(0))
    rough, plain = h.training_features(points), h.features(points)
    assert rough.single is not None
    values = [svm.objective(svm.fit(F, Z, 100.0), plain, Z, 100.0) for F in (rough, plain)]
    np.testing.assert_allclose(*values, rtol=2 * svm.TOLERANCE)


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_refinement_of_computed_features(kind, computed):
    refine = "auto" if SOAK else Refine(n_steps=100, keep="refined")
    model = MACHash(**FEW_PAIRS, hash_function=kind, refine=refine).fit(X, y)
    assert model.score(X, y) > 0.5


def test_moments_in_parts(computed):
    scaled = features.Scaled().fit(X, None)
    mean, variance = features.moments(scaled, X)
    np.testing.assert_allclose(mean, scaled(X).mean(axis=0))
    np.testing.assert_allclose(variance, scaled(X).var(axis=0))


@pytest.mark.parametrize("dtype", TYPES[:-1])
@pytest.mark.parametrize("method", [TwoStepHash, LSH])
def test_the_type_of_whole_numbers_does_not_matter(dtype, method):
    settings = FEW_PAIRS if method is TwoStepHash else {"n_bits": 8, "random_state": 0}
    wide, short = (method(**settings).fit(points, y) for points in (X, X.astype(dtype)))
    np.testing.assert_array_equal(wide.codes_, short.codes_)
    assert wide.data_fingerprint_ == short.data_fingerprint_
    assert wide.fingerprint_ == short.fingerprint_
    np.testing.assert_array_equal(wide.encode(X), short.encode(X.astype(dtype)))
    np.testing.assert_array_equal(
        wide.decision_function(X), short.decision_function(X.astype(dtype))
    )


def test_half_precision_is_checked():
    wrong = X.astype(np.float16)
    wrong[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        TwoStepHash(**FEW_PAIRS).fit(wrong, y)


def test_a_memory_map_is_never_copied(tmp_path, monkeypatch, computed):
    path = tmp_path / "X.npy"
    rng = np.random.default_rng(0)
    labels = np.arange(20_000) % 5
    made = np.lib.format.open_memmap(path, "w+", np.uint8, (len(labels), 200))
    made[:] = rng.integers(0, 200, made.shape) + 10 * labels[:, None]
    made.flush()
    points = np.load(path, mmap_mode="r")
    few = {**FEW_PAIRS, "n_similar": 2, "n_dissimilar": 3, "max_iter": 1}
    TwoStepHash(**few).fit(points[:500], labels[:500])  # compiles
    tracemalloc.start()
    model = TwoStepHash(**few, n_jobs=1).fit(points, labels)
    assert tracemalloc.get_traced_memory()[1] < 0.6 * points.size * 8
    tracemalloc.reset_peak()
    monkeypatch.setattr(step, "POINTS_PER_CHUNK", 512)
    codes = model.encode(points)
    peak = tracemalloc.get_traced_memory()[1] - tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert peak < 0.1 * points.size * 8  # some chunks
    np.testing.assert_array_equal(codes, model.codes_)
    model.save(tmp_path / "model.safetensors")
    for read in (load, encoder.load):
        result = read(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(result.encode(np.array(points[:300])), codes[:300])


def test_a_row_without_a_sign_is_told_by_its_number(monkeypatch):
    monkeypatch.setattr(step, "POINTS_PER_CHUNK", 100)
    outputs = np.ones((600, 3))
    outputs[250, 1] = np.nan
    for function in (step.decided, step.packed):
        with pytest.raises(ValueError, match="row 250"):
            function(lambda chunk: chunk, outputs)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("n", [1, 7, 600])
def test_outputs_at_once_are_those_of_the_features(kind, n):
    model = TwoStepHash(**FEW_PAIRS, hash_function=kind).fit(X, y)
    h = model.hash_function_
    np.testing.assert_array_equal(step.outputs(h, X[:n]), h.decision(h.features(X[:n])))
