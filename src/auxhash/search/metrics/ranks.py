"""Ranks of the true neighbours among all base points, with ties counted by their expectation.

Any distance between a query and a code that is a sum over the bytes of the code is given by one
table of 256 numbers per byte: the query's outputs (`index.tables_from_outputs`), product
quantisation, and whatever is learnt. Equal codes have equal sums, to the last digit, so that they
tie.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from auxhash.codes import Packed, to_words
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Numbers, Single
from auxhash.compute.kernels import kernel
from auxhash.search.index.scan import to_planes
from auxhash.search.metrics.tally import take

QUERIES_PER_TASK = 8

TablesOf = Callable[[slice], Single]  # (rows, n_bytes, 256) of these queries


@dataclass(frozen=True, eq=False)
class NeighborRanks:
    """Places of each query's neighbours (n_queries, K), nearest neighbour first.

    `above` counts the points that rank before the neighbour, `tied` those at its distance, itself
    among them.
    """

    above: Numbers
    tied: Numbers

    def within(self, k: int, nearest: int | None = None) -> Array:
        """Per query, the expected share of its neighbours (or of the `nearest` first) that are
        among the first k points."""
        part = slice(nearest)
        expected: Array = np.clip((k - self.above[:, part]) / self.tied[:, part], 0, 1).mean(axis=1)
        return expected


def by_hamming(queries: Packed, base: Packed, neighbors: AnyArray, n_bits: int) -> NeighborRanks:
    """Rank the base by the Hamming distance of packed codes."""
    tally = take(queries, base, neighbors=neighbors, n_bits=n_bits)
    own = to_words(base)[neighbors] ^ to_words(queries)[:, None]
    distance = np.bitwise_count(own).sum(axis=2, dtype=np.int64)
    return NeighborRanks(
        *(np.take_along_axis(a, distance, axis=1) for a in (tally.before, tally.points))
    )


def by_tables(tables: TablesOf, base: Packed, neighbors: AnyArray) -> NeighborRanks:
    """Rank the base by a sum over the bytes of each code, least first."""
    planes, near = to_planes(base), np.ascontiguousarray(neighbors, np.int64)
    above, tied = np.empty_like(near), np.empty_like(near)

    def count(rows: slice) -> None:
        _count(tables(rows), planes, near[rows], above[rows], tied[rows])

    with threads.pool() as run:
        run(count, threads.chunks(len(near), QUERIES_PER_TASK))
    return NeighborRanks(above, tied)


def by_positions(positions: AnyArray, neighbors: AnyArray) -> NeighborRanks:
    """Ranks where only the first points (n_queries, k) of each ranking are known, without ties.

    A neighbour that is not among them ranks after any point.
    """
    hits = positions[:, None, :] == neighbors[:, :, None]
    last = np.iinfo(np.int64).max // 2
    above = np.where(hits.any(axis=2), hits.argmax(axis=2), last)
    return NeighborRanks(above, np.ones_like(above))


@kernel
def _sum(table: AnyArray, planes: AnyArray, sums: AnyArray) -> None:
    """Add up the table of each byte, four bytes at a time: fewer passes over the sums."""
    n_planes, n = planes.shape
    sums[:] = 0
    fours = n_planes - n_planes % 4
    for p in range(0, fours, 4):
        t0, t1, t2, t3 = table[p], table[p + 1], table[p + 2], table[p + 3]
        p0, p1, p2, p3 = planes[p], planes[p + 1], planes[p + 2], planes[p + 3]
        for i in range(n):
            sums[i] += (t0[p0[i]] + t1[p1[i]]) + (t2[p2[i]] + t3[p3[i]])
    for p in range(fours, n_planes):
        for i in range(n):
            sums[i] += table[p][planes[p][i]]


@kernel
def _count(
    tables: AnyArray, planes: AnyArray, near: AnyArray, above: AnyArray, tied: AnyArray
) -> None:
    """Count the points before each neighbour, and those at its distance."""
    n_queries, n_near = near.shape
    sums = np.empty(planes.shape[1], np.float32)
    own = np.empty(n_near, np.float32)
    for q in range(n_queries):
        _sum(tables[q], planes, sums)
        farthest = sums[near[q, 0]]
        for j in range(n_near):
            own[j] = sums[near[q, j]]
            farthest = max(farthest, own[j])
            above[q, j] = tied[q, j] = 0
        for i in range(len(sums)):
            if sums[i] <= farthest:
                for j in range(n_near):
                    above[q, j] += sums[i] < own[j]
                    tied[q, j] += sums[i] == own[j]
