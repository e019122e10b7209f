"""Self-taught hashing: the eigenmap against a dense solver and scikit-learn's."""

import warnings

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.manifold import SpectralEmbedding

from auxhash.learn import baselines
from auxhash.learn.baselines.sth import laplacian_eigenmap, neighbour_graph, similar_graph
from auxhash.mac import affinity


@pytest.fixture
def graph():
    X = np.random.default_rng(0).standard_normal((150, 3))
    return neighbour_graph(X, np.arange(150), 8)


def test_the_graph_joins_nearest_neighbours_both_ways(graph):
    dense = graph.toarray()
    assert (dense == dense.T).all()
    assert set(np.unique(dense)) == {0, 1}
    assert (dense.sum(axis=1) >= 8).all()
    assert not dense.diagonal().any()


def test_the_eigenvectors_are_those_of_a_dense_solver(graph):
    W = graph.toarray()
    D = np.diag(W.sum(axis=1))
    value, vector = eigh(D - W, D)
    ours, embedding = laplacian_eigenmap(graph, 6, np.random.default_rng(0))
    np.testing.assert_allclose(ours, value[1:7], atol=1e-9)
    cosine = np.abs(np.einsum("nk,nk->k", embedding, D @ vector[:, 1:7]))
    np.testing.assert_allclose(cosine, 1, atol=1e-6)


def test_the_embedding_is_that_of_scikit_learn(graph):
    ours = laplacian_eigenmap(graph, 4, np.random.default_rng(0))[1]
    reference = SpectralEmbedding(4, affinity="precomputed", eigen_solver="arpack", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = reference.fit_transform(graph.toarray())
    correlation = np.corrcoef(ours.T, theirs.T)[:4, 4:]
    np.testing.assert_allclose(np.abs(np.diag(correlation)), 1, atol=1e-3)


def test_few_points_are_solved_densely():
    W = csr_array(np.ones((4, 4)) - np.eye(4))
    value, _ = laplacian_eigenmap(W, 3, np.random.default_rng(0))
    np.testing.assert_allclose(value, 4 / 3)


def test_bits_are_cut_at_the_median():
    X = np.random.default_rng(0).standard_normal((201, 4))
    embedding = baselines.STH(4, random_state=0).fit(X).embedding_
    codes = embedding >= np.median(embedding, axis=0)
    assert (np.abs(codes.sum(axis=0) - 100.5) < 1).all()


def test_supervised_neighbours_share_their_label():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 4)), np.repeat([0, 1, 2], 30)
    hasher = baselines.STH(2, n_neighbors=5, supervised=True, random_state=0).fit(X, y)
    # One part of the graph per class: two more eigenvalues 0, whose vectors separate the classes.
    np.testing.assert_allclose(hasher.eigenvalues_, 0, atol=1e-9)
    spread = [np.ptp(hasher.embedding_[y == label], axis=0).max() for label in range(3)]
    assert max(spread) < 1e-6


def test_a_class_of_one_point_is_its_own_part():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((41, 4)), np.array([0] * 20 + [1] * 20 + [2])
    assert baselines.STH(2, supervised=True, random_state=0).fit(X, y).codes_.shape == (41, 1)


def test_the_graph_of_an_affinity_joins_its_similar_pairs():
    pairs = affinity.from_pairs([0, 1, 0, 3], [1, 2, 2, 4], [1.0, 0.5, -1.0, -0.2], 5)
    expected = np.zeros((5, 5))
    expected[0, 1] = expected[1, 0] = 1.0
    expected[1, 2] = expected[2, 1] = 0.5
    expected[3, 3] = expected[4, 4] = 1.0  # without a similar point
    np.testing.assert_array_equal(similar_graph(pairs).toarray(), expected)
    distances = affinity.from_pairs([0, 1], [1, 2], [0.0, 1.0], 3, "distance")
    np.testing.assert_array_equal(similar_graph(distances).toarray()[0], [0, 1, 0])


def test_pairs_are_learnt_from_in_the_place_of_labels_and_neighbours():
    """Similar pairs inside two classes that X does not show: the first bit tells them apart."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 4)), rng.integers(0, 2, 80)
    pairs = affinity.from_labels(y, 10, 10, random_state=0)
    hasher = baselines.STH(1, random_state=0).fit(X, affinity=pairs)
    np.testing.assert_allclose(hasher.eigenvalues_, 0, atol=1e-9)
    assert max(np.ptp(hasher.embedding_[y == label]) for label in (0, 1)) < 1e-6
    both = baselines.STH(1, supervised=True, random_state=0).fit(X, rng.permutation(y), pairs)
    np.testing.assert_array_equal(both.embedding_, hasher.embedding_)


def test_an_affinity_without_similar_pairs_is_refused():
    X = np.random.default_rng(0).standard_normal((9, 2))
    pairs = affinity.from_pairs([0, 1], [1, 2], [-1.0, -1.0], 9)
    with pytest.raises(ValueError, match="no similar pair"):
        baselines.STH(2).fit(X, affinity=pairs)
