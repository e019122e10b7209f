"""cut: blocks of points inside which every coupling attracts, each minimised exactly.

Inside a block E is submodular, so a minimum cut minimises it (GraphCut, after FastHash). Few points
need a max-flow, though: where the linear term of a point outweighs all its couplings to undecided
points, it decides the point's optimal value, whatever they become. Fixing that point may decide its
neighbours, and so on; only the points that remain undecided go to max-flow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auxhash import checks
from auxhash.compute.arrays import Array
from auxhash.compute.kernels import kernel
from auxhash.storage.encoding import register
from auxhash.zstep.maxflow import minimum_cut
from auxhash.zstep.problem import ROUNDING, BitProblem

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
            makes poorer codes; the paper does not say which it takes.
        overlap: whether blocks that split a group may overlap. Then a block takes every point of
            its group that none of its members repels, also those of earlier blocks.
    """

    order: Literal["random", "fixed"] = "random"
    overlap: bool = False

    def __post_init__(self) -> None:
        checks.one_of("order", self.order, ORDERS)
        checks.flag("overlap", self.overlap)

    def __call__(
        self, bit: BitProblem, z: NDArray[np.int8], rng: np.random.Generator
    ) -> NDArray[np.int8]:
        z = z.copy()
        shuffle = rng.permutation if self.order == "random" else np.arange
        u, slack, repels = survey(bit, z)
        members = blocks(bit, repels, self.overlap, shuffle)
        known = np.empty(0) if repels else slack
        block = np.full(len(z), -1, np.int64)
        for number in shuffle(len(members)):
            block[members[number]] = number
            solve_block(bit, block, members[number], z, u, known)
        return z


def survey(bit: BitProblem, z: NDArray[np.int8]) -> tuple[Array, Array, bool]:
    """u: the linear term c plus the couplings to points of other groups, (n,); slack: half the sum
    of |couplings| to points of the same group, (n,); and whether any pair of a group repels."""
    u, slack = np.empty(len(z)), np.empty(len(z))
    graph = bit.graph
    codes = z.astype(np.float64)

    def part(rows: slice) -> bool:
        repels: bool = _survey(rows.start, rows.stop, graph.edges, bit.a, codes, bit.c, u, slack)
        return repels

    return u, slack, any(bit.run(part, graph.chunks))


def blocks(
    bit: BitProblem, repels: bool, overlap: bool, shuffle: Callable[[int], NDArray[np.int64]]
) -> list[NDArray[np.int64]]:
    """The points of each block, in rising order; `shuffle(n)` is the order to grow blocks in."""
    n = len(bit.c)
    groups = np.zeros(n, np.int64) if bit.groups is None else bit.groups
    if not repels:
        block = np.unique(groups, return_inverse=True)[1]
        return np.split(np.argsort(block, kind="stable"), np.cumsum(np.bincount(block))[:-1])
    order = shuffle(n)
    order = order[np.argsort(groups[order], kind="stable")]
    found = _grow(order, groups, overlap, bit.graph.edges, bit.a)
    return [np.sort(members) for members in found]


def solve_block(
    bit: BitProblem,
    block: NDArray[np.int64],
    members: NDArray[np.int64],
    z: NDArray[np.int8],
    u: Array,
    known: Array,
) -> None:
    """Minimise E over z[members], in place, the other points fixed; updates u as well.

    `block` holds one number for all members, and others for all other points. `known` is the slack
    of every point if blocks are whole groups, empty otherwise.
    """
    old = z[members]
    edges = bit.graph.edges
    field, free = _settle(members, block, z, u, known, edges, bit.a)
    if free.any():
        left = members[free]
        source, target, coupling = _pairs_among(left, edges, bit.a)
        z[left] = minimum_cut(source, target, coupling, field[free])
    changed = members[z[members] != old]
    _move(changed, z, u, edges, bit.a)


@kernel(fastmath={"reassoc"})
def _survey(start: int, stop: int, edges: Any, a: Any, z: Any, c: Any, u: Any, slack: Any) -> bool:
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    most = 0.0
    for n in range(start, stop):
        inside = 0.0
        for e in range(indptr[n], within[n]):
            most = max(most, a[e])
            inside += abs(a[e])
        slack[n] = 0.5 * inside
        field = 0.0
        for e in range(within[n], indptr[n + 1]):
            field += a[e] * z[indices[e]]
        u[n] = c[n] + 0.5 * field
    return most > 0


@kernel
def _grow(order: Any, groups: Any, overlap: bool, edges: Any, a: Any) -> Any:
    """The points of each block, grown greedily in its group without any repelling pair.

    Points that are in no block yet come first, then with `overlap` the others: with or without it,
    there are as many blocks.
    """
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    n = len(order)
    covered = np.zeros(n, np.bool_)
    repelled_by = np.full(n, -1, np.int64)
    members = np.empty(n, np.int64)
    found: list[Any] = []
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
                    if covered[point] != again or repelled_by[point] == len(found):
                        continue
                    members[size] = point
                    size += 1
                    for e in range(indptr[point], within[point]):
                        if a[e] > 0:
                            repelled_by[indices[e]] = len(found)
                if not again:
                    fresh = size
            covered[members[:fresh]] = True
            found.append(members[:size].copy())
        begin = end
    return found


@kernel
def _settle(members: Any, block: Any, z: Any, u: Any, known: Any, edges: Any, a: Any) -> Any:
    """Set z of every point of a block whose optimal value is decided.

    Returns the linear term of each member, its couplings to decided and outside points added, and
    which members are undecided.
    """
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    number = block[members[0]]
    size = len(members)
    place = np.empty(len(z), np.int64)  # of each member in `members`; the rest is never read
    field = np.empty(size)
    slack = np.empty(size)  # half the sum of |couplings| to undecided members
    for t in range(size):
        n = members[t]
        place[n] = t
        if len(known):
            field[t], slack[t] = u[n], known[n]
            continue
        inside = outside = 0.0
        for e in range(indptr[n], within[n]):
            if block[indices[e]] == number:
                inside += abs(a[e])
            else:
                outside += a[e] * z[indices[e]]
        field[t], slack[t] = u[n] + 0.5 * outside, 0.5 * inside
    rounding = ROUNDING * slack
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
            if block[indices[e]] == number and not queued[place[indices[e]]]:
                s = place[indices[e]]
                field[s] += 0.5 * a[e] * z[n]
                slack[s] -= 0.5 * abs(a[e])
                if abs(field[s]) + rounding[s] >= slack[s]:
                    queue[last] = s
                    queued[s] = True
                    last += 1
    return field, free


@kernel
def _move(changed: Any, z: Any, u: Any, edges: Any, a: Any) -> None:
    """Update the u of the partners in other groups of points that changed sign."""
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    for n in changed:
        for e in range(within[n], indptr[n + 1]):
            u[indices[e]] += a[e] * z[n]


@kernel
def _pairs_among(points: Any, edges: Any, a: Any) -> Any:
    """The pairs among some points of a group, as indices into `points`, and half of their a."""
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    place = np.full(len(within), -1)
    most = 0
    for t in range(len(points)):
        place[points[t]] = t
        most += within[points[t]] - indptr[points[t]]
    source, target, coupling = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    count = 0
    for t in range(len(points)):
        for e in range(indptr[points[t]], within[points[t]]):
            other = place[indices[e]]
            if other > t:
                source[count] = t
                target[count] = other
                coupling[count] = 0.5 * a[e]
                count += 1
    return source[:count], target[:count], coupling[:count]
