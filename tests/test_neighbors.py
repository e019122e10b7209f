import numpy as np
import pytest

from auxhash import neighbors


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_against_sklearn(metric):
    from sklearn.neighbors import NearestNeighbors

    X = np.random.default_rng(0).normal(size=(700, 6))
    index, distance = neighbors.nearest(X, k=9, metric=metric)
    other = NearestNeighbors(n_neighbors=10, metric=metric, algorithm="brute").fit(X)
    their_distance, their_index = other.kneighbors()
    np.testing.assert_array_equal(index, their_index[:, :9])
    ours = np.sqrt(distance) if metric == "euclidean" else distance
    np.testing.assert_allclose(ours, their_distance[:, :9], atol=1e-9)


def test_ties_go_by_index_and_a_point_leaves_itself_out():
    X = np.array([[0.0], [1.0], [1.0], [1.0], [2.0]])
    index, distance = neighbors.nearest(X, k=3)
    np.testing.assert_array_equal(index[0], [1, 2, 3])
    np.testing.assert_array_equal(index[2], [1, 3, 0])
    np.testing.assert_array_equal(distance[2], [0, 0, 1])


def test_queries_may_choose_every_point():
    X = np.array([[0.0], [3.0], [1.0]])
    index, _ = neighbors.nearest(X, np.array([[0.9]]), k=3)
    np.testing.assert_array_equal(index, [[2, 0, 1]])
    assert neighbors.nearest(X, np.empty((0, 1)), k=2)[0].shape == (0, 2)


@pytest.mark.parametrize(("k", "metric", "says"), [(0, "euclidean", "k must"), (1, "l1", "metric")])
def test_bad_arguments(k, metric, says):
    with pytest.raises(ValueError, match=says):
        neighbors.nearest(np.ones((3, 2)), k=k, metric=metric)
