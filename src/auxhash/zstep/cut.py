"""cut: blocks of points inside which every coupling attracts, each minimised exactly.

Inside a block E is submodular, so a minimum cut minimises it (GraphCut, after FastHash).
Hardly anything needs a max-flow, though: a point whose linear term outweighs all its couplings to
undecided points has its optimal value already, whatever they become. Fixing it may decide its
neighbours, and so on; only what is left over goes to the max-flow library.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

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
        blocks = _blocks(bit, rng)
        place = np.full(len(z), -1, np.int64)  # of a point inside the current block
        for number in rng.permutation(len(blocks)):
            solve_block(bit, z, blocks[number], place)
        return z


def _blocks(bit: BitProblem, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    n = len(bit.c)
    groups = np.zeros(n, np.int64) if bit.groups is None else bit.groups
    order = rng.permutation(n)
    order = order[np.argsort(groups[order], kind="stable")]
    block = _grow(order, groups, bit.indptr, bit.indices, bit.a)
    members = np.argsort(block, kind="stable")
    return np.split(members, np.cumsum(np.bincount(block))[:-1])


def solve_block(
    bit: BitProblem, z: NDArray[np.int8], block: NDArray[np.int64], place: NDArray[np.int64]
) -> None:
    """Minimise E over z[block], in place, the other points fixed; `place` stays all -1."""
    place[block] = np.arange(len(block))
    u = np.empty(len(block))
    free = _settle(block, place, z, bit.c, u, bit.indptr, bit.indices, bit.a)
    if free.any():
        left = np.flatnonzero(free)
        place[block] = -1
        place[block[left]] = np.arange(len(left))
        source, target, coupling = _inner_edges(block[left], place, bit.indptr, bit.indices, bit.a)
        z[block[left]] = minimum_cut(source, target, coupling, u[left])
    place[block] = -1


def minimum_cut(
    source: NDArray[np.int64], target: NDArray[np.int64], coupling: Array, u: Array
) -> NDArray[np.int8]:
    """Minimise sum_(i,j) coupling z_i z_j + u'z over +-1, every coupling <= 0, by max-flow.

    Each pair is given once. Capacities are scaled to the library's 32-bit integers, so the
    result is optimal within that rounding.
    """
    n = len(u)
    S, T = n, n + 1
    # z_i = +1 is the source's side. Unequal z_i, z_j cost 2 |coupling| more than equal ones.
    capacity = np.concatenate([-2 * coupling, -2 * coupling, 2 * np.abs(u)])
    tail = np.concatenate([source, target, np.where(u < 0, S, np.arange(n))])
    head = np.concatenate([target, source, np.where(u < 0, np.arange(n), T)])
    # Above 2^31 the library's flows wrap around silently: bound the total flow and each residual.
    bound = max(capacity[-n:].sum(), capacity.max(), np.finfo(float).tiny)
    whole = np.rint(capacity * (2**30 / bound)).astype(np.int32)
    graph = csr_array((whole, (tail, head)), shape=(n + 2, n + 2))
    residual = csr_array(graph - maximum_flow(graph, S, T).flow)
    residual.eliminate_zeros()
    reached = breadth_first_order(residual, S, return_predecessors=False)
    z = np.full(n + 2, -1, np.int8)
    z[reached] = 1
    return z[:n]


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
def _settle(
    block: Any, place: Any, z: Any, c: Any, u: Any, indptr: Any, indices: Any, a: Any
) -> Any:
    """Give every point of the block that is decided its value; return which are left.

    u becomes the linear term of each point with the settled and outside points folded in.
    """
    size = len(block)
    slack = np.zeros(size)  # sum of |couplings| to points of the block not yet settled
    for t in range(size):
        n = block[t]
        u[t] = c[n]
        for e in range(indptr[n], indptr[n + 1]):
            if place[indices[e]] >= 0:
                slack[t] += 0.5 * abs(a[e])
            else:
                u[t] += 0.5 * a[e] * z[indices[e]]
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
        n = block[t]
        if u[t] != 0:
            z[n] = -1 if u[t] > 0 else 1
        free[t] = False
        for e in range(indptr[n], indptr[n + 1]):
            s = place[indices[e]]
            if s >= 0 and free[s]:
                u[s] += 0.5 * a[e] * z[n]
                slack[s] -= 0.5 * abs(a[e])
                if not queued[s] and abs(u[s]) + rounding[s] >= slack[s]:
                    queue[last] = s
                    queued[s] = True
                    last += 1
    return free


@njit(cache=True)
def _inner_edges(block: Any, place: Any, indptr: Any, indices: Any, a: Any) -> Any:
    """The pairs inside a block, each once, and half their a."""
    most = 0
    for n in block:
        most += indptr[n + 1] - indptr[n]
    source, target, coupling = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    count = 0
    for t in range(len(block)):
        for e in range(indptr[block[t]], indptr[block[t] + 1]):
            if place[indices[e]] > t:
                source[count] = t
                target[count] = place[indices[e]]
                coupling[count] = 0.5 * a[e]
                count += 1
    return source[:count], target[:count], coupling[:count]
