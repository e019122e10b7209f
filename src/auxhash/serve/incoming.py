"""IncomingPoints: a sample of the vectors that came in, and the recall of a model on them."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from auxhash.compute.arrays import Array
from auxhash.search.metrics.recall import Drift, drift, expected_recall

if TYPE_CHECKING:
    from auxhash.model.model import Model

SAMPLED_VECTORS = 2_000  # vectors, one in twenty of them a query
MAX_SAMPLE_BYTES = 32 << 20  # of longer vectors it has fewer
RECENT_POINTS = 20_000  # points, the last ones, that the sample stands for
POINTS_BETWEEN = 200  # that come in before recall is measured again


class IncomingPoints:
    """A random sample of about the last 20,000 vectors; any thread may call any method."""

    def __init__(self, seed: int = 0) -> None:
        self.n_points = 0
        self._sample: Array | None = None
        self._rng = np.random.default_rng(seed)
        self._lock = threading.Lock()
        self._measured: tuple[str, int, Drift | None] = ("", -POINTS_BETWEEN, None)

    def add(self, vectors: Sequence[Sequence[float]]) -> None:
        """Take vectors of one length into the sample, or leave them out, by chance."""
        if not vectors:
            return
        X = np.array(vectors, np.float64)
        with self._lock:
            if self._sample is None:
                size = min(SAMPLED_VECTORS, MAX_SAMPLE_BYTES // X[0].nbytes)
                self._sample = np.empty((size, X.shape[1]))
            rows = len(self._sample)
            came = self.n_points + np.arange(len(X))
            chance = self._rng.integers(0, np.minimum(came + 1, RECENT_POINTS))
            slot = np.where(came < rows, came, chance)
            self._sample[slot[slot < rows]] = X[slot < rows]
            self.n_points += len(X)

    def drift(self, model: "Model") -> Drift | None:
        """Recall of the sample's points beside what the model promises; None if it cannot be said.

        It is measured again once 200 more points have come in.
        """
        with self._lock:
            fingerprint, n_points, before = self._measured
            if fingerprint == model.fingerprint and self.n_points - n_points < POINTS_BETWEEN:
                return before
            if self._sample is None:
                return None
            X, n_points = self._sample[: self.n_points].copy(), self.n_points
        metric = model.metric or "cosine"
        tables = None if model.table_function is None else model.tables
        functions = model.encode, model.decision_function
        now = expected_recall(*functions, X, metric=metric, tables=tables)
        change = drift(model.learnt.expected, now)
        with self._lock:
            self._measured = model.fingerprint, n_points, change
        return change
