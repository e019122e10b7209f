"""cut: blocks of points inside which every coupling attracts, each minimised exactly.

Inside a block E is submodular, so a minimum cut minimises it (GraphCut, after FastHash). Few points
need a max-flow, though: where the linear term of a point outweighs all its couplings to undecided
points, it decides the point's optimal value, whatever they become. Fixing that point may decide its
neighbours, and so on; only the points that remain undecided go to max-flow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes
from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.kernels import kernel
from auxhash.compute.registry import register
from auxhash.mac.zstep.graph import EDGES_PER_TASK, Edges, weigh
from auxhash.mac.zstep.maxflow import minimum_cut
from auxhash.mac.zstep.problem import ENERGY_TOLERANCE, BitProblem

ORDERS = ("random", "fixed")


@register("Cut")
@dataclass(frozen=True)
class Cut:
    """Minimise over the blocks in turn: one block per group, if the affinity has groups.

    Whether a group is submodular is tested on the couplings of the current bit. One that is not
    (real-valued y, a pair with both signs) is split greedily into blocks that are. Without groups,
    all points count as one.

    Args:
        order: "random" takes the blocks in a fresh random order for every bit (and grows blocks
            from points in random order); "fixed" always in the order of the groups, classes sorted
            (and grows blocks from points in the order of their numbers). With a fixed order the
            same couples of classes, next to each other in it, are opposite in most bits, which
            makes poorer codes; the paper does not say which it takes, and the program of FastHash's
            authors takes random orders, from codes of all +1.
        overlap: whether blocks that split a group may overlap. Then a block takes every point of
            its group that none of its members repels, also those of earlier blocks.
    """

    order: Literal["random", "fixed"] = "random"
    overlap: bool = False

    def __post_init__(self) -> None:
        checks.one_of("order", self.order, ORDERS)
        checks.flag("overlap", self.overlap)

    def __call__(self, bit: BitProblem, z: Codes, rng: np.random.Generator) -> Codes:
        z = z.copy()
        shuffle = rng.permutation if self.order == "random" else np.arange
        slack, repels = survey(bit)
        members = blocks(bit, repels, self.overlap, shuffle)
        known = np.empty(0) if repels else slack
        place = np.full(len(z), -1, np.int32)
        for number in shuffle(len(members)):
            solve_block(bit, members[number], place, z, known)
        return z


def survey(bit: BitProblem) -> tuple[Array, bool]:
    """The slack of every point: half the sum of its |couplings| to points of the same group, (n,);
    and whether any pair of a group repels."""
    slack = np.empty(len(bit.c))
    edges = bit.graph.edges

    def part(rows: slice) -> bool:
        return _survey(rows.start, rows.stop, edges, bit.a, slack)

    n_inside = int((edges.within - edges.indptr[:-1]).sum())
    return slack, any(bit.run(part, threads.chunks(len(slack), _points_per_task(bit, n_inside))))


def blocks(
    bit: BitProblem, repels: bool, overlap: bool, shuffle: Callable[[int], Numbers]
) -> list[Numbers]:
    """Return the points of each block, in rising order; blocks grow in the order `shuffle(n)`."""
    n = len(bit.c)
    groups = np.zeros(n, np.int64) if bit.groups is None else bit.groups
    if not repels:
        return bit.graph.derive("groups", lambda: _by_group(groups))
    order = shuffle(n)
    order = order[np.argsort(groups[order], kind="stable")]
    grown = _grow(order, groups, overlap, bit.graph.edges, bit.a)
    return [np.sort(members) for members in grown]


def _by_group(groups: Numbers) -> list[Numbers]:
    """Return the points of each group, in rising order."""
    number = np.unique(groups, return_inverse=True)[1]
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])


def solve_block(
    bit: BitProblem, members: Numbers, place: NDArray[np.int32], z: Codes, known: Array
) -> None:
    """Minimise E over z[members], in place, the other points fixed.

    `place` is -1 for every point, and so it is again in the end. `known` is the slack of every
    point if blocks are whole groups, empty otherwise.
    """
    edges = bit.graph.edges
    place[members] = np.arange(len(members))
    field = outer_fields(bit, members, z)
    slack = known[members] if len(known) else _inner_fields(members, place, z, edges, bit.a, field)
    free = _settle(members, place, z, field, slack, edges, bit.a)
    place[members] = -1
    if free.any():
        left = members[free]
        place[left] = np.arange(len(left))
        z[left] = minimum_cut(left, place, edges, bit.a, field[free], slack[free])
        place[left] = -1


def outer_fields(bit: BitProblem, members: Numbers, z: Codes) -> Array:
    """Return u: the linear term c of these points plus their couplings to points of other groups.

    It is sec. 3.3's u_n = 2 sum_{m not in B} a_nm z_mi - mu h_i(x_n), with the constants of
    `problem`; the couplings inside the block, its v_nm = a_nm, are `bit.a`.
    """
    u = np.empty(len(members))
    edges = bit.graph.edges

    def part(rows: slice) -> None:
        _outer_fields(members[rows], z, bit.c, edges, bit.a, u[rows])

    bit.run(part, threads.chunks(len(u), _points_per_task(bit, len(edges.indices))))
    return u


def _points_per_task(bit: BitProblem, n_edges: int) -> int:
    """Number of points with about EDGES_PER_TASK edges, if all points have `n_edges` together."""
    return 1 + EDGES_PER_TASK * len(bit.c) // max(1, n_edges)


@kernel(fastmath={"reassoc"})
def _survey(start: int, stop: int, edges: Edges, a: Array, slack: Array) -> bool:
    """Set the slack of points start..stop; return True if any repels a point of its group."""
    indptr, within = edges.indptr, edges.within
    most = 0.0
    for n in range(start, stop):
        inside = 0.0
        for e in range(indptr[n], within[n]):
            most = max(most, a[e])
            inside += abs(a[e])
        slack[n] = 0.5 * inside
    return most > 0


@kernel
def _outer_fields(
    members: AnyArray, z: AnyArray, c: Array, edges: Edges, a: Array, u: Array
) -> None:
    """Set u as `outer_fields` says."""
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    for t in range(len(members)):
        n = members[t]
        outer = slice(within[n], indptr[n + 1])
        u[t] = c[n] + 0.5 * weigh(a[outer], indices[outer], z)


@kernel
def _grow(order: Numbers, groups: Numbers, overlap: bool, edges: Edges, a: Array) -> list[Numbers]:
    """The points of each block, grown greedily in its group without any repelling pair.

    Points that are in no block yet come first, then with `overlap` the others: with or without it,
    there are as many blocks.
    """
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    n = len(order)
    covered = np.zeros(n, np.bool_)
    repelled_by = np.full(n, -1, np.int64)
    members = np.empty(n, np.int64)
    grown: list[Numbers] = []
    begin = 0
    while begin < n:
        end = begin
        while end < n and groups[order[end]] == groups[order[begin]]:
            end += 1
        for root in range(begin, end):
            if covered[order[root]]:
                continue
            size = fresh = 0
            for again in range(2 if overlap else 1):
                for t in range(begin if again else root, end):
                    point = order[t]
                    if covered[point] != again or repelled_by[point] == len(grown):
                        continue
                    members[size] = point
                    size += 1
                    for e in range(indptr[point], within[point]):
                        if a[e] > 0:
                            repelled_by[indices[e]] = len(grown)
                if not again:
                    fresh = size
            covered[members[:fresh]] = True
            grown.append(members[:size].copy())
        begin = end
    return grown


@kernel
def _inner_fields(
    members: AnyArray, place: AnyArray, z: AnyArray, edges: Edges, a: Array, field: Array
) -> Array:
    """Add the couplings to points of the same group outside the block; the slack inside it."""
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    slack = np.empty(len(members))
    for t in range(len(members)):
        n = members[t]
        inside = outside = 0.0
        for e in range(indptr[n], within[n]):
            if place[indices[e]] >= 0:
                inside += abs(a[e])
            else:
                outside += a[e] * z[indices[e]]
        field[t] += 0.5 * outside
        slack[t] = 0.5 * inside
    return slack


@kernel
def _settle(
    members: AnyArray,
    place: AnyArray,
    z: AnyArray,
    field: Array,
    slack: Array,
    edges: Edges,
    a: Array,
) -> NDArray[np.bool_]:
    """Set z of every point of a block whose optimal value is decided; return the undecided.

    Adds the couplings to decided members to the linear term `field` of each undecided one, and
    takes them from its slack: half the sum of its |couplings| to undecided members.
    """
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    size = len(members)
    rounding = ENERGY_TOLERANCE * slack
    free = np.ones(size, np.bool_)
    queue = np.empty(size, np.int64)
    queued = np.zeros(size, np.bool_)
    last = 0
    for t in range(size):
        if abs(field[t]) + rounding[t] >= slack[t]:
            queue[last] = t
            queued[t] = True
            last += 1
    first = 0
    while first < last:
        t = queue[first]
        first += 1
        n = members[t]
        if field[t] != 0:
            z[n] = -1 if field[t] > 0 else 1
        free[t] = False
        if last == size:  # every member is decided already
            continue
        for e in range(indptr[n], within[n]):
            s = place[indices[e]]
            if s >= 0 and not queued[s]:
                field[s] += 0.5 * a[e] * z[n]
                slack[s] -= 0.5 * abs(a[e])
                if abs(field[s]) + rounding[s] >= slack[s]:
                    queue[last] = s
                    queued[s] = True
                    last += 1
    return free
