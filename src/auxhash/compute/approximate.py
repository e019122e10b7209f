"""Approximate nearest neighbours of feature vectors among themselves.

For more points than exact search can take, whose time grows with the square of their number. Each
point is put into the list of its nearest centre, and looked for in the lists of the centres nearest
to it. The points of a list that look into the same other list do so together, by a matrix product.
The few points whose lists hold too few others get their exact neighbours.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import Array, Single
from auxhash.compute.kernels import kernel
from auxhash.compute.neighbors import Metric, directions, firsts, nearest, scale, zero_rows

MOST_EXACT = 300_000  # points whose exact neighbours are found in a reasonable time
PER_LIST = 1000  # points in a list on average
PROBED = 32  # lists that are looked at for each point
LEARNT = 64  # points per list that the centres are learnt from
ROUNDS = 10  # of k-means
CHUNK = 4096  # points prepared, or assigned to lists, at a time
PIECE = 4096  # points of a list that are searched for together
LONGEST = 1 << 15  # points of a list that are looked at: very many may be the same
TABLE = 1 << 20  # distances held at once by a thread
TIGHT = 1e-15  # offsets whose squares single precision would take for 0


def near(X: NDArray[Any], k: int, metric: Metric) -> NDArray[np.int64]:
    """Row numbers (n, k) of the points nearest to each row of X; of many points, approximately."""
    if len(X) > MOST_EXACT:
        return nearest_approximately(X, k, metric)
    return nearest(X, k=k, metric=metric)[0]


def nearest_approximately(X: NDArray[Any], k: int, metric: Metric) -> NDArray[np.int64]:
    """Row numbers (n, k) of points near to each row of X, itself left out; most of them nearest.

    The same on any number of threads.
    """
    found = np.empty((len(X), k), np.int64)
    zeros = zero_rows(X) if metric == "cosine" else np.empty(0, np.int64)
    with threads.pool() as run:
        lists = Lists.of(X, metric, zeros.size > 0, run)

        def search(piece: tuple[int, slice]) -> None:
            found[lists.numbers[piece[1]]] = lists.nearest(*piece, k)

        run(search, lists.pieces())
    short = np.flatnonzero(found.min(axis=1) < 0)
    if len(short):
        found[short] = _without(short, nearest(X, X[short], k + 1, metric)[0])
    found[zeros] = firsts(zeros, k)
    return found


class Lists(NamedTuple):
    """Points in lists, each in that of its nearest centre.

    Single precision would not tell apart points that are near to each other and far from all
    else: so it holds how far each is from its centre.
    """

    centres: Array  # (lists, D)
    offset: Single  # (n, D): of the points from their centres, list after list
    numbers: NDArray[np.int64]  # (n,): their rows in X
    start: NDArray[np.int64]  # (lists,): of each list
    size: NDArray[np.int64]  # (lists,)
    reach: Array  # (n,): the largest entry of each offset, in double precision

    @classmethod
    def of(cls, X: NDArray[Any], metric: Metric, with_zeros: bool, run: threads.Run) -> "Lists":
        """Those of the rows of X, or of their directions; about PER_LIST points each."""
        chunks = threads.chunks(len(X), CHUNK)
        if metric == "euclidean":
            scale(X)  # which refuses what no distances can be had of
        largest = max(float(np.abs(X[rows]).max(initial=0)) for rows in chunks)
        unit = np.ldexp(0.5, np.frexp(largest)[1])  # squares are far from the ends of the range

        def prepared(rows: slice | NDArray[np.int64]) -> Array:
            if metric == "cosine":
                return directions(X[rows], with_zeros)
            scaled: Array = np.asarray(X[rows], float) / unit
            return scaled

        n_lists = max(1, len(X) // PER_LIST)
        step = max(1, len(X) // (LEARNT * n_lists))
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
            for part in threads.chunks(self.size[one], PIECE)
        ]

    def nearest(self, own: int, rows: slice, k: int) -> NDArray[np.int64]:
        """The k nearest of points of a list, by their rows in X; -1 where too few were seen."""
        offset = self.offset[rows]
        found = np.full((len(offset), k), -1, np.int64)
        best = np.full((len(offset), k), np.inf, np.float32)
        if TIGHT * np.abs(self.centres[own]).max() < self.reach[rows].max() < TIGHT:
            return found
        for one, points in self._probed(own, offset):
            n_seen = min(self.size[one], LONGEST)
            there = slice(self.start[one], self.start[one] + n_seen)
            apart = (self.centres[own] - self.centres[one]).astype(np.float32)
            for part in threads.chunks(len(points), TABLE // max(1, n_seen)):
                chosen = points[part]
                table = _squares(offset[chosen] + apart, self.offset[there])
                itself = chosen + (rows.start - there.start)  # no column, where it is not in there
                _keep_smallest(table, self.numbers[there], itself, chosen, best, found)
        return found

    def _probed(self, own: int, offset: Single) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The lists nearest to any of these points of a list, and to which of them each is."""
        n_probed = min(PROBED, len(self.centres))
        apart = (self.centres - self.centres[own]).astype(np.float32)
        near = np.argpartition(_squares(offset, apart), n_probed - 1, axis=1)[:, :n_probed]
        points = np.argsort(near, axis=None, kind="stable") // n_probed
        ones, count = np.unique(near, return_counts=True)
        return zip(ones, np.split(points, np.cumsum(count)[:-1]), strict=True)


