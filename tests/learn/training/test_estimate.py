"""The time of a training, estimated before it begins."""

from dataclasses import replace

import numpy as np
import pytest

from auxhash import MACHash, NeighborHash, baselines
from auxhash.compute import clock
from auxhash.learn.smooth.gradient import GradientDescent
from auxhash.learn.smooth.tables import FixedCodes
from auxhash.learn.training import estimate
from auxhash.learn.training.ranking import RankTraining


@pytest.fixture
def points(monkeypatch):
    monkeypatch.setattr(estimate, "MIN_POINTS_ANNOUNCED", 100)
    return np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)


@pytest.fixture
def ticking(monkeypatch):
    """A clock that moves one second whenever it is looked at."""
    times = iter(range(10**6))
    monkeypatch.setattr(clock, "seconds", lambda: float(next(times)))


def test_neighbours_grow_with_the_square_and_steps_not_at_all(points, ticking, monkeypatch):
    hasher = NeighborHash(8, hash_function="linear", query_function=None, n_steps=90, n_jobs=1)
    monkeypatch.setattr(RankTraining, "_nearest", None)  # no second search for neighbours
    settings = replace(hasher._settings(400, 8), batch=40, sample=60)
    monkeypatch.setattr(hasher, "_settings", lambda *size: settings)
    time = estimate.expected_time(hasher, points, None)
    n_queries = 90 * 40  # synthetic ones: as many as the steps draw
    assert time.before == 400 * (400 + n_queries) / 100**2
    assert time.steps == pytest.approx(90 / estimate.STEPS_TIMED)


def test_steps_of_tables_are_timed_apart(points, monkeypatch):
    """One of them takes three seconds here, where one of codes takes one."""
    now = [0.0]
    monkeypatch.setattr(clock, "seconds", lambda: now[0])
    steps = {GradientDescent: 1.0, FixedCodes: 3.0}
    for kind, seconds in steps.items():

        def move(self, t, run, seconds=seconds):
            now[0] += seconds

        monkeypatch.setattr(kind, "move", move)
    settings = NeighborHash(8, hash_function="linear", query_function="linear")._settings(400, 8)
    monkeypatch.setattr(NeighborHash, "_settings", lambda self, *size: settings)
    time = estimate.expected_time(NeighborHash(8), points, None)
    assert time.steps == settings.n_steps + 3 * settings.table_steps


def test_labels_are_timed_on_a_few_points(points, ticking, monkeypatch):
    monkeypatch.setattr(estimate, "POINTS_TIMED", 100)
    sizes = []
    monkeypatch.setattr(MACHash, "fit", lambda self, X, y: sizes.append((len(X), self.verbose)))
    time = estimate.expected_time(MACHash(4, verbose=1), points, np.arange(400) % 3)
    assert sizes == [(100, 0)]
    assert (time.before, time.steps) == (0, 4)


def test_what_is_not_estimated(points):
    assert estimate.expected_time(baselines.ITQ(4), points, None) is None
    assert estimate.expected_time(NeighborHash(4), points[:99], None) is None
