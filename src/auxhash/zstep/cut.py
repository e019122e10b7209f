"""cut: blocks of points inside which every coupling attracts, each minimised exactly.

Inside a block E is submodular, so a minimum cut minimises it (GraphCut, after FastHash).
Hardly anything needs a max-flow, though: a point whose linear term outweighs all its couplings to
undecided points has its optimal value already, whatever they become. Fixing it may decide its
neighbours, and so on; only what is left over goes to max-flow.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from auxhash.zstep.maxflow import minimum_cut
from auxhash.zstep.problem import ROUNDING, Array, BitProblem


class Cut:
    """Blocks in random order: one a group where the affinity knows groups, else grown greedily.

    Submodularity is tested on the couplings of the bit at hand: a group that is not submodular
    (real-valued y, a pair that carries both signs) falls apart into blocks that are.
    """

    def __call__(
        self, bit: BitProblem, z: NDArray[np.int8], rng: np.random.Generator
    ) -> NDArray[np.int8]:
        z = z.copy()
        inner = _couplings_within_groups(bit)
        block = _blocks(bit, inner, rng)
        members = np.split(np.argsort(block, kind="stable"), np.cumsum(np.bincount(block))[:-1])
        g = bit.field(z) + bit.c
        for number in rng.permutation(len(members)):
            solve_block(bit, inner, block, members[number], z, g)
        return z


class Inner(NamedTuple):
    """The couplings of points of one group, as neighbour lists."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    a: Array


def _couplings_within_groups(bit: BitProblem) -> Inner:
    """Few pairs lie within a group, always the same ones: they are looked up once a graph."""
    graph, groups = bit.graph, bit.groups
    if groups is None:
        return Inner(graph.indptr, graph.indices, bit.a)
    indptr, indices, edges = graph.derive(
        "within groups", lambda: _edges_within(groups, graph.indptr, graph.indices)
    )
    return Inner(indptr, indices, bit.a[edges])


def _blocks(bit: BitProblem, inner: Inner, rng: np.random.Generator) -> NDArray[np.int64]:
    """The number of each point's block."""
    n = len(bit.c)
    groups = np.zeros(n, np.int64) if bit.groups is None else bit.groups
    if not (inner.a > 0).any():
        return np.unique(groups, return_inverse=True)[1]
    order = rng.permutation(n)
    order = order[np.argsort(groups[order], kind="stable")]
    block: NDArray[np.int64] = _grow(order, groups, *inner)
    return block


def solve_block(
    bit: BitProblem,
    inner: Inner,
    block: NDArray[np.int64],
    members: NDArray[np.int64],
    z: NDArray[np.int8],
    g: Array,
) -> None:
    """Minimise E over z[members], in place, the other points fixed; keeps g = (1/2) Az + c."""
    old = z[members]
    u, free = _settle(members, block, z, g, *inner)
    if free.any():
        left = members[free]
        source, target, coupling = _pairs_among(left, *inner)
        z[left] = minimum_cut(source, target, coupling, u[free])
    changed = members[z[members] != old]
    _move(changed, z, g, bit.graph.indptr, bit.graph.indices, bit.a)


@njit(cache=True)
def _grow(order: Any, groups: Any, indptr: Any, indices: Any, a: Any) -> Any:
    """Number each point's block: greedily, within its group, no repelling pair inside a block."""
    n = len(order)
    block = np.full(n, -1, np.int64)
    repelled_by = np.full(n, -1, np.int64)
    number = begin = 0
    while begin < n:
        end = begin
        while end < n and groups[order[end]] == groups[order[begin]]:
            end += 1
        for root in range(begin, end):
            if block[order[root]] >= 0:
                continue
            for t in range(root, end):
                point = order[t]
                if block[point] < 0 and repelled_by[point] != number:
                    block[point] = number
                    for e in range(indptr[point], indptr[point + 1]):
                        if a[e] > 0:
                            repelled_by[indices[e]] = number
            number += 1
        begin = end
    return block


@njit(cache=True)
def _edges_within(groups: Any, indptr: Any, indices: Any) -> Any:
    """The edges between points of one group, as neighbour lists, and their numbers."""
    n = len(groups)
    begin = np.zeros(n + 1, np.int64)
    for point in range(n):
        begin[point + 1] = begin[point]
        for e in range(indptr[point], indptr[point + 1]):
            begin[point + 1] += groups[indices[e]] == groups[point]
    edges = np.empty(begin[n], np.int64)
    partners = np.empty(begin[n], np.uint32)
    at = 0
    for point in range(n):
        for e in range(indptr[point], indptr[point + 1]):
            if groups[indices[e]] == groups[point]:
                edges[at] = e
                partners[at] = indices[e]
                at += 1
    return begin, partners, edges


@njit(cache=True)
def _settle(members: Any, block: Any, z: Any, g: Any, indptr: Any, indices: Any, a: Any) -> Any:
    """Give every point of a block that is decided its value.

    Returns the linear term u of each member, with the settled and outside points folded in, and
    which members are left undecided.
    """
    number = block[members[0]]
    size = len(members)
    place = np.empty(len(z), np.int64)  # of each member; the rest is never read
    u = np.empty(size)
    slack = np.zeros(size)  # sum of |couplings| to members not yet settled
    for t in range(size):
        n = members[t]
        place[n] = t
        u[t] = g[n]
        for e in range(indptr[n], indptr[n + 1]):
            if block[indices[e]] == number:
                slack[t] += 0.5 * abs(a[e])
                u[t] -= 0.5 * a[e] * z[indices[e]]
    rounding = ROUNDING * slack
    free = np.ones(size, np.bool_)
    queue = np.empty(size, np.int64)
    queued = np.zeros(size, np.bool_)
    last = 0
    for t in range(size):
        if abs(u[t]) + rounding[t] >= slack[t]:
            queue[last] = t
            queued[t] = True
            last += 1
    first = 0
    while first < last:
        t = queue[first]
        first += 1
        n = members[t]
        if u[t] != 0:
            z[n] = -1 if u[t] > 0 else 1
        free[t] = False
        for e in range(indptr[n], indptr[n + 1]):
            if block[indices[e]] == number and free[place[indices[e]]]:
                s = place[indices[e]]
                u[s] += 0.5 * a[e] * z[n]
                slack[s] -= 0.5 * abs(a[e])
                if not queued[s] and abs(u[s]) + rounding[s] >= slack[s]:
                    queue[last] = s
                    queued[s] = True
                    last += 1
    return u, free


@njit(cache=True)
def _move(changed: Any, z: Any, g: Any, indptr: Any, indices: Any, a: Any) -> None:
    """Fold points that changed sign into the g of their partners."""
    for n in changed:
        for e in range(indptr[n], indptr[n + 1]):
            g[indices[e]] += a[e] * z[n]


@njit(cache=True)
def _pairs_among(points: Any, indptr: Any, indices: Any, a: Any) -> Any:
    """The pairs among some points of a group, by their place in `points`, and half their a."""
    place = np.full(len(indptr) - 1, -1)
    most = 0
    for t in range(len(points)):
        place[points[t]] = t
        most += indptr[points[t] + 1] - indptr[points[t]]
    source, target, coupling = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    count = 0
    for t in range(len(points)):
        for e in range(indptr[points[t]], indptr[points[t] + 1]):
            other = place[indices[e]]
            if other > t:
                source[count] = t
                target[count] = other
                coupling[count] = 0.5 * a[e]
                count += 1
    return source[:count], target[:count], coupling[:count]