def _centres(sample: Array, n_lists: int, run: threads.Run) -> Array:
    """By k-means, from points spread over the sample."""
    centres: Array = sample[np.linspace(0, len(sample) - 1, n_lists).astype(int)]

    def closest(rows: slice) -> NDArray[np.int64]:
        return _closest(sample[rows], centres)

    for _ in range(ROUNDS):
        own = np.concatenate(run(closest, threads.chunks(len(sample), CHUNK)))
        order = np.argsort(own, kind="stable")
        used, first = np.unique(own[order], return_index=True)
        size = np.diff(first, append=len(own))
        centres[used] = np.add.reduceat(sample[order], first, axis=0) / size[:, None]
    return centres


def _closest(rows: Array, centres: Array) -> NDArray[np.int64]:
    """The number of the centre closest to each row."""
    middle = centres.mean(axis=0)
    centres = centres - middle
    table = (rows - middle) @ centres.T
    table -= 0.5 * np.einsum("nd,nd->n", centres, centres)
    found: NDArray[np.int64] = table.argmax(axis=1)
    return found


def _squares(A: Single, B: Single) -> Single:
    """Squared distances (n_a, n_b), by one matrix product."""
    a, b = (np.einsum("nd,nd->n", part, part)[:, None] for part in (A, B))
    left = np.concatenate([-2 * A, np.ones_like(a), a], axis=1)
    table: Single = left @ np.concatenate([B, b, np.ones_like(b)], axis=1).T
    return table


@kernel
def _keep_smallest(
    table: Any, numbers: Any, itself: Any, points: Any, best: Any, found: Any
) -> None:
    """Merge the distances of some points, which are rows of `table`, from others, which have these
    numbers, into the smallest so far, in rising order. Column `itself` is left out."""
    last = found.shape[1] - 1
    for row in range(len(table)):
        point = points[row]
        for column in range(table.shape[1]):
            distance = table[row, column]
            if distance < best[point, last] and column != itself[row]:
                at = last
                while at > 0 and best[point, at - 1] > distance:
                    best[point, at], found[point, at] = best[point, at - 1], found[point, at - 1]
                    at -= 1
                best[point, at], found[point, at] = distance, numbers[column]


def _without(own: NDArray[np.int64], found: NDArray[np.int64]) -> NDArray[np.int64]:
    """The k nearest of each row, of the k + 1 found, without its own.

    Of points that are the same, k + 1 others may have been found: then the last is left out.
    """
    order = np.argsort(found == own[:, None], axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)[:, :-1]
