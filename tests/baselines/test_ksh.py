"""Supervised hashing with kernels: products with S, the ascent, and the objective y'Ry."""

import numpy as np
import pytest

from auxhash import affinity, baselines
from auxhash.baselines.ksh import (
    ascend,
    similarity_of_labels,
    similarity_of_pairs,
    whitened,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    return rng.standard_normal((150, 5)) + 2 * np.eye(5)[y], y


def similarity(y):
    return np.where(y[:, None] == y, 1.0, -1.0)


def test_products_with_s_from_labels_and_from_pairs(data):
    _, y = data
    V = np.random.default_rng(1).standard_normal((150, 4))
    S = similarity(y)
    np.testing.assert_allclose(similarity_of_labels(y)(V), S @ V)
    np.testing.assert_allclose(similarity_of_labels(y)(V[:, 0]), S @ V[:, 0])
    pairs = affinity.from_labels(y, None, None)
    np.testing.assert_allclose(similarity_of_pairs(pairs)(V), S @ V)


def test_whitening_turns_the_constraint_into_a_unit_length():
    K = np.random.default_rng(0).standard_normal((80, 6))
    K[:, 5] = K[:, 4]  # collinear kernels are left out
    U, T = whitened(K)
    assert U.shape == (80, 5)
    np.testing.assert_allclose(U, K @ T)
    np.testing.assert_allclose(U.T @ U, 80 * np.eye(5), atol=1e-9)


def test_the_ascent_rises_in_each_accepted_step(data):
    X, y = data
    U, _ = whitened(X - X.mean(axis=0))
    S = similarity(y)
    start = np.linalg.eigh(U.T @ S @ U)[1][:, -1]
    steps = ascend(U, lambda v: S @ v, start, 100)
    assert len(steps) > 5
    assert (np.diff([value for _, value in steps]) > 0).all()
    for a, value in steps:
        z = 2 / (1 + np.exp(-U @ a)) - 1
        assert value == pytest.approx(z @ S @ z)


def test_the_objective_of_every_bit_is_y_s_y_and_never_below_the_eigenvectors(data):
    X, y = data
    hasher = baselines.KSH(6, n_anchors=40, random_state=0).fit(X, y)
    assert (hasher.objective_[:, 1] >= hasher.objective_[:, 0]).all()
    assert (hasher.objective_[:, 1] > hasher.objective_[:, 0]).any()
    Y = hasher.transform(X).astype(float)
    R = 6 * similarity(y)
    for z, (_, value) in zip(Y.T, hasher.objective_, strict=True):
        assert z @ R @ z == pytest.approx(value)
        R -= np.outer(z, z)


def test_without_ascent_the_first_bit_is_the_generalised_eigenvector(data):
    from scipy.linalg import eigh

    X, y = data
    hasher = baselines.KSH(1, n_anchors=20, max_iter=0, random_state=0).fit(X, y)
    distance = np.square(X[:, None] - hasher.anchors_).sum(axis=2)
    assert hasher.width_ == pytest.approx(distance.mean())
    K = np.exp(-distance / (2 * distance.mean()))
    K -= K.mean(axis=0)
    a = eigh(K.T @ similarity(y) @ K, K.T @ K)[1][:, -1]
    outputs = hasher.decision_function(X)[:, 0]
    np.testing.assert_allclose(abs(np.corrcoef(K @ a, outputs)[0, 1]), 1, atol=1e-6)
    assert outputs @ outputs == pytest.approx(len(X))  # a'K'Ka = n


def test_kernels_that_are_all_equal_give_one_code():
    X = np.ones((10, 2))
    with pytest.warns(UserWarning, match="all 10 points of X are the same"):
        hasher = baselines.KSH(4, random_state=0).fit(X, np.arange(10) % 2)
    assert len(np.unique(hasher.codes_)) == 1
