import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from auxhash.compute import context
from auxhash.mac.hashfunctions import linear, rbf, svm
from tests.conftest import SOAK


@pytest.fixture(scope="module")
def digits():
    X, y = (part if SOAK else part[:600] for part in load_digits(return_X_y=True))
    # Bits of several kinds: class against class, odd against even, noise, nearly constant.
    rng = np.random.default_rng(0)
    Z = np.column_stack([y < 5, y % 2, y == 3, rng.random(len(y)) < 0.5, np.arange(len(y)) < 2])
    return X, np.where(Z, 1, -1).astype(np.int8)


def by_liblinear(F, z, C, weight=None):
    """LinearSVC appends the constant itself and, as we do, regularises the bias."""
    model = LinearSVC(C=C, dual=False, tol=1e-6, max_iter=100000)
    model.fit(F[:, :-1], z, sample_weight=weight)
    return np.append(model.coef_, model.intercept_)[:, None]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", [linear, rbf])
def test_the_objective_is_as_low_as_liblinear_s_cold_and_warm(digits, kind, C):
    X, Z = digits
    F = kind().prepare(X, np.random.default_rng(0)).features(X)
    cold = svm.fit(F, Z, C)
    start = svm.fit(F, -Z[::-1], C)  # far from the solution
    warm = svm.fit(F, Z, C, start)
    for k in range(Z.shape[1]):
        z = Z[:, k : k + 1]
        best = svm.objective(by_liblinear(F, z.ravel(), C), F, z, C)[0]
        assert svm.objective(cold[:, k : k + 1], F, z, C)[0] <= 1.001 * best
        assert svm.objective(warm[:, k : k + 1], F, z, C)[0] <= 1.001 * best


def test_weighted_points(digits):
    X, Z = digits
    F = linear().prepare(X, np.random.default_rng(0)).features(X)
    weight = np.random.default_rng(1).uniform(0, 3, Z.shape)
    W = svm.fit(F, Z, 1.0, weight=weight)
    for k in range(Z.shape[1]):
        z, s = Z[:, k : k + 1], weight[:, k : k + 1]
        best = svm.objective(by_liblinear(F, z.ravel(), 1.0, s.ravel()), F, z, 1.0, s)[0]
        assert svm.objective(W[:, k : k + 1], F, z, 1.0, s)[0] <= 1.001 * best


def test_collinear_features_do_not_break_it():
    """Radial basis functions of close centres; single precision fails here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * 1e-3
    h = rbf(n_centers=200).prepare(X, rng)
    F = h.features(X)
    assert np.linalg.cond(F) > 1e8
    z = np.where(X[:, :1] * X[:, 1:] > 0, 1, -1).astype(np.int8)
    W = svm.fit(F, z, 100.0)
    best = svm.objective(by_liblinear(F, z.ravel(), 100.0), F, z, 100.0)[0]
    assert svm.objective(W, F, z, 100.0)[0] <= 1.001 * best


def test_constant_bits_constant_features_and_a_zero_weight():
    F = np.ones((10, 2))
    Z = np.ones((10, 2), np.int8)
    Z[:, 1] = -1
    W = svm.fit(F, Z, 100.0)
    np.testing.assert_array_equal(np.sign(F @ W), Z)
    nothing = svm.fit(F, Z, 100.0, weight=np.zeros((10, 2)))
    np.testing.assert_array_equal(nothing, 0)


def test_same_weights_on_any_number_of_threads(digits):
    X, Z = digits
    F = linear().prepare(X, np.random.default_rng(0)).features(X)
    one, two, four = (context.using(n_jobs=n)(svm.fit)(F, Z, 100.0) for n in (1, 2, 4))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, four)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [60, 200, 900])  # fewer points than features; some more; many more
def test_classes_that_lie_well_apart(n, weighted):
    """Few points inside the margin, where Newton's systems are solved exactly; noise, where not."""
    rng = np.random.default_rng(n)
    y = rng.integers(0, 4, n)
    X = rng.normal(size=(4, 100))[y] + 0.7 * rng.normal(size=(n, 100))
    F = np.column_stack([X, np.ones(n)])
    Z = np.where(np.column_stack([y < 2, y % 2, rng.random(n) < 0.5]), 1, -1).astype(np.int8)
    weight = rng.uniform(0.0, 2.0, Z.shape) if weighted else None
    W = svm.fit(F, Z, 10.0, weight=weight)
    with context.using(n_jobs=1):
        np.testing.assert_array_equal(W, svm.fit(F, Z, 10.0, weight=weight))
    for k in range(Z.shape[1]):
        z, s = Z[:, k : k + 1], None if weight is None else weight[:, k : k + 1]
        peer = by_liblinear(F, z.ravel(), 10.0, None if s is None else s.ravel())
        best = svm.objective(peer, F, z, 10.0, s)[0]
        assert svm.objective(W[:, k : k + 1], F, z, 10.0, s)[0] <= 1.0001 * best


@pytest.mark.parametrize("C", [100.0, 1e4])
def test_classes_with_a_narrow_margin(C):
    """Steps must not go in circles where hardly more points are inside than there are features."""
    rng = np.random.default_rng(0)
    n, n_features = (900, 200) if SOAK else (450, 100)
    F = np.hstack([rng.normal(size=(n, n_features)), np.ones((n, 1))])
    outputs = F @ rng.normal(size=(n_features + 1, 4))
    Z = np.where(outputs < np.median(outputs, axis=0), -1, 1).astype(np.int8)
    result = svm.objective(svm.fit(F, Z, C), F, Z, C)
    peer = LinearSVC(C=C, fit_intercept=False, dual=True, tol=1e-5, max_iter=100_000)
    W = np.column_stack([peer.fit(F, z).coef_[0] for z in Z.T])
    assert (result <= 1.02 * svm.objective(W, F, Z, C)).all()
