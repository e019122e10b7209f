"""Approximate nearest neighbours of feature vectors among themselves.

For more points than exact search can take, whose time grows with the square of their number. Each
point is put into the list of its nearest centre, and looked for in the lists of the centres nearest
to it. The points of a list that look into the same other list do so together, by a matrix product.
The few points whose lists hold too few others get their exact neighbours.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Numbers, Single
from auxhash.compute.kernels import kernel
from auxhash.compute.neighbors import Metric, directions, firsts, nearest, scale, zero_rows

MAX_EXACT_POINTS = 300_000  # points whose exact neighbours take a reasonable time
MAX_NARROW_FEATURES, MAX_EXACT_WIDE_POINTS = 512, 50_000  # points of more features are wide
POINTS_PER_LIST = 1000  # on average
N_LISTS_PROBED = 32  # for each point
SAMPLE_PER_LIST = 64  # points per list that the centres are learnt from
N_KMEANS_ROUNDS = 10
POINTS_PER_CHUNK = 4096  # points prepared, or assigned to lists, at a time
QUERIES_PER_TASK = 4096  # points of a list whose neighbours are searched together
MAX_POINTS_SCANNED = 1 << 15  # points of a list that are compared: very many may be equal
DISTANCES_PER_THREAD = 1 << 20  # distances that a thread computes at once
MIN_OFFSET = 1e-15  # offsets whose squares single precision would take for 0


def near(X: AnyArray, k: int, metric: Metric) -> Numbers:
    """Return the indices (n, k) of the rows nearest to each row of X; approximate if X is large."""
    if len(X) > (MAX_EXACT_POINTS if X.shape[1] <= MAX_NARROW_FEATURES else MAX_EXACT_WIDE_POINTS):
        return nearest_approximately(X, k, metric)
    return nearest(X, k=k, metric=metric)[0]


def nearest_approximately(X: AnyArray, k: int, metric: Metric) -> Numbers:
    """Return indices (n, k) of rows near to each row of X, itself left out; most are the nearest.

    The result does not depend on the number of threads.
    """
    indices = np.empty((len(X), k), np.int64)
    zeros = zero_rows(X) if metric == "cosine" else np.empty(0, np.int64)
    with threads.pool() as run:
        lists = Lists.of(X, metric, zeros.size > 0, run)

        def search(piece: tuple[int, slice]) -> None:
            indices[lists.numbers[piece[1]]] = lists.nearest(*piece, k)

        run(search, lists.pieces())
    short = np.flatnonzero(indices.min(axis=1) < 0)
    if len(short):
        indices[short] = _without(short, nearest(X, X[short], k + 1, metric)[0])
    indices[zeros] = firsts(zeros, k)
    return indices


class Lists(NamedTuple):
    """Points in lists, each in that of its nearest centre.

    Single precision would not tell apart points that are near to each other and far from all
    else: so it holds how far each is from its centre.
    """

    centres: Array  # (lists, D)
    offset: Single  # (n, D): of the points from their centres, list after list
    numbers: Numbers  # (n,): their rows in X
    start: Numbers  # (lists,): of each list
    size: Numbers  # (lists,)
    reach: Array  # (n,): the largest entry of each offset, in double precision

    @classmethod
    def of(cls, X: AnyArray, metric: Metric, with_zeros: bool, run: threads.Run) -> "Lists":
        """Make lists of about POINTS_PER_LIST rows of X each, or of their directions."""
        chunks = threads.chunks(len(X), POINTS_PER_CHUNK)
        if metric == "euclidean":
            scale(X)  # which refuses what no distances can be had of
        largest = max(float(np.abs(X[rows]).max(initial=0)) for rows in chunks)
        unit = np.ldexp(0.5, np.frexp(largest)[1])  # squares are far from the ends of the range

        def prepared(rows: slice | Numbers) -> Array:
            if metric == "cosine":
                return directions(X[rows], with_zeros)
            scaled: Array = np.asarray(X[rows], float) / unit
            return scaled

        n_lists = max(1, len(X) // POINTS_PER_LIST)
        step = max(1, len(X) // (SAMPLE_PER_LIST * n_lists))
        sample = np.concatenate([prepared(slice(c.start, c.stop, step)) for c in chunks])
        centres = _centres(sample, n_lists, run)
        own = np.concatenate(run(lambda rows: _closest(prepared(rows), centres), chunks))
        numbers = np.argsort(own, kind="stable")
        offset, reach = np.empty((len(X), centres.shape[1]), np.float32), np.empty(len(X))

        def fill(rows: slice) -> None:
            chosen = numbers[rows]
            exact = prepared(chosen) - centres[own[chosen]]
            offset[rows], reach[rows] = exact, np.abs(exact).max(axis=1, initial=0)

        run(fill, chunks)
        size = np.bincount(own, minlength=n_lists)
        return cls(centres, offset, numbers, np.cumsum(size) - size, size, reach)

    def pieces(self) -> list[tuple[int, slice]]:
        """Each list and its points, those of long lists in pieces."""
        return [
            (one, slice(self.start[one] + part.start, self.start[one] + part.stop))
            for one in range(len(self.size))
            for part in threads.chunks(self.size[one], QUERIES_PER_TASK)
        ]

    def nearest(self, own: int, rows: slice, k: int) -> Numbers:
        """Return the k nearest rows of X to these points of a list; -1 where too few were seen."""
        offset = self.offset[rows]
        indices = np.full((len(offset), k), -1, np.int64)
        best = np.full((len(offset), k), np.inf, np.float32)
        if MIN_OFFSET * np.abs(self.centres[own]).max() < self.reach[rows].max() < MIN_OFFSET:
            return indices
        for one, points in self._probed(own, offset):
            n_seen = min(self.size[one], MAX_POINTS_SCANNED)
            there = slice(self.start[one], self.start[one] + n_seen)
            apart = (self.centres[own] - self.centres[one]).astype(np.float32)
            for part in threads.chunks(len(points), DISTANCES_PER_THREAD // max(1, n_seen)):
                chosen = points[part]
                table = _squares(offset[chosen] + apart, self.offset[there])
                itself = chosen + (rows.start - there.start)  # no column, where it is not in there
                _keep_smallest(table, self.numbers[there], itself, chosen, best, indices)
        return indices

    def _probed(self, own: int, offset: Single) -> Iterator[tuple[int, Numbers]]:
        """Yield each list that is probed for any of these points, and those points."""
        n_probed = min(N_LISTS_PROBED, len(self.centres))
        apart = (self.centres - self.centres[own]).astype(np.float32)
        near = np.argpartition(_squares(offset, apart), n_probed - 1, axis=1)[:, :n_probed]
        points = np.argsort(near, axis=None, kind="stable") // n_probed
        ones, count = np.unique(near, return_counts=True)
        return zip(ones, np.split(points, np.cumsum(count)[:-1]), strict=True)


def _centres(sample: Array, n_lists: int, run: threads.Run) -> Array:
    """Return the centres of k-means, started from points spread over the sample."""
    centres: Array = sample[np.linspace(0, len(sample) - 1, n_lists).astype(int)]

    def closest(rows: slice) -> Numbers:
        return _closest(sample[rows], centres)

    for _ in range(N_KMEANS_ROUNDS):
        own = np.concatenate(run(closest, threads.chunks(len(sample), POINTS_PER_CHUNK)))
        order = np.argsort(own, kind="stable")
        used, first = np.unique(own[order], return_index=True)
        size = np.diff(first, append=len(own))
        centres[used] = np.add.reduceat(sample[order], first, axis=0) / size[:, None]
    return centres


def _closest(rows: Array, centres: Array) -> Numbers:
    """Return the index of the centre closest to each row."""
    middle = centres.mean(axis=0)
    centres = centres - middle
    table = (rows - middle) @ centres.T
    table -= 0.5 * np.einsum("nd,nd->n", centres, centres)
    indices: Numbers = table.argmax(axis=1)
    return indices


def _squares(A: Single, B: Single) -> Single:
    """Squared distances (n_a, n_b), by one matrix product."""
    a, b = (np.einsum("nd,nd->n", part, part)[:, None] for part in (A, B))
    left = np.concatenate([-2 * A, np.ones_like(a), a], axis=1)
    table: Single = left @ np.concatenate([B, b, np.ones_like(b)], axis=1).T
    return table


@kernel
def _keep_smallest(
    table: AnyArray,
    numbers: AnyArray,
    itself: AnyArray,
    points: AnyArray,
    best: AnyArray,
    indices: AnyArray,
) -> None:
    """Merge the distances of some points, which are rows of `table`, from others, which have these
    numbers, into the smallest so far, in rising order. Column `itself` is left out."""
    last = indices.shape[1] - 1
    for row in range(len(table)):
        point = points[row]
        for column in range(table.shape[1]):
            distance = table[row, column]
            if distance < best[point, last] and column != itself[row]:
                at = last
                while at > 0 and best[point, at - 1] > distance:
                    best[point, at] = best[point, at - 1]
                    indices[point, at] = indices[point, at - 1]
                    at -= 1
                best[point, at], indices[point, at] = distance, numbers[column]


def _without(own: Numbers, indices: Numbers) -> Numbers:
    """Drop each row's own index from its k + 1 nearest.

    Where points are equal, all k + 1 may be others: then the last is dropped.
    """
    order = np.argsort(indices == own[:, None], axis=1, kind="stable")
    return np.take_along_axis(indices, order, axis=1)[:, :-1]
