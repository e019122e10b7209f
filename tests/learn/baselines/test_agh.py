"""Anchor-graph hashing against dense computation."""

import numpy as np
import pytest

from auxhash.learn import baselines
from auxhash.learn.baselines.agh import k_means, second_thresholds


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((120, 4))


def anchor_graph(hasher, X):
    Z = hasher.model_.hash_function.ties(X)
    return Z, Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T


def test_ties_are_normalised_kernels_of_the_nearest_anchors(X):
    hasher = baselines.AGH(4, n_anchors=20, n_nearest=3, random_state=0).fit(X)
    Z = hasher.model_.hash_function.ties(X)
    distance = np.linalg.norm(X[:, None] - hasher.anchors_, axis=2)
    kernel = np.exp(-np.square(distance / hasher.width_))
    kernel[distance > np.sort(distance, axis=1)[:, [2]]] = 0
    np.testing.assert_allclose(Z, kernel / kernel.sum(axis=1, keepdims=True), atol=1e-9)
    assert hasher.width_ == pytest.approx(np.sort(distance, axis=1)[:, 2].mean())


def test_the_outputs_are_eigenvectors_of_the_dense_anchor_graph(X):
    hasher = baselines.AGH(6, n_anchors=20, random_state=0).fit(X)
    _, A = anchor_graph(hasher, X)
    np.testing.assert_allclose(A.sum(axis=1), 1)
    value, vector = np.linalg.eigh(A)
    Y = hasher.decision_function(X)
    np.testing.assert_allclose(hasher.eigenvalues_, value[::-1][1:7], atol=1e-10)
    np.testing.assert_allclose(A @ Y, Y * hasher.eigenvalues_, atol=1e-8)
    np.testing.assert_allclose(Y.T @ Y, len(X) * np.eye(6), atol=1e-7)
    cosine = np.abs((vector[:, ::-1][:, 1:7] * Y).sum(axis=0)) / np.sqrt(len(X))
    np.testing.assert_allclose(cosine, 1, atol=1e-6)


def test_the_second_layer_balances_each_vector_at_the_least_cut(X):
    hasher = baselines.AGH(8, layers=2, n_anchors=20, random_state=0).fit(X)
    Z, A = anchor_graph(hasher, X)
    Y = Z @ hasher.weights_
    L = np.eye(len(X)) - A
    thresholds = second_thresholds(Z, Y)
    np.testing.assert_allclose(thresholds, hasher.thresholds_)

    def cut(y, positive, negative):
        return np.where(y >= 0, y - positive, negative - y)

    for y, (positive, negative) in zip(Y.T, thresholds.T, strict=True):
        f = cut(y, positive, negative)
        assert abs(f.sum()) < 1e-9
        n_positive, n_negative = (y >= 0).sum(), (y < 0).sum()
        for t in (-0.5, -0.01, 0.01, 0.5):  # other thresholds that balance
            other = cut(y, positive + t / n_positive, negative + t / n_negative)
            assert abs(other.sum()) < 1e-9
            assert f @ L @ f <= other @ L @ other + 1e-12


def test_an_odd_number_of_bits_leaves_out_the_last_second_cut(X):
    hasher = baselines.AGH(7, layers=2, n_anchors=20, random_state=0).fit(X)
    assert hasher.weights_.shape[1] == 4
    assert hasher.transform(X).shape == (120, 7)


def test_k_means_centres_are_means_of_their_points():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 30, axis=0) + rng.normal(size=(90, 2))
    for seed in range(20):  # a start with one point of each group ends at the groups' means
        centres = k_means(X, 3, np.random.default_rng(seed))
        own = np.linalg.norm(X[:, None] - centres, axis=2).argmin(axis=1)
        means = np.array([X[own == c].mean(axis=0) for c in range(3)])
        np.testing.assert_allclose(centres, means)


def test_small_numbers_of_numpy():
    X = np.random.default_rng(0).normal(size=(60, 3))
    one, other = (
        baselines.AGH(4, layers=kind(2), n_anchors=20, random_state=0).fit(X)
        for kind in (int, np.uint8)
    )
    np.testing.assert_array_equal(one.codes_, other.codes_)
