"""ITQ and its relatives: rotations of principal or canonical components."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from auxhash.learn import baselines
from auxhash.learn.baselines.ccaitq import canonical_directions
from auxhash.mac.hashfunctions.rotation import principal_axes, quantize, random_rotation

faiss = pytest.importorskip("faiss")


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((500, 20)) @ rng.standard_normal((20, 20)) + 3


def test_principal_axes_are_those_of_scikit_learn(X):
    mean, axes = principal_axes(X, 6, "PCA")
    reference = PCA(6).fit(X)
    np.testing.assert_allclose(mean, reference.mean_)
    cosine = np.abs((axes * reference.components_.T).sum(axis=0))
    np.testing.assert_allclose(cosine, 1, atol=1e-9)


def test_tpca_is_the_sign_of_scikit_learns_components(X):
    outputs = baselines.TPCA(6).fit(X).decision_function(X)
    np.testing.assert_allclose(np.abs(outputs), np.abs(PCA(6).fit_transform(X)), atol=1e-8)


def test_an_axis_without_variance_gives_a_constant_bit():
    X = np.column_stack([np.arange(10.0), np.arange(10.0)])
    assert (baselines.TPCA(2).fit(X).transform(X)[:, 1] == 1).all()


@pytest.mark.parametrize("method", [baselines.ITQ, baselines.CCAITQ])
def test_the_quantisation_error_never_rises_and_the_rotation_stays_orthogonal(method, X):
    hasher = method(8, random_state=1).fit(X, np.arange(len(X)) % 3)
    assert len(hasher.errors_) == hasher.n_iter + 1
    assert (np.diff(hasher.errors_) <= 1e-12).all()
    assert hasher.errors_[-1] < hasher.errors_[0]
    np.testing.assert_allclose(hasher.rotation_.T @ hasher.rotation_, np.eye(8), atol=1e-10)


def test_the_error_is_no_worse_than_that_of_faiss_for_the_same_components(X):
    mean, axes = principal_axes(X, 8, "ITQ")
    V = (X - mean) @ axes
    V /= np.sqrt((V**2).mean())
    theirs = faiss.ITQMatrix(8)
    theirs.train(V.astype(np.float32))
    starts = [random_rotation(8, np.random.default_rng(seed)) for seed in range(5)]
    ours = [quantize(V, start, 50)[1][-1] for start in starts]
    assert np.mean(ours) < 1.05 * error(theirs.apply(V.astype(np.float32)))


def test_the_error_is_no_worse_than_that_of_faisss_own_transform(X):
    theirs = faiss.ITQTransform(20, 8, True)
    theirs.train(X.astype(np.float32))
    rotated = theirs.apply(X.astype(np.float32))
    # faiss scales each point to unit length before the rotation.
    ours = baselines.ITQ(8, random_state=0)
    unit = X - X.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    outputs = ours.fit(unit).decision_function(unit)
    assert error(outputs / np.sqrt((outputs**2).mean())) < 1.05 * error(
        rotated / np.sqrt((rotated**2).mean())
    )


def error(V):
    return np.square(np.where(V >= 0, 1, -1) - V).sum(axis=1).mean()


def test_random_rotations_are_orthogonal():
    rotation = random_rotation(30, np.random.default_rng(0))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(30), atol=1e-12)


def test_pcarr_keeps_the_distances_of_the_principal_components(X):
    rotated = baselines.PCARR(8, random_state=0).fit(X).decision_function(X)
    plain = baselines.TPCA(8).fit(X).decision_function(X)
    np.testing.assert_allclose(rotated @ rotated.T, plain @ plain.T, atol=1e-8)


def test_canonical_directions_are_those_of_discriminant_analysis(X):
    y = np.random.default_rng(1).integers(0, 3, len(X))
    X = X + 4 * np.eye(20)[y]
    centred = X - X.mean(axis=0)
    ours = centred @ canonical_directions(centred, y, 1e-12)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit_transform(X, y)
    correlation = np.corrcoef(ours.T, theirs.T)[:2, 2:]
    np.testing.assert_allclose(np.abs(correlation), np.eye(2), atol=1e-6)
