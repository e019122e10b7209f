import numpy as np
import pytest

from auxhash.compute import context, neighbors
from auxhash.compute.device import Device
from auxhash.mac.affinity import from_neighbors


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
    result = []
    for n, x in enumerate(wide):
        distance = np.square(wide - x).sum(axis=1)
        distance[n] = np.inf
        result.append(np.argsort(distance, kind="stable")[:k])
    return np.array(result)


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
    monkeypatch.setattr(neighbors, "POINTS_PER_BLOCK", 16)
    monkeypatch.setattr(neighbors, "QUERIES_PER_TASK", 7)
    X = np.random.default_rng(3).integers(0, 4, (150, 3))  # many ties
    np.testing.assert_array_equal(neighbors.nearest(X, k=6)[0], exactly(X, 6))


@pytest.mark.parametrize("metric", neighbors.METRICS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_missing_values(wrong, metric):
    X = np.ones((5, 2))
    spoilt = np.where(np.eye(5, 2), wrong, X)
    with pytest.raises(ValueError, match="finite"):
        neighbors.nearest(spoilt, k=1, metric=metric)
    with pytest.raises(ValueError, match="finite"):
        neighbors.nearest(X, np.array([[1.0, wrong]]), k=1, metric=metric)
    with pytest.raises(ValueError, match="finite"):
        neighbors.nearest_on(Device("elsewhere", np), spoilt, 1, metric)


@pytest.mark.parametrize("queries", [np.ones((4, 1)), np.ones(3), np.ones((2, 3, 1))])
def test_queries_of_another_shape(queries):
    with pytest.raises(ValueError, match="the same D"):
        neighbors.nearest(np.ones((5, 3)), queries, k=1)


def test_complex_numbers():
    with pytest.raises(ValueError, match="real"):
        neighbors.nearest(np.ones((5, 3)) * 1j, k=1)


@pytest.mark.parametrize("far", [1e20, 1e100, 1e160, -1e200, 1e260])
def test_one_point_far_out_leaves_the_others_right(far):
    X = np.random.default_rng(0).normal(size=(200, 4))
    expected, distance = neighbors.nearest(X[1:], k=5)
    X[0] = far
    index, with_it = neighbors.nearest(X, k=5)
    np.testing.assert_array_equal(index[1:] - 1, expected)
    np.testing.assert_allclose(with_it[1:], distance, rtol=1e-12)


def test_a_mark_for_what_is_missing_is_refused():
    X = np.random.default_rng(0).normal(size=(20, 4))
    for rows in (3, slice(None)):  # one, or a whole column
        spoilt = X.copy()
        spoilt[rows, 2] = np.finfo(float).max
        with pytest.raises(ValueError, match="mark"):
            neighbors.nearest(spoilt, k=5)
        neighbors.nearest(spoilt, k=5, metric="cosine")  # which has no use for lengths
        from_neighbors(spoilt, 3, 3, metric="cosine", values="distance")


@pytest.mark.parametrize("exponent", [-400, 490])
def test_distances_of_what_was_scaled(exponent):
    X = np.random.default_rng(2).integers(1, 9, (100, 3)).astype(float)
    expected = neighbors.nearest(X, k=4)[1]
    distance = neighbors.nearest(X * 2.0**exponent, k=4)[1]
    np.testing.assert_array_equal(distance, expected * 2.0 ** (2 * exponent))


@pytest.mark.parametrize("n_features", [4, 64, 512])
@pytest.mark.parametrize("size", [1e-25, 1e-23, 1e-22, 1e-20])
def test_products_too_small_for_single_precision(n_features, size):
    """One query is far out, so that single precision seems to have room."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, n_features)) * size
    Q = np.concatenate([rng.normal(size=(30, n_features)) * size, np.ones((1, n_features))])
    expected = [np.argsort(np.square(X - q).sum(axis=1), kind="stable")[:5] for q in Q]
    np.testing.assert_array_equal(neighbors.nearest(X, Q, k=5)[0], expected)


@pytest.mark.parametrize("block", [64, 1 << 14])
def test_distances_nearer_to_each_other_than_single_precision_tells(monkeypatch, block):
    """40 points around each query, their distances a billionth apart: so few are left open."""
    monkeypatch.setattr(neighbors, "POINTS_PER_BLOCK", block)
    rng = np.random.default_rng(0)
    Q = 10 * rng.normal(size=(30, 32))
    around = rng.normal(size=(40, 30, 32))
    around /= np.linalg.norm(around, axis=2, keepdims=True)
    radius = 1 + 1e-9 * rng.permuted(np.tile(np.arange(40), (30, 1)), axis=1).T
    X = (Q + radius[:, :, None] * around).reshape(-1, 32)  # a query's are in many blocks
    wide = X.astype(np.longdouble)
    expected = [np.argsort(np.square(wide - q).sum(axis=1), kind="stable")[:10] for q in Q]
    np.testing.assert_array_equal(neighbors.nearest(X, Q, k=10)[0], expected)


def test_no_point_is_its_own_neighbour_where_others_are_too_far_for_single_precision(monkeypatch):
    monkeypatch.setattr(neighbors, "POINTS_PER_BLOCK", 16)
    monkeypatch.setattr(neighbors, "QUERIES_PER_TASK", 16)  # those queries have no other block near
    rng = np.random.default_rng(0)
    X = np.concatenate([1e20 + rng.normal(size=(16, 3)) * 1e18, rng.normal(size=(16, 3))])
    np.testing.assert_array_equal(neighbors.nearest(X, k=3)[0], exactly(X, 3))


@pytest.mark.parametrize("metric", neighbors.METRICS)
def test_points_that_are_not_held(monkeypatch, metric):
    X = np.random.default_rng(0).integers(0, 5, (300, 6))
    X[[3, 200]] = 0
    monkeypatch.setattr(neighbors, "POINTS_PER_BLOCK", 64)
    expected = neighbors.nearest(X, k=8, metric=metric)
    monkeypatch.setattr(neighbors, "MAX_PREPARED_BYTES", 0)
    for result, known in zip(neighbors.nearest(X, k=8, metric=metric), expected, strict=True):
        np.testing.assert_array_equal(result, known)


def test_rows_of_zeros_have_the_cosine_distance_1_from_all():
    X = np.array([[1.0, 0], [0, 0], [0, 2], [0, 0], [-1, 0]])
    index, distance = neighbors.nearest(X, np.array([[3.0, 0], [0, 0]]), k=5, metric="cosine")
    np.testing.assert_array_equal(index, [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(distance, [[0, 1, 1, 1, 2], [1, 1, 1, 1, 1]])
    index, distance = neighbors.nearest(X, k=4, metric="cosine")
    np.testing.assert_array_equal(index[[1, 3]], [[0, 2, 3, 4], [0, 1, 2, 4]])
    np.testing.assert_array_equal(index[0], [1, 2, 3, 4])
    np.testing.assert_array_equal(distance[3], 1)
    elsewhere = Device("elsewhere", np)
    X = np.array([[1.0, 0], [0, 0], [1, 0.1], [0, 0], [1, 1]])
    for k in (2, 3, 4):
        result = neighbors.nearest_on(elsewhere, X, k, "cosine")
        np.testing.assert_array_equal(
            result[[1, 3]], neighbors.nearest(X, k=k, metric="cosine")[0][[1, 3]]
        )
        np.testing.assert_array_equal(result[0][:2], [2, 4])  # and not a row of zeros
    with pytest.raises(ValueError, match="k must"):
        neighbors.nearest_on(elsewhere, X, 5, "cosine")


def test_a_query_without_direction_among_points_that_have_one():
    X = np.random.default_rng(0).normal(size=(20, 5))
    index, distance = neighbors.nearest(X, np.zeros((2, 5)), k=20, metric="cosine")
    np.testing.assert_array_equal(index, np.tile(np.arange(20), (2, 1)))
    np.testing.assert_array_equal(distance, 1)


@pytest.mark.parametrize("metric", neighbors.METRICS)
def test_the_layout_of_the_memory_makes_no_difference(monkeypatch, metric):
    monkeypatch.setattr(neighbors, "POINTS_PER_BLOCK", 50)  # the last block has one row
    X = np.random.default_rng(0).normal(size=(151, 40))
    X[-1] = X[7]
    there = neighbors.nearest(np.asfortranarray(X), X[5:9], k=2, metric=metric)
    here = neighbors.nearest(X, X[5:9], k=2, metric=metric)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(there[0][2], [7, 150])
    np.testing.assert_array_equal(there[1][2], 0)


def test_it_takes_the_threads_that_it_is_given(monkeypatch):
    asked = []
    pool = neighbors.threads.pool
    monkeypatch.setattr(
        neighbors.threads, "pool", lambda: asked.append(context.current().n_jobs) or pool()
    )
    with context.using(n_jobs=1):
        neighbors.nearest(np.random.default_rng(0).normal(size=(9, 2)), k=1)
    assert asked == [1]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_form_for_another_device_finds_the_same(metric):
    """Its code is the same for any array library; here it runs on NumPy's."""
    X = np.random.default_rng(0).normal(size=(300, 6)) + (1e7 if metric == "euclidean" else 5)
    here = Device("elsewhere", np)
    np.testing.assert_array_equal(
        neighbors.nearest_on(here, X, 7, metric), neighbors.nearest(X, k=7, metric=metric)[0]
    )
    Q = np.vstack([X[:40] + 0.1, np.zeros((1, 6))])  # the last has no direction
    np.testing.assert_array_equal(
        neighbors.nearest_on(here, X, 300, metric, Q), neighbors.nearest(X, Q, 300, metric)[0]
    )
