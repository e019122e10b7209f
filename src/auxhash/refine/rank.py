"""The rank of a similar point, as an objective of the smooth core.

For a point i, a similar point j and a random sample M of all points, the soft rank of j is the
share of the sample that is nearer to i than j is,

    R = mean over m in M of sigmoid((d_ij - d_im) / tau),   d_ij = (b - u_i'u_j) / 2

where points that are themselves similar to i count as not nearer. Minimised is the mean of
log(R + 1/n): going from rank 10 to 1 counts as much as from 1,000 to 100, so that what is learnt
serves short lists and long ones. Unlike a loss over pairs it has no target distance, and leaves
the code all its freedom.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from auxhash.affinity import Affinity
from auxhash.compute import threads
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.device import CPU, Device
from auxhash.refine.gradient import Outputs, shuffled

BATCH = 1024  # points i per step
SAMPLE = 4096  # points m per step
TAU = 0.5  # bits
CHUNK = 64  # points i per task of a thread: their distances from the sample fit a core's cache


class Similar(Protocol):
    """Which points are similar to which."""

    n_points: int

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        """One similar point for each of these, at random."""

    def among(self, rows: Numbers, sample: Numbers) -> "Known":
        """Which points of the sample, each in it once, are similar to each row, or are the row."""

    def usable(self) -> Numbers:
        """The points that have any similar point."""


class Known(Protocol):
    """Which entries of a table (rows, sample) belong to similar points."""

    def clear(self, table: Single, rows: slice) -> None:
        """Set those of `table`, which holds these rows, to 0."""


class ByClass(NamedTuple):
    """Those where the classes of row and column are the same."""

    row: Numbers
    column: Numbers

    def clear(self, table: Single, rows: slice) -> None:
        table[self.row[rows, None] == self.column] = 0


class Listed(NamedTuple):
    """Those of a list of row and column numbers, by rising row."""

    row: Numbers
    column: Numbers

    def clear(self, table: Single, rows: slice) -> None:
        first, last = np.searchsorted(self.row, [rows.start, rows.stop])
        table[self.row[first:last] - rows.start, self.column[first:last]] = 0


class SameClass:
    """Points are similar if they are of the same class."""

    def __init__(self, classes: Numbers) -> None:
        self.classes, self.n_points = classes, len(classes)
        self.size = np.bincount(classes)
        self.first = np.cumsum(self.size) - self.size
        self.members = np.argsort(classes, kind="stable")
        self.place = np.empty(len(classes), np.int64)  # of each point among its class
        self.place[self.members] = np.arange(len(classes)) - self.first[classes[self.members]]

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        own = self.classes[rows]
        # One of the others of the class: those from the row's own place on move up by one.
        at = rng.integers(0, self.size[own] - 1)
        at += at >= self.place[rows]
        drawn: Numbers = self.members[self.first[own] + at]
        return drawn

    def among(self, rows: Numbers, sample: Numbers) -> ByClass:
        return ByClass(self.classes[rows], self.classes[sample])

    def usable(self) -> Numbers:
        return np.flatnonzero(self.size[self.classes] > 1)


class Partners:
    """Points are similar to those in a list of their own: indices[indptr[n]:indptr[n + 1]]."""

    def __init__(self, indptr: Numbers, indices: Numbers) -> None:
        self.indptr, self.indices, self.n_points = indptr, indices, len(indptr) - 1

    @classmethod
    def of_table(cls, nearest: Numbers) -> "Partners":
        """From a table (n, k) of nearest neighbours."""
        n, k = nearest.shape
        return cls(np.arange(0, n * k + 1, k), nearest.ravel())

    @classmethod
    def of_affinity(cls, affinity: Affinity) -> "Partners":
        """From the similar pairs of an affinity, each in both directions."""
        similar = affinity.y > 0
        i, j = affinity.i[similar], affinity.j[similar]
        source, target = np.concatenate([i, j]), np.concatenate([j, i])
        order = np.argsort(source, kind="stable")
        size = np.bincount(source, minlength=affinity.n_points)
        return cls(np.concatenate([[0], np.cumsum(size)]), target[order].astype(np.int64))

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        first, size = self.indptr[rows], np.diff(self.indptr)[rows]
        drawn: Numbers = self.indices[first + rng.integers(0, size)]
        return drawn

    def among(self, rows: Numbers, sample: Numbers) -> Listed:
        place = np.full(self.n_points, -1, np.int64)  # of each point in the sample
        place[sample] = np.arange(len(sample))
        size = np.diff(self.indptr)[rows]
        row = np.repeat(np.arange(len(rows)), size)
        # Where each row's list starts, less its place among all these lists.
        start = np.repeat(self.indptr[rows] - np.cumsum(size) + size, size)
        row = np.concatenate([row, np.arange(len(rows))])
        point = np.concatenate([self.indices[start + np.arange(len(start))], rows])
        found = np.flatnonzero(place[point] >= 0)
        found = found[np.argsort(row[found], kind="stable")]
        return Listed(row[found], place[point[found]])

    def usable(self) -> Numbers:
        return np.flatnonzero(np.diff(self.indptr))


class Both:
    """Two kinds of similarity at once, such as classes and neighbours.

    A point drawn is similar by the second kind with probability `share`, by the first otherwise,
    and points that are similar by either do not count as nearer.
    """

    def __init__(self, first: Similar, second: Similar, share: float) -> None:
        self.kinds, self.share, self.n_points = (first, second), share, first.n_points

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        one, other = (kind.draw(rows, rng) for kind in self.kinds)
        return np.where(rng.random(len(rows)) < self.share, other, one)

    def among(self, rows: Numbers, sample: Numbers) -> "Either":
        first, second = self.kinds
        return Either(first.among(rows, sample), second.among(rows, sample))

    def usable(self) -> Numbers:
        first, second = (kind.usable() for kind in self.kinds)
        found: Numbers = np.intersect1d(first, second)
        return found


class Either(NamedTuple):
    """The entries of both of two kinds."""

    first: Known
    second: Known

    def clear(self, table: Single, rows: slice) -> None:
        self.first.clear(table, rows)
        self.second.clear(table, rows)


class Rank:
    """The mean log of the soft rank of a similar point."""

    def __init__(
        self,
        similar: Similar,
        batch: int = BATCH,
        sample: int = SAMPLE,
        device: Device = CPU,
    ) -> None:
        self.device = device
        self.similar = similar
        self.points = similar.usable()
        self.batch, self.sample = min(batch, len(self.points)), min(sample, similar.n_points)

    def batches(self, rng: np.random.Generator) -> Iterator[Numbers]:
        """The points i, a similar j for each, and the sample, one after the other."""
        for chosen in shuffled(len(self.points), self.batch, rng):
            rows = self.points[chosen]
            sample = rng.choice(self.similar.n_points, self.sample, replace=False, shuffle=False)
            yield np.concatenate([rows, self.similar.draw(rows, rng), sample])

    def scale(self, rows: Numbers) -> float:
        return 1.0

    def typical(self, outputs: Outputs, rows: Numbers) -> float:
        """The geometric mean of the rank, 1 for the nearest of all, with codes in place of u."""
        U = np.where(outputs(rows) < 0, np.float32(-1), np.float32(1))
        one, other, sample = np.split(U, [self.batch, 2 * self.batch])
        S = one @ sample.T - (one * other).sum(axis=1, keepdims=True)
        nearer = (S > 0) + 0.5 * (S == 0)
        self._similar_to(rows).clear(nearer, slice(0, self.batch))
        rank = nearer.mean(axis=1) * self.similar.n_points + 1
        return float(np.exp(np.log(rank).mean()))

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        U = np.tanh(s * outputs(rows))
        size = self.batch
        one, other, sample = U[:size], U[size : 2 * size], U[2 * size :]
        similar = self._similar_to(rows)
        least = np.float32(1 / self.similar.n_points)

        def part(chunk: slice) -> tuple[Single, Single]:
            own = one[chunk]
            S: Single = own @ sample.T
            S -= (own * other[chunk]).sum(axis=1, keepdims=True)
            slope, total = _soft_rank(S, similar, chunk, least)
            slope *= np.float32(1 / size)
            total *= np.float32(1 / size)
            pulled = np.concatenate([slope @ sample - total * other[chunk], -total * own])
            return pulled, slope.T @ own

        parts = run(part, threads.chunks(size, self.device.rows(CHUNK)))
        halves = [np.split(pulled, 2) for pulled, _ in parts]
        pull = np.concatenate(
            [*(half[0] for half in halves), *(half[1] for half in halves), sum(p for _, p in parts)]
        )
        pull *= s * (1 - U * U)
        return pull

    def _similar_to(self, rows: Numbers) -> Known:
        """Who of the sample is similar to the points i of a batch."""
        return self.similar.among(rows[: self.batch], rows[2 * self.batch :])


def _soft_rank(S: Single, similar: Known, rows: slice, least: np.float32) -> tuple[Single, Single]:
    """Slopes of log(R + least) for S = u_i'u_m - u_i'u_j (rows, sample), and their sums (rows, 1).

    S is overwritten.
    """
    S *= np.float32(-0.5 / TAU)
    np.minimum(S, np.float32(60), out=S)  # exp stays in range
    np.exp(S, out=S)
    S += np.float32(1)
    np.reciprocal(S, out=S)
    similar.clear(S, rows)
    rank = S.mean(axis=1, keepdims=True)
    slope = S - S * S
    slope *= np.float32(0.5 / TAU / S.shape[1]) / (rank + least)
    return slope, slope.sum(axis=1, keepdims=True)
