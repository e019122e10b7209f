import numpy as np
import pytest

from auxhash.affinity import neighbors
from auxhash.compute.device import Device


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


def exactly(X, k):
    """By differences, in extended precision where there is one."""
    wide = X.astype(np.longdouble)
    found = []
    for n, x in enumerate(wide):
        distance = np.square(wide - x).sum(axis=1)
        distance[n] = np.inf
        found.append(np.argsort(distance, kind="stable")[:k])
    return np.array(found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 1e4, 1e7, 1e8, -1e12])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_far_from_the_origin_and_at_any_scale(dtype, offset, scale):
    X = np.random.default_rng(0).normal(size=(400, 5)) * scale + offset * scale
    X = X.astype(dtype)
    np.testing.assert_array_equal(neighbors.nearest(X, k=7)[0], exactly(X, 7))


@pytest.mark.parametrize("apart", [1e6, 1e9, 1e12])
def test_clusters_far_apart(apart):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4)) + apart * rng.integers(-2, 3, (300, 1))
    np.testing.assert_array_equal(neighbors.nearest(X, k=5)[0], exactly(X, 5))


@pytest.mark.parametrize("exponent", [-1060, -560, 530, 1000])
@pytest.mark.parametrize("metric", neighbors.METRICS)
def test_squares_beyond_the_double_range(exponent, metric):
    X = np.random.default_rng(2).integers(1, 9, (100, 3)).astype(float)
    index, distance = neighbors.nearest(X * 2.0**exponent, k=4, metric=metric)
    np.testing.assert_array_equal(index, neighbors.nearest(X, k=4, metric=metric)[0])
    assert not np.isnan(distance).any()


def test_many_blocks(monkeypatch):
    monkeypatch.setattr(neighbors, "BLOCK", 16)
    monkeypatch.setattr(neighbors, "CHUNK", 7)
    X = np.random.default_rng(3).integers(0, 4, (150, 3))  # many ties
    np.testing.assert_array_equal(neighbors.nearest(X, k=6)[0], exactly(X, 6))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_missing_values(wrong):
    X = np.ones((5, 2))
    with pytest.raises(ValueError, match="finite"):
        neighbors.nearest(np.where(np.eye(5, 2), wrong, X), k=1)
    with pytest.raises(ValueError, match="finite"):
        neighbors.nearest(X, np.array([[1.0, wrong]]), k=1)


def test_one_point_far_out_leaves_the_others_right():
    X = np.random.default_rng(0).normal(size=(200, 4))
    expected = neighbors.nearest(X[1:], k=5)[0]
    X[0] = 1e160
    np.testing.assert_array_equal(neighbors.nearest(X, k=5)[0][1:] - 1, expected)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_form_for_another_device_finds_the_same(metric):
    """Its code is the same for any array library; here it runs on NumPy's."""
    X = np.random.default_rng(0).normal(size=(300, 6)) + 5
    here = Device("elsewhere", np)
    np.testing.assert_array_equal(
        neighbors.nearest_on(here, X, 7, metric), neighbors.nearest(X, k=7, metric=metric)[0]
    )
