"""Synthetic queries, and a training that takes them beside its points."""

import numpy as np
import pytest

from auxhash import NeighborHash
from auxhash.compute.device import CPU, Device
from auxhash.compute.neighbors import METRICS
from auxhash.learn.training import synthetic
from auxhash.learn.training.ranking import N_GENERATORS, RankTraining


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(120, 6)).astype(np.float32) + 1


def exact(X, Q, k, metric):
    """The k nearest points to each query, by the definition."""
    if metric == "cosine":
        X, Q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Q))
    return ((Q[:, None].astype(float) - X) ** 2).sum(axis=2).argsort(axis=1)[:, :k]


@pytest.mark.parametrize(
    ("n", "max_pairs", "drawn", "expected"),
    [
        (100, 1e9, 10**6, 2000),  # 20 for each point
        (100, 1e9, 1500, 1500),  # as many as are drawn
        (100, 3e4, 10**6, 300),  # as many as can be paid for
        (100, 9e3, 10**6, 0),  # fewer than there are points: none
        (100, 0, 10**6, 0),
    ],
)
def test_number_of_queries(n, max_pairs, drawn, expected):
    assert synthetic.n_queries(n, max_pairs, drawn) == expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("device", [CPU, Device("elsewhere", np)])
def test_queries_lie_among_the_points_with_their_true_neighbours(points, metric, device):
    nearest = exact(points, points, 6, metric)[:, 1:]
    made = synthetic.around(points, nearest, 500, metric, device, np.random.default_rng(1))
    assert made.X.shape == (500, 6)
    np.testing.assert_array_equal(made.nearest, exact(points, made.X, 5, metric))
    unit = metric == "cosine"
    own = points / np.linalg.norm(points, axis=1, keepdims=True) if unit else points
    moved = np.linalg.norm(made.X[:, None] - own, axis=2).min(axis=1)
    between = np.linalg.norm(own[nearest[:, 0]] - own, axis=1)
    assert 0.2 < np.median(moved) / np.median(between) < 2  # about as far as points from points


def test_steps_take_queries_as_points_i_alone(points):
    hasher = NeighborHash(8, n_steps=20, query_function=None, random_state=0)
    settings = hasher._settings(*points.shape)
    training = RankTraining(settings, points, None, np.random.default_rng(0).spawn(N_GENERATORS))
    n, m = len(points), settings.n_queries(len(points))
    assert m == 2400
    assert training.F.shape[0] == n + m
    assert (training.n_points, training.similar.n_points) == (n, n)
    assert (training.judge.rows < n).all()  # judged by points that are no query of the training
    held_out = training.judge.rank.points
    assert not np.isin(held_out, training.objective.points).any()
    assert (training.objective.points >= n).sum() == m
    rows = next(training.objective.batches(np.random.default_rng(0)))
    size = training.objective.batch
    assert (rows[:size] >= n).any()
    assert (rows[size:] < n).all()  # neighbours and samples are points


def test_neighbors_that_are_known_get_no_queries(points):
    nearest = exact(points, points, 6, "cosine")[:, 1:]
    settings = NeighborHash(8, n_steps=20)._settings(*points.shape)
    training = RankTraining(settings, points, nearest, np.random.default_rng(0).spawn(N_GENERATORS))
    assert training.F.shape[0] == len(points)
