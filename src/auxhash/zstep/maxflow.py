"""Minimum cuts by push-relabel, in floating point.

Libraries take integer capacities of 32 bits; scaling real couplings to them costs precision, and
their sums wrap around silently. This one works on the real numbers, and on the small dense graphs
that remain of the blocks it is several times faster (benchmarks/core.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.kernels import kernel


@kernel
def minimum_cut(source: Any, target: Any, coupling: Any, u: Any) -> NDArray[np.int8]:
    """Minimise sum_p coupling_p z_source z_target + u'z over +-1, every coupling <= 0.

    Unequal z cost 2 |coupling| more than equal ones: that is the pair's capacity. A point with
    u < 0 has an excess of 2 |u|, one with u > 0 has room for 2 u. Excess flows through the pairs
    to where there is room; points that cannot reach any in the end are +1, the others -1.
    """
    n = len(u)
    indptr, head, back, residual = _arcs(n, source, target, coupling)
    excess = np.maximum(0.0, -2 * u)
    room = np.maximum(0.0, 2 * u)
    tiny = 1e-13 * (excess.sum() + room.sum())
    height = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    _heights(indptr, head, back, residual, room, tiny, height, queue)
    relabels = 0
    active = [np.int64(i) for i in range(n) if excess[i] > tiny]
    while len(active):
        i = active.pop()
        if relabels > n:  # exact heights from time to time save many small relabellings
            _heights(indptr, head, back, residual, room, tiny, height, queue)
            relabels = 0
        while excess[i] > tiny and height[i] < n:
            if room[i] > 0:
                amount = min(excess[i], room[i])
                excess[i] -= amount
                room[i] -= amount
            lowest = n
            for e in range(indptr[i], indptr[i + 1]):
                if excess[i] <= tiny:
                    break
                j = head[e]
                if residual[e] > tiny:
                    if height[i] == height[j] + 1:
                        amount = min(excess[i], residual[e])
                        residual[e] -= amount
                        residual[back[e]] += amount
                        excess[i] -= amount
                        if excess[j] <= tiny:
                            active.append(j)
                        excess[j] += amount
                    if residual[e] > tiny:
                        lowest = min(lowest, height[j])
            if excess[i] > tiny:
                height[i] = max(height[i], lowest + 1)
                relabels += 1
    _heights(indptr, head, back, residual, room, tiny, height, queue)
    return np.where(height >= n, 1, -1).astype(np.int8)


@kernel
def _arcs(n: int, source: Any, target: Any, coupling: Any) -> Any:
    """Both directions of every pair as arcs, by the point they leave; `back`: the reverse arcs."""
    indptr = np.zeros(n + 1, np.int64)
    for p in range(len(source)):
        indptr[source[p] + 1] += 1
        indptr[target[p] + 1] += 1
    indptr = np.cumsum(indptr)
    at = indptr[:-1].copy()
    head = np.empty(2 * len(source), np.int64)
    back = np.empty(2 * len(source), np.int64)
    residual = np.empty(2 * len(source))
    for p in range(len(source)):
        i, j = source[p], target[p]
        head[at[i]], head[at[j]] = j, i
        back[at[i]], back[at[j]] = at[j], at[i]
        residual[at[i]] = residual[at[j]] = -2 * coupling[p]
        at[i] += 1
        at[j] += 1
    return indptr, head, back, residual


@kernel
def _heights(
    indptr: Any,
    head: Any,
    back: Any,
    residual: Any,
    room: Any,
    tiny: float,
    height: Any,
    queue: Any,
) -> None:
    """Set `height`: number of arcs to the nearest point with room left, n if there is none."""
    n = len(room)
    last = 0
    for i in range(n):
        height[i] = n
        if room[i] > tiny:
            height[i] = 0
            queue[last] = i
            last += 1
    first = 0
    while first < last:
        j = queue[first]
        first += 1
        for e in range(indptr[j], indptr[j + 1]):
            i = head[e]
            if height[i] == n and residual[back[e]] > tiny:
                height[i] = height[j] + 1
                queue[last] = i
                last += 1
