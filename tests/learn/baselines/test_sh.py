"""Spectral hashing against the eigenvectors of a Laplacian, computed numerically."""

import numpy as np
import pytest
from scipy.linalg import eigh

from auxhash.learn import baselines


def test_the_eigenfunctions_are_those_of_a_uniform_interval_solved_numerically():
    x = np.linspace(-1, 2, 600)[:, None]
    W = np.exp(-np.square(x - x.T) / (2 * 0.01**2))
    D = np.diag(W.sum(axis=1))
    vectors = eigh(D - W, D, subset_by_index=(1, 5))[1]
    outputs = baselines.SH(5).fit(x).decision_function(x)
    correlation = np.abs(np.corrcoef(vectors.T, outputs.T)[:5, 5:])
    assert (np.diag(correlation) > 0.999).all()


def test_wide_axes_get_more_bits_in_the_order_of_their_eigenvalues():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5000, 2)) * [3.1, 1.0]
    hasher = baselines.SH(8).fit(X)
    assert (np.diff(hasher.omega_) >= 0).all()
    axis = np.abs(hasher.axes_).argmax(axis=0)
    # k / 3.1 for k = 1, 2, 3, ... and k / 1.0 in one rising order
    np.testing.assert_array_equal(axis, [0, 0, 0, 1, 0, 0, 0, 1])
    np.testing.assert_allclose(hasher.omega_[0], np.pi / 3.1, rtol=0.01)


def test_data_without_width_has_one_code():
    X = np.ones((10, 3))
    with pytest.warns(UserWarning, match="all 10 points of X are the same"):
        hasher = baselines.SH(6).fit(X)
    assert len(np.unique(hasher.encode(X), axis=0)) == 1
