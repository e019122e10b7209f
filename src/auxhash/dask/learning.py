"""Program of a partition in the training of a `MACHash`: the training of a single machine."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from auxhash.codes import Packed, pack
from auxhash.compute import checks, context, threads
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.compute.peers import peers
from auxhash.learn.estimators import MACHash
from auxhash.learn.hasher import check_pairs, fingerprint
from auxhash.learn.training import Settings, Training
from auxhash.learn.training.run import N_GENERATORS
from auxhash.learn.training.validation import TrainingPoints, Validation, hold_out
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.loop import Step
from auxhash.model.identity import in_words

HOLD_OUT_GENERATOR = 4  # position of the generator that draws the points to hold out


class PartitionSummary(NamedTuple):
    """Facts of a partition's data that the client needs."""

    n: int
    n_features: int
    labels: AnyArray  # that occur; of an indicator matrix, the columns that are not all 0
    several: bool  # whether it is an indicator matrix
    fingerprint: str  # of the points as they are learnt from


class JointResult(NamedTuple):
    """Model that all partitions have learnt together."""

    h: HashFunction
    loss: float
    two_step: HashFunction
    history: list[Step]
    interrupted: bool


class PartitionResult(NamedTuple):
    """Result of a partition."""

    n: int  # points learnt from
    model: JointResult | None  # from the first partition alone: it is the same in every one


@dataclass(frozen=True)
class Learning:
    """Program of a partition."""

    settings: Settings
    n_jobs: int | None = None  # threads; None takes those of the worker

    @threads.one_blas_thread()
    def __call__(
        self, n_threads: int | None, X: ArrayLike, y: ArrayLike, generators: Sequence[Generator]
    ) -> PartitionResult:
        """Learn from partition X, y, together with the others, on `n_threads` threads."""
        points = _checked(X, y)
        with context.using(n_jobs=n_threads if self.n_jobs is None else self.n_jobs):
            # Copied: a partition that is run again must begin with the same ones.
            trained = Training(self.settings, points, deepcopy(list(generators))).run()
        if peers().place != 0:
            return PartitionResult(len(trained.codes), None)
        model = JointResult(
            trained.h, trained.loss, trained.two_step, trained.history, trained.interrupted
        )
        return PartitionResult(len(trained.codes), model)


def summarize(X: ArrayLike, y: Any) -> PartitionSummary:
    """Check a partition before the training, and return its facts."""
    if np.ndim(X) != 2:
        raise ArgumentError(f"X must be of shape (n, D), got shape {np.shape(X)}")
    n, n_features = np.shape(X)
    if len(y) != n:
        raise ArgumentError(f"X has {n} rows, but y has {len(y)}")
    if not n:
        return PartitionSummary(0, n_features, np.empty(0), False, "")
    labels = checks.classes("y", y, n)
    present = np.unique(labels) if labels.ndim == 1 else np.flatnonzero(labels.any(axis=0))
    mark = ""
    if n > 1:
        points = _checked(X, y)
        mark = fingerprint(points.X, points.y)
    return PartitionSummary(n, n_features, present, labels.ndim == 2, mark)


def data_in_words(X: ArrayLike, y: ArrayLike) -> str:
    """Return a text that identifies a partition's data."""
    points = _checked(X, y)
    return in_words((points.X, points.y))


def _checked(X: ArrayLike, y: ArrayLike) -> TrainingPoints:
    return TrainingPoints(*check_pairs(MACHash(), X, y, None, all_points=False), None)


def codes_of(
    X: ArrayLike, y: ArrayLike, h: HashFunction, validation: Validation | None, rng: Generator
) -> tuple[Packed, AnyArray | None]:
    """Return packed codes and labels of the points of a partition that were learnt from.

    `rng` is the generator that drew the points to hold out.
    """
    points, _ = hold_out(_checked(X, y), validation, deepcopy(rng))
    return pack(hashfunctions.codes(h, h.features(points.X))), points.y


def generators_of(n: int, drawn: Generator) -> list[list[Generator]]:
    """Return the generators of each of n partitions; of a single one, those of one machine."""
    parts = drawn.spawn(N_GENERATORS)
    if n == 1:
        return [parts]
    spawned = [part.spawn(n) for part in parts]
    return [[each[place] for each in spawned] for place in range(n)]
