"""Estimate how long a training will take before it begins, by small parts of it."""

import math
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from auxhash.compute import approximate, clock, context, threads
from auxhash.compute.arrays import AnyArray
from auxhash.compute.context import ExpectedTime
from auxhash.learn.hasher import Hasher
from auxhash.learn.neighborhash import NeighborHash
from auxhash.learn.training.ranking import N_GENERATORS, RankSettings, RankTraining

MIN_POINTS_ANNOUNCED = 10_000  # points from which on training takes long enough to say so
POINTS_TIMED = 1_000  # points of a training by labels that is timed
STEPS_TIMED = 3  # gradient steps


def expected_time(hasher: Hasher, X: AnyArray, y: AnyArray | None) -> ExpectedTime | None:
    """Return the seconds that `hasher.fit` will take; None for few points, or where unknown.

    For NeighborHash, neighbours and steps are timed; for training by labels, all of it on a few
    points, as its time grows with their number.
    """
    if len(X) < MIN_POINTS_ANNOUNCED:
        return None
    if isinstance(hasher, NeighborHash):
        settings = hasher._settings(len(X), math.prod(X.shape[1:]))
        with context.using(n_jobs=hasher.n_jobs), threads.one_blas_thread():
            return _of_ranking(settings, X, known=y is not None)
    if y is None or not hasattr(hasher, "refine"):
        return None
    rows = np.random.default_rng(0).permutation(len(X))[:POINTS_TIMED]
    small = clone(hasher).set_params(verbose=0)
    began = clock.seconds()
    small.fit(X[rows], y[rows])
    return ExpectedTime(0.0, (clock.seconds() - began) * len(X) / POINTS_TIMED)


def _of_ranking(settings: RankSettings, X: AnyArray, known: bool) -> ExpectedTime:
    """The time of neighbours, which grows with the square of the points, and of all steps."""
    n = len(X) if settings.max_points is None else min(len(X), settings.max_points)
    m = min(n, settings.batch + settings.sample)
    k = min(settings.n_neighbors, m - 1)
    part, before = X[:m].reshape(m, -1), 0.0
    others = (np.arange(m)[:, None] + 1 + np.arange(k)) % m  # where they are not to be found
    if not known:
        approximate.near(part[: k + 1], k, settings.metric)  # compiles
        began = clock.seconds()
        others = approximate.near(part, k, settings.metric)
        pairs = n * (n + settings.n_queries(n))
        before = (clock.seconds() - began) * pairs / m**2
    small = replace(settings, verbose=0, max_points=None)
    rng = np.random.default_rng(0)
    training = RankTraining(small, X[:m], others, rng.spawn(N_GENERATORS))
    steps = settings.n_steps * _step_time(training, rng)
    if settings.query_function is not None:
        training.begin_tables(settings.query_function)
        steps += settings.table_steps * _step_time(training, rng)
    return ExpectedTime(before, steps)


def _step_time(training: RankTraining, rng: np.random.Generator) -> float:
    """Return the seconds that a step takes as the training is now."""
    with threads.pool() as run:
        training.descent.begin(rng)
        training.descent.move(0, run)  # compiles
        began = clock.seconds()
        for t in range(1, 1 + STEPS_TIMED):
            training.descent.move(t, run)
        return (clock.seconds() - began) / STEPS_TIMED
