"""Draws n -> m folded into unordered pairs i < j, which count as often as they were drawn.

A counting sort brings each draw to its smaller point, where the few draws of one point are then
sorted and merged in place. That takes time in proportion to the draws, and hardly more memory than
the draws and the pairs.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.affinity import draws
from auxhash.affinity.affinity import Affinity, Kind
from auxhash.affinity.draws import DrawnTable
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.kernels import kernel

CHUNK = 1 << 20  # draws looked at together
ROWS = 1024  # points whose draws a thread merges at a time
SIGNS = np.array([-1.0, 1.0])

Draws = tuple[AnyArray, AnyArray, AnyArray, AnyArray]  # n, m, value and weight of some draws


def fold_signs(
    similar: DrawnTable, dissimilar: DrawnTable, groups: Numbers | None, n_jobs: int | None
) -> Affinity:
    """Pairs of drawn points, with y = +1 for the similar and -1 for the dissimilar ones."""

    def listed() -> Iterator[Draws]:
        for value, table in enumerate((dissimilar, similar)):
            size = max(1, CHUNK // max(1, table.shape[1]))
            for rows in threads.chunks(len(table), size):
                n, m = draws.drawn(table[rows])
                ones = np.ones(len(n), np.uint8)
                yield n + np.int32(rows.start), m, value * ones, ones

    starts, j, value, weight = _folded(listed, len(similar), np.uint8, np.uint8, n_jobs)
    # A pair is drawn at most twice with one value: once by each of its points.
    weight -= np.uint8(1)
    weight *= np.uint8(2)
    value += weight
    rows = np.array([(y, times) for times in (1, 2) for y in SIGNS])
    return Affinity.sorted_rows(starts, j, value, rows, groups)


def fold_pairs(
    i: AnyArray, j: AnyArray, y: Array, weight: Array | None, n: int, kind: Kind
) -> Affinity:
    """Pairs of n points with values y, whatever their order; without weights each counts once."""
    if n > 2 * len(i):  # most points have no pair: without them
        points, ends = np.unique(np.concatenate([i, j]), return_inverse=True)
        few = fold_pairs(ends[: len(i)], ends[len(i) :], y, weight, len(points), kind)
        return Affinity(points[few.i], points[few.j], few.y, few.weight, n, kind)

    def listed() -> Iterator[Draws]:
        for rows in threads.chunks(len(i), CHUNK):
            once = np.ones(rows.stop - rows.start, np.uint32) if weight is None else weight[rows]
            yield i[rows], j[rows], y[rows], once

    count = np.uint32 if weight is None else np.float64
    starts, high, value, total = _folded(listed, n, np.float64, count, None)
    return Affinity.sorted_pairs(starts, high, value, total, kind, None)


def _folded(
    listed: Any, n: int, of_value: Any, of_weight: Any, n_jobs: int | None
) -> tuple[Numbers, NDArray[np.int32], AnyArray, AnyArray]:
    """The pairs: where those of each i start, j, values and summed weights, sorted by all three.

    `listed()` gives the draws, and is called twice.
    """
    count = np.zeros(n + 1, np.int64)
    passed: Iterable[Draws] = listed()
    for a, b, _, _ in passed:
        _count(a, b, count)
    starts = np.cumsum(count)
    j = np.empty(starts[-1], np.int32)
    value, weight = np.empty(len(j), of_value), np.empty(len(j), of_weight)
    at = starts[:-1].copy()
    for a, b, values, weights in listed():
        _place(a, b, values, weights, at, j, value, weight)
    size = np.zeros(n + 1, np.int64)

    def merge(rows: slice) -> None:
        _merge(rows.start, rows.stop, starts, j, value, weight, size)

    with threads.pool(n_jobs) as run:
        run(merge, threads.chunks(n, ROWS))
    ends = np.cumsum(size)
    for part in (j, value, weight):
        _close_gaps(starts, ends, part)
        part.resize(ends[-1], refcheck=False)  # nobody else has seen it yet
    return ends, j, value, weight


@kernel
def _count(a: Any, b: Any, count: Any) -> None:
    for p in range(len(a)):
        count[min(a[p], b[p]) + 1] += 1


@kernel
def _place(
    a: Any, b: Any, values: Any, weights: Any, at: Any, j: Any, value: Any, weight: Any
) -> None:
    """Bring each draw to the next place of its smaller point."""
    for p in range(len(a)):
        low = min(a[p], b[p])
        j[at[low]] = max(a[p], b[p])
        value[at[low]] = values[p]
        weight[at[low]] = weights[p]
        at[low] += 1


@kernel
def _order_by_value(key: Any, values: Any) -> None:
    """Order the keys of each j, which are adjacent, by the draws' values."""
    begin = 0
    while begin < len(key):
        end = begin + 1
        while end < len(key) and key[end] >> 32 == key[begin] >> 32:
            end += 1
        if end > begin + 1:
            own = key[begin:end].copy()
            order = np.argsort(values[own & 0xFFFFFFFF], kind="mergesort")  # stable
            for q in range(len(own)):
                key[begin + q] = own[order[q]]
        begin = end


@kernel
def _merge(first: int, last: int, starts: Any, j: Any, value: Any, weight: Any, size: Any) -> None:
    """Sort the draws of each point by j and value, and make one pair of equal ones, in place.

    size[n + 1] becomes the number of pairs that are left of point n.
    """
    most = 0
    for n in range(first, last):
        most = max(most, starts[n + 1] - starts[n])
    keys = np.empty(most, np.int64)  # j, and the draw's place, which keeps their order
    values, weights = np.empty(most, value.dtype), np.empty(most, weight.dtype)
    for n in range(first, last):
        begin, count = starts[n], starts[n + 1] - starts[n]
        key = keys[:count]
        for q in range(count):
            key[q] = (np.int64(j[begin + q]) << 32) | q
            values[q], weights[q] = value[begin + q], weight[begin + q]
        key.sort()
        _order_by_value(key, values)
        left = 0
        for q in range(count):
            place, high = key[q] & 0xFFFFFFFF, np.int32(key[q] >> 32)
            if left and j[begin + left - 1] == high and value[begin + left - 1] == values[place]:
                weight[begin + left - 1] += weights[place]
            else:
                j[begin + left], value[begin + left] = high, values[place]
                weight[begin + left] = weights[place]
                left += 1
        size[n + 1] = left


@kernel
def _close_gaps(starts: Any, ends: Any, part: Any) -> None:
    """Move the entries of each point, which begin at `starts`, to where `ends` says."""
    for n in range(len(starts) - 1):
        gap = starts[n] - ends[n]
        if gap:
            for p in range(ends[n], ends[n + 1]):
                part[p] = part[p + gap]
