"""Approximate neighbours against exact ones."""

import numpy as np
import pytest

from auxhash import NeighborHash
from auxhash.compute import approximate, context
from auxhash.compute.neighbors import nearest
from auxhash.mac.affinity import from_neighbors


def points(n, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.fixture
def short_lists(monkeypatch):
    """Lists of few points, of which few are searched."""
    monkeypatch.setattr(approximate, "POINTS_PER_LIST", 50)
    monkeypatch.setattr(approximate, "N_LISTS_PROBED", 8)


def check_rows(neighbors, n):
    """Each row has other points, each once."""
    assert not (neighbors == np.arange(n)[:, None]).any()
    assert neighbors.min() >= 0
    assert (np.diff(np.sort(neighbors, axis=1), axis=1) > 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_most_of_the_nearest_are_found(metric, short_lists):
    X = points(1500) * 1e6 + 3
    exact = nearest(X, k=5, metric=metric)[0]
    approximate_ids = approximate.nearest_approximately(X, 5, metric)
    assert approximate_ids.shape == exact.shape
    check_rows(approximate_ids, 1500)
    shared = np.mean(
        [len(set(a) & set(b)) / 5 for a, b in zip(approximate_ids, exact, strict=True)]
    )
    assert shared > 0.9
    with context.using(n_jobs=1):
        again = approximate.nearest_approximately(X, 5, metric)
    np.testing.assert_array_equal(again, approximate_ids)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_lists_may_hold_fewer_than_are_wanted(metric, monkeypatch):
    monkeypatch.setattr(approximate, "POINTS_PER_LIST", 20)
    monkeypatch.setattr(approximate, "N_LISTS_PROBED", 1)
    X = points(600)
    approximate_ids = approximate.nearest_approximately(X, 30, metric)
    check_rows(approximate_ids, 600)
    assert approximate.nearest_approximately(X[:31], 30, metric).shape == (31, 30)


def test_where_all_are_looked_at_it_is_exact(monkeypatch):
    """At any scale, far from the origin, and in clusters far apart."""
    monkeypatch.setattr(approximate, "POINTS_PER_LIST", 50)
    X = points(400)
    apart = X.copy()
    apart[::2] += 1e7
    beside = np.vstack([X, [[1e40] * 6], [[-1e250] * 6]])  # two that make all others look the same
    for made in (X, X * 1e120, X * 1e-30, X + 1e6, apart, beside):
        approximate_ids = approximate.nearest_approximately(made, 5, "euclidean")
        np.testing.assert_array_equal(approximate_ids, nearest(made, k=5)[0])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, np.finfo(float).max])
def test_what_has_no_distances_is_refused(wrong, short_lists):
    X = points(400)
    X[7, 2] = wrong
    with pytest.raises(ValueError, match=r"finite|mark"):
        approximate.nearest_approximately(X, 5, "euclidean")


def test_rows_of_zeros_are_as_far_as_what_is_orthogonal(short_lists, monkeypatch):
    monkeypatch.setattr(approximate, "N_LISTS_PROBED", 100)
    X = np.abs(points(140, 2))  # no two are farther apart than 1
    X[[5, 60]] = 0
    approximate_ids = approximate.nearest_approximately(X, 137, "cosine")
    check_rows(approximate_ids, 140)
    others = np.delete(approximate_ids, [5, 60], axis=0)
    assert not np.isin(others, [5, 60]).any()
    np.testing.assert_array_equal(approximate_ids[5], np.delete(np.arange(138), 5))
    np.testing.assert_array_equal(approximate_ids[60], np.delete(np.arange(138), 60))


def test_numbers_near_the_end_of_the_double_range(short_lists, monkeypatch):
    monkeypatch.setattr(approximate, "N_LISTS_PROBED", 100)
    X = points(400)
    X *= 0.9 * np.finfo(float).max / np.abs(X).max()
    approximate_ids = approximate.nearest_approximately(X, 5, "euclidean")
    np.testing.assert_array_equal(approximate_ids, nearest(X, k=5)[0])


def test_points_that_are_all_the_same_have_neighbours(short_lists, monkeypatch):
    check_rows(approximate.nearest_approximately(np.ones((140, 3)), 5, "euclidean"), 140)
    monkeypatch.setattr(approximate, "MAX_POINTS_SCANNED", 20)
    check_rows(approximate.nearest_approximately(np.ones((140, 3)), 5, "euclidean"), 140)


@pytest.mark.parametrize("limit", ["MAX_EXACT_POINTS", "MAX_EXACT_WIDE_POINTS"])
@pytest.mark.parametrize("n", [100, 101])
def test_it_is_taken_for_many_points(n, limit, monkeypatch, short_lists):
    monkeypatch.setattr(approximate, limit, 100)
    if limit == "MAX_EXACT_WIDE_POINTS":
        monkeypatch.setattr(approximate, "MAX_NARROW_FEATURES", 2)
    called, plainly = [], approximate.nearest_approximately

    def counted(X, *args):
        called.append(len(X))
        return plainly(X, *args)

    monkeypatch.setattr(approximate, "nearest_approximately", counted)
    settings = {"hash_function": "linear", "n_steps": 3, "random_state": 0}
    NeighborHash(8, **settings, max_points=None).fit(points(n))
    from_neighbors(points(n), 5, 10)
    assert called == [n, n][: 2 * (n > 100)]


def test_pairs_of_approximate_neighbours(monkeypatch, short_lists):
    """Each point has as many of both kinds as are wanted, and no pair is of both."""
    monkeypatch.setattr(approximate, "MAX_EXACT_POINTS", 100)
    X = points(400)
    near = approximate.near(X, 12, "euclidean")
    check_rows(near, 400)
    pairs = from_neighbors(X, 12, 30, random_state=0)
    i, j, y, weight = pairs.i, pairs.j, pairs.y, pairs.weight
    drawn = {(a, b) for a, row in enumerate(near) for b in row}
    for a, b, sign, count in zip(i, j, y, weight, strict=True):
        both = ((a, b) in drawn) + ((b, a) in drawn)
        assert count == both if sign > 0 else both < 2
    assert weight[y > 0].sum() == 400 * 12
    assert weight[y < 0].sum() == 400 * 30
