"""Similarity of points: of the same class, of given pairs, or both.

The rank objective draws similar points, and leaves them out where it counts nearer points.
"""

from typing import NamedTuple, Protocol

import numpy as np

from auxhash.compute import device as devices
from auxhash.compute.arrays import Array, Numbers, Single
from auxhash.mac.affinity import Affinity


class Similar(Protocol):
    """A relation between points: which are similar to each other."""

    n_points: int

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        """Draw one similar point for each of these."""

    def among(self, rows: Numbers, drawn: Numbers, sample: Numbers) -> "SimilarEntries":
        """Find the points of the sample, each in it once, that may be nearer than the drawn ones.

        They are the row itself and points that are similar to it.
        """

    def usable(self) -> Numbers:
        """The points that have any similar point."""


class SimilarEntries(Protocol):
    """Entries of a table (rows, sample) that belong to similar points."""

    def clear(self, table: Single, rows: slice, to: float = 0.0) -> None:
        """Set the entries of `table`, which holds these rows, to 0 or another number."""


class ByClass(NamedTuple):
    """Entries where row and column are of the same class."""

    row: Numbers
    column: Numbers

    def clear(self, table: Single, rows: slice, to: float = 0.0) -> None:
        put = devices.of(table).put
        table[put(self.row[rows, None]) == put(self.column)] = to


class Listed(NamedTuple):
    """Entries in a list of row and column numbers, by rising row."""

    row: Numbers
    column: Numbers

    def clear(self, table: Single, rows: slice, to: float = 0.0) -> None:
        first, last = np.searchsorted(self.row, [rows.start, rows.stop])
        put = devices.of(table).put
        table[put(self.row[first:last] - rows.start), put(self.column[first:last])] = to


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

    def among(self, rows: Numbers, drawn: Numbers, sample: Numbers) -> ByClass:
        return ByClass(self.classes[rows], self.classes[sample])

    def usable(self) -> Numbers:
        return np.flatnonzero(self.size[self.classes] > 1)


