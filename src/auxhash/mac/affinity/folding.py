"""Draws n -> m folded into unordered pairs i < j, which count as often as they were drawn.

A counting sort brings each draw to its smaller point, where the few draws of one point are then
sorted and merged in place. That takes time in proportion to the draws, and hardly more memory than
the draws and the pairs. Draws go to places all over the memory, so those of one block of
points are brought at a time, from all rows in turn: then they go to no more places than the
caches hold.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.kernels import kernel
from auxhash.mac.affinity.affinity import Affinity, Kind
from auxhash.mac.affinity.draws import DrawnTable

DRAWS_PER_TASK = 1 << 20  # draws looked at together
POINTS_PER_MERGE = 1024  # points whose draws a thread merges at a time
POINTS_PER_BLOCK = 4096  # points whose draws are brought to their places together
MIN_FREED_SHARE = 0.1  # of the draws must have fallen together for their memory to be freed
SIGNS = np.array([-1.0, 1.0])

Draws = tuple[AnyArray, AnyArray, AnyArray, AnyArray]  # n, m, value and weight of some draws


def fold_signs(similar: DrawnTable, dissimilar: DrawnTable, groups: Numbers | None) -> Affinity:
    """Fold drawn points into pairs, with y = +1 for the similar and -1 for the dissimilar ones.

    The rows of both tables are sorted.
    """
    n, tables = len(similar), (dissimilar, similar)
    shares = _shares(n, threads.n_shares(n, similar.size + dissimilar.size, DRAWS_PER_TASK))
    count = np.zeros(n + 1, np.int64)
    with threads.pool() as run:
        for table in tables:
            run(partial(_sort, table), threads.chunks(n, POINTS_PER_MERGE))
            run(partial(_count_of, table, count), shares)
        starts = np.cumsum(count)
        j, value = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint8)
        at = starts[:-1].copy()
        for y, table in enumerate(tables):
            run(partial(_place_of, table, y, at, j, value), shares)
        weight = np.ones(len(j), np.uint8)
        starts, j, value, weight = _merged(starts, j, value, weight, run)
    # A pair is drawn at most twice with one value: once by each of its points.
    weight -= np.uint8(1)
    weight *= np.uint8(2)
    value += weight
    rows = np.array([(y, times) for times in (1, 2) for y in SIGNS])
    return Affinity.sorted_rows(starts, j, value, rows, groups)


def fold_pairs(
    i: AnyArray, j: AnyArray, y: Array, weight: Array | None, n: int, kind: Kind
) -> Affinity:
    """Fold pairs of n points, in any order, with values y; without weights each counts once."""
    if n > 2 * len(i):  # most points have no pair: without them
        points, ends = np.unique(np.concatenate([i, j]), return_inverse=True)
        few = fold_pairs(ends[: len(i)], ends[len(i) :], y, weight, len(points), kind)
        return Affinity(points[few.i], points[few.j], few.y, few.weight, n, kind)

    def listed() -> Iterator[Draws]:
        for rows in threads.chunks(len(i), DRAWS_PER_TASK):
            once = np.ones(rows.stop - rows.start, np.uint32) if weight is None else weight[rows]
            yield i[rows], j[rows], y[rows], once

    numbers = np.zeros(n + 1, np.int64)
    for a, b, _, _ in listed():
        _count(a, b, numbers)
    starts = np.cumsum(numbers)
    high, value = np.empty(starts[-1], np.int32), np.empty(starts[-1])
    total = np.empty(starts[-1], np.uint32 if weight is None else np.float64)
    at = starts[:-1].copy()
    for a, b, values, weights in listed():
        _place(a, b, values, weights, at, high, value, total)
    with threads.pool() as run:
        merged = _merged(starts, high, value, total, run)
    return Affinity.sorted_pairs(*merged, kind, None)


def _shares(n: int, count: int) -> list[slice]:
    """Cut points 0..n-1 into `count` shares of about as many draws: low points have most."""
    bounds = np.rint(n * (1 - np.sqrt(1 - np.arange(count + 1) / count))).astype(int).tolist()
    return [slice(first, last) for first, last in pairwise(bounds)]


def _sort(table: DrawnTable, rows: slice) -> None:
    table[rows].sort(axis=1)


def _count_of(table: DrawnTable, count: Numbers, own: slice) -> None:
    _count_drawn(own.start, own.stop, table, count)


def _place_of(
    table: DrawnTable, y: int, at: Numbers, j: AnyArray, value: AnyArray, own: slice
) -> None:
    _place_drawn(own.start, own.stop, POINTS_PER_BLOCK, table, y, at, j, value)


def _merged(
    starts: Numbers, j: NDArray[np.int32], value: AnyArray, weight: AnyArray, run: threads.Run
) -> tuple[Numbers, NDArray[np.int32], AnyArray, AnyArray]:
    """Merge draws into pairs: return where those of each i start, j, values and summed weights.

    Pairs are sorted by i, j and value. The draws of each i begin at its start; the arrays are
    changed.
    """
    n = len(starts) - 1
    size = np.zeros(n + 1, np.int64)

    def merge(rows: slice) -> None:
        _merge(rows.start, rows.stop, starts, j, value, weight, size)

    run(merge, threads.chunks(n, POINTS_PER_MERGE))
    ends = np.cumsum(size)
    kept = ends[-1]
    for part in (j, value, weight):
        _close_gaps(starts, ends, part)
        if kept < (1 - MIN_FREED_SHARE) * len(part):  # NumPy 2.5 copies what is left
            part.resize(kept, refcheck=False)  # nobody else has seen it yet
    return ends, j[:kept], value[:kept], weight[:kept]


@kernel
def _count_drawn(first: int, last: int, table: AnyArray, count: AnyArray) -> None:
    """Add the draws whose smaller point is one of first..last to count[point + 1]."""
    width = table.shape[1]
    for n in range(first, len(table)):  # those before have a smaller one
        for t in range(np.searchsorted(table[n], first), width):
            m = table[n, t]
            if m > n:
                if n < last:
                    count[n + 1] += width - t
                break
            if m >= last:
                break
            count[m + 1] += 1


@kernel
def _place_drawn(
    first: int,
    last: int,
    block: int,
    table: AnyArray,
    y: int,
    at: AnyArray,
    j: AnyArray,
    value: AnyArray,
) -> None:
    """Bring these draws, all of one value, to the next place of their smaller point."""
    width = table.shape[1]
    cursor = np.empty(len(table), np.int32)  # the first draw of each row that has no place yet
    for n in range(first, len(table)):
        cursor[n] = np.searchsorted(table[n], first)  # behind the padding
    for low in range(first, last, block):
        high = min(low + block, last)
        for n in range(low, len(table)):
            t, end = cursor[n], min(n, high)
            while t < width and table[n, t] < end:
                m = table[n, t]
                j[at[m]], value[at[m]] = n, y
                at[m] += 1
                t += 1
            cursor[n] = t
            if n < high:
                for rest in range(t, width):
                    j[at[n]], value[at[n]] = table[n, rest], y
                    at[n] += 1


@kernel
def _count(a: AnyArray, b: AnyArray, count: AnyArray) -> None:
    for p in range(len(a)):
        count[min(a[p], b[p]) + 1] += 1


@kernel
def _place(
    a: AnyArray,
    b: AnyArray,
    values: AnyArray,
    weights: AnyArray,
    at: AnyArray,
    j: AnyArray,
    value: AnyArray,
    weight: AnyArray,
) -> None:
    """Bring each draw to the next place of its smaller point."""
    for p in range(len(a)):
        low = min(a[p], b[p])
        j[at[low]] = max(a[p], b[p])
        value[at[low]] = values[p]
        weight[at[low]] = weights[p]
        at[low] += 1


@kernel
def _order_by_value(key: AnyArray, values: AnyArray) -> None:
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
def _merge(
    first: int,
    last: int,
    starts: AnyArray,
    j: AnyArray,
    value: AnyArray,
    weight: AnyArray,
    size: AnyArray,
) -> None:
    """Sort the draws of each point by j and value, and make one pair of equal ones, in place.

    size[n + 1] becomes the number of pairs that are left of point n.
    """
    most = 0
    for n in range(first, last):
        most = max(most, starts[n + 1] - starts[n])
    keys = np.empty(most, np.int64)  # j, and the draw's place, which keeps their order
    # One type of values: `_order_by_value`, with its sort, is compiled once.
    values, weights = np.empty(most, np.float64), np.empty(most, weight.dtype)
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
def _close_gaps(starts: AnyArray, ends: AnyArray, part: AnyArray) -> None:
    """Move the entries of each point, which begin at `starts`, to where `ends` says."""
    for n in range(len(starts) - 1):
        gap = starts[n] - ends[n]
        if gap:
            for p in range(ends[n], ends[n + 1]):
                part[p] = part[p + gap]
