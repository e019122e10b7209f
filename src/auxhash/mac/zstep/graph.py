"""The pairs as neighbour lists: the edges of a sparse graph, from each point to its partners.

A pair i < j makes an edge of i, next to the one before, and an edge of j, whose list lies anywhere
in memory. So lists are filled for one block of points at a time, from all i in turn: then they
grow at no more places than the caches hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.kernels import kernel
from auxhash.mac.affinity import Affinity
from auxhash.mac.losses import LossTable

Derived = TypeVar("Derived")

EDGES_PER_TASK = 1 << 18  # edges per task of a thread
POINTS_PER_BLOCK = 4096  # points whose lists are filled together


class Edges(NamedTuple):
    """Neighbour lists, as kernels take them: edges indptr[n]..indptr[n+1] lead from n to its
    partners. Those before within[n] lead to partners in n's own group (without groups, all points
    are one group). The coefficients of edge e, if there are any, are coef[pair[e]]."""

    indptr: Numbers  # (n + 1,)
    within: Numbers  # (n,)
    indices: NDArray[np.uint32]  # (edges,), the partners
    row: NDArray[np.uint8]  # (edges,), as in LossTable
    pair: NDArray[np.uint32]  # (edges,), the number of the pair; empty if R = 0
    coef: Array  # (pairs, R), as in LossTable


@dataclass(frozen=True, eq=False)
class Graph:
    """The pairs as neighbour lists."""

    edges: Edges
    memo: dict[str, Any] = field(default_factory=dict)  # what solvers derive from it, kept

    @property
    def indptr(self) -> Numbers:
        return self.edges.indptr

    @property
    def indices(self) -> NDArray[np.uint32]:
        return self.edges.indices

    @cached_property
    def chunks(self) -> list[slice]:
        """Slices of consecutive points with about EDGES_PER_TASK edges each."""
        n = len(self.indptr) - 1
        cuts = np.searchsorted(
            self.indptr, np.arange(EDGES_PER_TASK, self.indptr[-1], EDGES_PER_TASK)
        )
        bounds = np.unique([0, *cuts, n])
        return [slice(int(a), int(b)) for a, b in pairwise(bounds)]

    def derive(self, name: str, make: Callable[[], Derived]) -> Derived:
        """The result of make(), called only the first time that `name` is asked for."""
        if name not in self.memo:
            self.memo[name] = make()
        derived: Derived = self.memo[name]
        return derived


def graph_of(affinity: Affinity, table: LossTable) -> Graph:
    """The lists: of each point, partners in its own group first, each part in rising order."""
    n, groups = affinity.n_points, np.zeros(affinity.n_points, np.int32)
    if affinity.groups is not None:  # renumbered: half as long, more of them are in the caches
        groups = np.unique(affinity.groups, return_inverse=True)[1].astype(np.int32)
    starts, j, order = affinity.by_first()
    row = table.row if order is None else table.row[order]
    count, within = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    shares = threads.chunks(n, -(-n // threads.n_shares(n, len(j), EDGES_PER_TASK)))

    def add(own: slice) -> None:
        _count(own.start, own.stop, starts, j, groups, count, within)

    threads.run_kernels(add, shares)
    indptr = np.cumsum(count)
    within += indptr[:-1]
    at = np.stack([within, indptr[:-1]])  # where the next edge of each point goes, out and inside
    indices, rows = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.uint8)
    numbers = np.empty(indptr[-1] if table.coef.shape[1] else 0, np.uint32)

    def place(own: slice) -> None:
        pairs = starts, j, groups, row
        _place(own.start, own.stop, POINTS_PER_BLOCK, *pairs, at, indices, rows, numbers)

    threads.run_kernels(place, shares)
    if len(numbers) and order is not None:
        numbers = order[numbers].astype(np.uint32)
    return Graph(Edges(indptr, within, indices, rows, numbers, table.coef))


@kernel
def _count(
    start: int,
    stop: int,
    starts: AnyArray,
    j: AnyArray,
    groups: AnyArray,
    count: AnyArray,
    within: AnyArray,
) -> None:
    """Add the edges of points start..stop to count[n + 1], those inside a group to within[n]."""
    for i in range(stop):
        first, last = starts[i], starts[i + 1]
        if start <= i:
            count[i + 1] += last - first
            for p in range(first, last):
                within[i] += groups[i] == groups[j[p]]
        for p in range(first + np.searchsorted(j[first:last], start), last):
            if j[p] >= stop:
                break
            count[j[p] + 1] += 1
            within[j[p]] += groups[i] == groups[j[p]]


@kernel
def _place(
    start: int,
    stop: int,
    block: int,
    starts: AnyArray,
    j: AnyArray,
    groups: AnyArray,
    row: AnyArray,
    at: AnyArray,
    indices: AnyArray,
    rows: AnyArray,
    numbers: AnyArray,
) -> None:
    """Fill the lists of points start..stop, `block` at a time."""
    cursor = np.empty(stop, np.int64)  # the first pair of each i that is not in a list yet
    for i in range(stop):
        cursor[i] = starts[i] + np.searchsorted(j[starts[i] : starts[i + 1]], start)
    for low in range(start, stop, block):
        high = min(low + block, stop)
        for i in range(high):
            p, end, own = cursor[i], starts[i + 1], groups[i]
            while p < end and j[p] < high:
                same = np.int64(groups[j[p]] == own)
                e = at[same, j[p]]
                at[same, j[p]] = e + 1
                indices[e], rows[e] = i, row[p]
                if len(numbers):
                    numbers[e] = p
                p += 1
            cursor[i] = p
        for i in range(low, high):
            own = groups[i]
            for p in range(starts[i], starts[i + 1]):
                same = np.int64(groups[j[p]] == own)
                e = at[same, i]
                at[same, i] = e + 1
                indices[e], rows[e] = j[p], row[p]
                if len(numbers):
                    numbers[e] = p


@kernel
def weigh(a: Array, partners: AnyArray, z: AnyArray) -> float:
    """The sum of a[e] z[partners[e]] over some edges.

    Four sums, in an order of their own: where the compiler may choose one, it takes gather
    instructions, which on many processors are several times slower than as many plain loads.
    """
    s0 = s1 = s2 = s3 = 0.0
    fours = len(a) // 4
    for four in range(fours):
        e = 4 * four
        s0 += a[e] * z[partners[e]]
        s1 += a[e + 1] * z[partners[e + 1]]
        s2 += a[e + 2] * z[partners[e + 2]]
        s3 += a[e + 3] * z[partners[e + 3]]
    for e in range(4 * fours, len(a)):
        s0 += a[e] * z[partners[e]]
    return (s0 + s1) + (s2 + s3)