class Partners:
    """Points are similar to those in a list of their own: indices[indptr[n]:indptr[n + 1]].

    Lists beyond `n_points` are those of queries, which are no points themselves.
    """

    def __init__(self, indptr: Numbers, indices: Numbers, n_points: int | None = None) -> None:
        self.indptr, self.indices = indptr, indices
        self.n_points = len(indptr) - 1 if n_points is None else n_points

    @classmethod
    def of_table(cls, nearest: Numbers, n_points: int | None = None) -> "Partners":
        """From a table (n, k) of nearest neighbours."""
        n, k = nearest.shape
        return cls(np.arange(0, n * k + 1, k), nearest.ravel(), n_points)

    @classmethod
    def of_affinity(cls, affinity: Affinity) -> "Partners":
        """From the similar pairs of an affinity, each in both directions."""
        similar = affinity.read_as("similarity") > 0
        i, j = affinity.i[similar], affinity.j[similar]
        source, target = np.concatenate([i, j]), np.concatenate([j, i])
        order = np.argsort(source, kind="stable")
        size = np.bincount(source, minlength=affinity.n_points)
        return cls(np.concatenate([[0], np.cumsum(size)]), target[order].astype(np.int64))

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        first, size = self.indptr[rows], np.diff(self.indptr)[rows]
        drawn: Numbers = self.indices[first + rng.integers(0, size)]
        return drawn

    def among(self, rows: Numbers, drawn: Numbers, sample: Numbers) -> Listed:
        place = np.full(self.n_points, -1, np.int64)  # of each point in the sample
        place[sample] = np.arange(len(sample))
        row, point = self._listed(rows, drawn)
        listed = np.flatnonzero(place[point] >= 0)
        listed = listed[np.argsort(row[listed], kind="stable")]
        return Listed(row[listed], place[point[listed]])

    def _listed(self, rows: Numbers, drawn: Numbers) -> tuple[Numbers, Numbers]:
        """Return the partners of these rows and the rows themselves, and whose each of them is."""
        row, point = self._partners(rows, drawn)
        own = np.flatnonzero(rows < self.n_points)
        return np.concatenate([row, own]), np.concatenate([point, rows[own]])

    def listed(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return all points that are similar to these rows, and whose (0, 1, ...) each of them is.

        The numbers of the rows come first, and rise.
        """
        size = np.diff(self.indptr)[rows]
        # Where each row's list starts, less its place among all these lists.
        start = np.repeat(self.indptr[rows] - np.cumsum(size) + size, size)
        row = np.repeat(np.arange(len(rows)), size)
        return row, self.indices[start + np.arange(len(start))]

    def _partners(self, rows: Numbers, drawn: Numbers) -> tuple[Numbers, Numbers]:
        return self.listed(rows)

    def usable(self) -> Numbers:
        return np.flatnonzero(np.diff(self.indptr))


class Neighbors(Partners):
    """The nearest points of each, the nearest first: no other may be nearer than the drawn one."""

    def _partners(self, rows: Numbers, drawn: Numbers) -> tuple[Numbers, Numbers]:
        nearest = self.indices.reshape(len(self.indptr) - 1, -1)[rows]
        is_drawn = nearest == drawn[:, None]
        row, column = np.nonzero(np.cumsum(is_drawn, axis=1) == is_drawn)
        return row, nearest[row, column]


class Relevant(Partners):
    """Queries and the rows that are relevant to them: points i are queries, all others rows.

    Rows of larger weight are drawn more often. The first query is point `first`: 0, or the number
    of points where the queries come after these.
    """

    def __init__(
        self,
        indptr: Numbers,
        indices: Numbers,
        n_points: int,
        weights: Array | None = None,
        first: int = 0,
    ) -> None:
        super().__init__(indptr, indices, n_points)
        self.first = first
        self.sums = None if weights is None else np.cumsum(weights)

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        rows = rows - self.first
        if self.sums is None:
            return super().draw(rows, rng)
        start, stop = self.indptr[rows], self.indptr[rows + 1]
        before = np.where(start > 0, self.sums[start - 1], 0.0)
        at = before + rng.random(len(rows)) * (self.sums[stop - 1] - before)
        place = np.searchsorted(self.sums, at, side="right").clip(start, stop - 1)
        drawn: Numbers = self.indices[place]
        return drawn

    def listed(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        return super().listed(rows - self.first)

    def _listed(self, rows: Numbers, drawn: Numbers) -> tuple[Numbers, Numbers]:
        return self.listed(rows)  # a query is none of the rows itself

    def usable(self) -> Numbers:
        return super().usable() + self.first


class Asked:
    """Points and, beyond them, queries: similar to a point are its own, to a query its rows."""

    def __init__(self, points: Partners, queries: Relevant) -> None:
        self.points, self.queries, self.n_points = points, queries, points.n_points

    def draw(self, rows: Numbers, rng: np.random.Generator) -> Numbers:
        drawn, asking = np.empty_like(rows), rows >= self.queries.first
        drawn[~asking] = self.points.draw(rows[~asking], rng)
        drawn[asking] = self.queries.draw(rows[asking], rng)
        return drawn

    def among(self, rows: Numbers, drawn: Numbers, sample: Numbers) -> Listed:
        asking = rows >= self.queries.first
        parts = []
        for kind, own in ((self.points, ~asking), (self.queries, asking)):
            which = np.flatnonzero(own)
            entries = kind.among(rows[which], drawn[which], sample)
            parts.append((which[entries.row], entries.column))
        row, column = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(row, kind="stable")
        return Listed(row[order], column[order])

    def usable(self) -> Numbers:
        return np.concatenate([self.points.usable(), self.queries.usable()])


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

    def among(self, rows: Numbers, drawn: Numbers, sample: Numbers) -> "Either":
        first, second = self.kinds
        return Either(first.among(rows, drawn, sample), second.among(rows, drawn, sample))

    def usable(self) -> Numbers:
        first, second = (kind.usable() for kind in self.kinds)
        return np.intersect1d(first, second)


class Either(NamedTuple):
    """Entries of either of two kinds."""

    first: SimilarEntries
    second: SimilarEntries

    def clear(self, table: Single, rows: slice, to: float = 0.0) -> None:
        self.first.clear(table, rows, to)
        self.second.clear(table, rows, to)
