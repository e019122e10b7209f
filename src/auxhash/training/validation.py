"""Points held out of the training, and their precision as queries among the training points."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash import metrics
from auxhash.affinity import Affinity
from auxhash.codes import Codes, Packed
from auxhash.hashfunctions import HashFunction, codes
from auxhash.metrics.tally import Truth

SCORE_K = 100

Validation = float | tuple[NDArray[Any], NDArray[Any]] | None


class TrainingPoints(NamedTuple):
    """Points to learn from: features (n, D), labels and affinity, each None if not given."""

    X: NDArray[Any]
    y: NDArray[Any] | None
    affinity: Affinity | None

    def take(self, rows: NDArray[np.int64]) -> "TrainingPoints":
        y = None if self.y is None else self.y[rows]
        affinity = None if self.affinity is None else self.affinity.subset(rows)
        return TrainingPoints(self.X[rows], y, affinity)


def hold_out(
    points: TrainingPoints, validation: Validation, rng: np.random.Generator
) -> tuple[TrainingPoints, tuple[NDArray[Any], NDArray[Any]] | None]:
    """The points to learn from, and the (X, y) to validate on.

    `validation` is None, (X, y) held out already, or the fraction of the points to hold out.
    """
    if validation is None:
        return points, None
    if points.y is None:
        raise ValueError("validation measures precision and needs y")
    if isinstance(validation, tuple):
        return points, validation
    n = len(points.X)
    n_held = round(validation * n)
    if not 1 <= n_held <= n - 2:
        raise ValueError(f"validation={validation} of {n} points would hold out {n_held}")
    order = rng.permutation(n)
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    return points.take(kept), (points.X[held], points.y[held])


class Precision:
    """Precision at SCORE_K of held-out queries among the training points, for any hash function."""

    def __init__(
        self,
        base: NDArray[np.float64],
        base_labels: NDArray[Any] | None,
        queries: NDArray[np.float64],
        query_labels: NDArray[Any],
        n_jobs: int | None,
    ) -> None:
        self.base, self.queries = base, queries
        self.labels = query_labels, base_labels
        self.n_jobs = n_jobs
        Truth(query_labels, base_labels, None, len(queries), len(base))  # or raise at once

    def __call__(self, h: HashFunction) -> float:
        queries, base = (codes(h, F, self.n_jobs) for F in (self.queries, self.base))
        return precision_among(queries, base, *self.labels, SCORE_K, self.n_jobs)


def precision_among(
    queries: Codes | Packed,
    base: Codes | Packed,
    query_labels: Any,
    base_labels: Any,
    k: int,
    n_jobs: int | None,
) -> float:
    """Precision at k of queries among the training points, k capped by their number."""
    return metrics.precision_at_k(
        queries, base, query_labels, base_labels, min(k, len(base)), n_jobs
    )
