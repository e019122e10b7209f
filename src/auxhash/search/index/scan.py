"""Exact Hamming search by scanning: the kernels of the index and of the metrics.

Codes are kept byte by byte: plane p holds byte p of every code. The distances of one query are
then computed by a plain loop over bytes (exclusive or, count, add), for sixteen or more codes per
instruction and without sums across lanes, several times faster than word by word. The nearest
codes are found by counting distances, never by a heap: the cost hardly grows with k, and ties come
out in the order of the base.

Arrays of counts have room for every distance that whole bytes can have, even if fewer bits are
used: no content of `planes` makes a kernel write outside its arrays.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute import context, threads
from auxhash.compute.arrays import AnyArray
from auxhash.compute.kernels import intrinsic, kernel

Planes = NDArray[np.uint8]  # (n_bytes, n)
Bytes = NDArray[np.uint8]  # (n,)
Integers = NDArray[np.integer]  # of bits, or of codes
Distances = NDArray[np.int32]
Positions = NDArray[np.int64]

CODES_PER_BLOCK = 8192  # measured at once: they and their planes stay in the cache
CODES_PER_STRIP = 128  # that are skipped together where none is near enough
CODES_PER_RUN = 512  # codes one after another, to estimate a radius from
RUNS_PER_SAMPLE = 16  # of which one is looked at
QUERIES_PER_TASK = 16  # that share a block while it is in the cache
DISTANCES_PER_THREAD = 1 << 19  # at least: less work is not shared


def to_planes(packed: Packed) -> Planes:
    """Return packed codes (n, n_bytes) as planes (n_bytes, n): byte p of every code is plane p."""
    return np.ascontiguousarray(packed.T)


def read_only(array: AnyArray) -> AnyArray:
    """Return a read-only view: codes of a request or a file are, and kernels compile once."""
    view = array.view()
    view.flags.writeable = False
    return view


def nearest(planes: Planes, n: int, queries: Packed, k: int) -> tuple[Distances, Positions]:
    """Return distances and positions (n_queries, min(k, n)) of the k nearest of the first n codes.

    Nearest first, equal distances by position.
    """
    k, widest, queries = min(k, n), 8 * len(planes), read_only(queries)
    distances = np.empty((len(queries), k), np.int32)
    positions = np.empty((len(queries), k), np.int64)
    groups, pieces, count = shares(n, len(queries))
    if len(groups) == len(pieces) == 1:  # a few codes take no longer than what follows
        _nearest(planes, 0, n, queries, k, *scratch(widest), distances, positions)
        return distances, positions
    shape = (len(pieces), len(queries), k)
    alone = len(pieces) == 1
    # A piece may hold fewer than k codes: the rest is -1.
    near = distances[None] if alone else np.full(shape, -1, np.int32)
    where = positions[None] if alone else np.empty(shape, np.int64)

    def search(task: tuple[slice, int]) -> None:
        rows, p = task
        piece, out = pieces[p], (near[p, rows], where[p, rows])
        _nearest(planes, piece.start, piece.stop, queries[rows], k, *scratch(widest), *out)

    with context.using(n_jobs=count):
        threads.run_kernels(search, [(rows, p) for rows in groups for p in range(len(pieces))])
    if not alone:  # few queries: each thread has searched a piece of the base
        _, bins = scratch(widest)
        for q in range(len(queries)):
            full = near[:, q] >= 0
            _rank(near[:, q][full], where[:, q][full], bins, distances[q], positions[q])
    return distances, positions


def within(
    planes: Planes, n: int, queries: Packed, radius: int
) -> tuple[list[Distances], list[Positions]]:
    """Return distances and positions of the first n codes within `radius`, an array per query.

    Nearest first, equal distances by position.
    """
    widest, queries = 8 * len(planes), read_only(queries)
    groups, pieces, count = shares(n, len(queries))

    def search(task: tuple[slice, slice]) -> tuple[Positions, Distances, Positions]:
        rows, piece = task
        block, _ = scratch(widest)
        return _within(planes, piece.start, piece.stop, queries[rows], radius, block)

    tasks = [(rows, piece) for rows in groups for piece in pieces]
    with context.using(n_jobs=count):
        results = iter(threads.run_kernels(search, tasks))
    distances: list[Distances] = []
    positions: list[Positions] = []
    for rows in groups:
        parts = [next(results) for _ in pieces]
        for q in range(rows.stop - rows.start):
            cut = [slice(stops[q], stops[q + 1]) for stops, _, _ in parts]
            near = np.concatenate([d[s] for (_, d, _), s in zip(parts, cut, strict=True)])
            where = np.concatenate([p[s] for (_, _, p), s in zip(parts, cut, strict=True)])
            order = np.argsort(near, kind="stable") if len(pieces) > 1 else slice(None)
            distances.append(near[order])
            positions.append(where[order])
    return distances, positions


def shares(n: int, n_queries: int) -> tuple[list[slice], list[slice], int]:
    """Return groups of queries, pieces of the base, and the number of threads to search them on.

    No result depends on them.
    """
    max_threads = max(1, n * n_queries // DISTANCES_PER_THREAD)
    # Asking the system for its cores takes longer than to search some thousands of codes.
    one = max_threads == 1 and context.current().n_jobs is None
    count = 1 if one else min(threads.count(), max_threads)
    share = -(-n_queries // count)
    groups = threads.chunks(n_queries, max(1, min(QUERIES_PER_TASK, share)))
    if n_queries >= count:
        return groups, [slice(0, n)], count
    return groups, threads.chunks(n, -(-n // count)), count


def scratch(widest: int) -> tuple[AnyArray, NDArray[np.int64]]:
    """Return arrays for a block of distances up to `widest`, uint8 or uint16, and for counts."""
    block = np.empty(CODES_PER_BLOCK, np.uint8 if widest < 255 else np.uint16)
    return block, np.empty(widest + 1, np.int64)


@intrinsic
def _count(typing_context: Any, total: Any, a: Any, b: Any) -> Any:
    """Return total + number of bits in which two bytes differ, in 8-bit arithmetic."""
    from llvmlite import ir
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        ctpop = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(8)])
        return builder.add(args[0], builder.call(ctpop, [builder.xor(args[1], args[2])]))

    return types.uint8(types.uint8, types.uint8, types.uint8), emit


@intrinsic
def _lowest_byte(typing_context: Any, word: Any) -> Any:
    """Return the number of the lowest nonzero byte of a uint64."""
    from llvmlite import ir
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), emit


# Each plane is passed as a contiguous array of its own: only then are these loops vectorised.


@kernel
def _add_eight(
    p0: Bytes,
    p1: Bytes,
    p2: Bytes,
    p3: Bytes,
    p4: Bytes,
    p5: Bytes,
    p6: Bytes,
    p7: Bytes,
    q: Bytes,
    out: Integers,
) -> None:
    q0, q1, q2, q3, q4, q5, q6, q7 = q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]
    for i in range(len(out)):
        d = _count(_count(np.uint8(0), p0[i], q0), p1[i], q1)
        d = _count(_count(d, p2[i], q2), p3[i], q3)
        d = _count(_count(d, p4[i], q4), p5[i], q5)
        d = _count(_count(d, p6[i], q6), p7[i], q7)
        out[i] += d


@kernel
def _add_two(p0: Bytes, p1: Bytes, q: Bytes, out: Integers) -> None:
    q0, q1 = q[0], q[1]
    for i in range(len(out)):
        out[i] += _count(_count(np.uint8(0), p0[i], q0), p1[i], q1)


@kernel
def _add_one(p0: Bytes, q: Bytes, out: Integers) -> None:
    q0 = q[0]
    for i in range(len(out)):
        out[i] += _count(np.uint8(0), p0[i], q0)


@kernel
def measure(planes: Planes, a: int, z: int, query: Packed, out: Integers) -> None:
    """Hamming distances of one query (n_bytes,) to the codes a..z-1 of `planes` (n_bytes, n)."""
    out = out[: z - a]
    out[:] = 0
    p, left = 0, len(planes)
    while left >= 8:
        _add_eight(
            planes[p, a:z],
            planes[p + 1, a:z],
            planes[p + 2, a:z],
            planes[p + 3, a:z],
            planes[p + 4, a:z],
            planes[p + 5, a:z],
            planes[p + 6, a:z],
            planes[p + 7, a:z],
            query[p:],
            out,
        )
        p, left = p + 8, left - 8
    while left >= 2:
        _add_two(planes[p, a:z], planes[p + 1, a:z], query[p:], out)
        p, left = p + 2, left - 2
    if left:
        _add_one(planes[p, a:z], query[p:], out)


@kernel
def append(
    block: Integers,
    n: int,
    start: int,
    limit: int,
    mask: Bytes,
    near: Integers,
    where: Positions,
    count: int,
) -> int:
    """Append the distances, of n, below `limit` to `near`, and their positions to `where`."""
    block[n : n + CODES_PER_STRIP] = limit  # fills up the last strip
    marks = mask.view(np.uint64)
    for first in range(0, n, CODES_PER_STRIP):
        strip = block[first : first + CODES_PER_STRIP]
        hit = np.uint8(0)
        for i in range(CODES_PER_STRIP):
            hit |= np.uint8(strip[i] < limit)
        if not hit:
            continue
        for i in range(CODES_PER_STRIP):
            mask[i] = strip[i] < limit
        for m in range(CODES_PER_STRIP // 8):
            marked = marks[m]
            while marked:
                i = 8 * m + _lowest_byte(marked)
                marked &= marked - np.uint64(1)
                near[count] = strip[i]
                where[count] = start + first + i
                count += 1
    return count


@kernel
def _bound(near: Integers, count: int, k: int, bins: Integers) -> tuple[int, int]:
    """Return the k-th smallest distance, and how many of the k smallest are equal to it."""
    bins[:] = 0
    for i in range(count):
        bins[near[i]] += 1
    before = 0
    for d in range(len(bins)):
        if before + bins[d] >= k:
            return d, k - before
        before += bins[d]
    return len(bins), 0


@kernel
def move_up(near: Integers, where: Positions, count: int, bound: int, ties: int) -> int:
    """Move what is below the bound, and the first `ties` at it, to the front; return how many."""
    kept = 0
    for i in range(count):
        tie = near[i] == bound
        good = near[i] < bound or (tie and ties > 0)
        ties -= tie
        near[kept] = near[i]
        where[kept] = where[i]
        kept += good
    return kept


@kernel
def _keep(near: Integers, where: Positions, count: int, k: int, bins: Integers) -> tuple[int, int]:
    """Keep the k nearest, in their order; return how many, and the limit for further codes."""
    if count < k:
        return count, len(bins)
    bound, ties = _bound(near, count, k, bins)
    return move_up(near, where, count, bound, ties), bound


@kernel
def _rank(
    near: Integers, where: Positions, bins: Integers, distances: Distances, positions: Positions
) -> None:
    """Sort stably by distance, and write as many of the nearest as `distances` has room for."""
    bins[:] = 0
    for i in range(len(near)):
        bins[near[i]] += 1
    stop = 0
    for d in range(len(bins)):
        stop += bins[d]
        bins[d] = stop - bins[d]
    for i in range(len(near)):
        at = bins[near[i]]
        bins[near[i]] += 1
        if at < len(distances):
            distances[at] = near[i]
            positions[at] = where[i]


@kernel
def _guess(
    planes: Planes, first: int, last: int, query: Packed, k: int, block: Integers, bins: Integers
) -> int:
    """Estimate a radius that holds the k nearest and not many more, from one of many runs.

    Without it, the candidates of a large k would be sifted again and again as the limit falls.
    """
    if k < CODES_PER_RUN:
        return len(bins) - 1  # no limit: cheaper to take it from the first block
    wanted = k / RUNS_PER_SAMPLE + 4 * np.sqrt(k / RUNS_PER_SAMPLE)
    bins[:] = 0
    for start in range(first, last, RUNS_PER_SAMPLE * CODES_PER_RUN):
        stop = min(last, start + CODES_PER_RUN)
        measure(planes, start, stop, query, block)
        for i in range(stop - start):
            bins[block[i]] += 1
    seen, d = bins[0], 0
    while seen < wanted and d < len(bins) - 1:
        d += 1
        seen += bins[d]
    return d


@kernel
def _sift(
    planes: Planes,
    first: int,
    last: int,
    queries: Packed,
    k: int,
    limit: Integers,
    block: Integers,
    bins: Integers,
) -> tuple[Integers, Positions, Positions]:
    """Return candidates for the k nearest, below `limit`: distances, positions and counts."""
    n = last - first
    crowd = min(n, k + max(k, 64))  # number of candidates at which all but k are dropped
    near = np.empty((len(queries), min(n, crowd + len(block))), block.dtype)
    where = np.empty(near.shape, np.int64)
    count = np.zeros(len(queries), np.int64)
    mask = np.empty(CODES_PER_STRIP, np.uint8)
    start = first
    while start < last:
        # The first blocks are short: all their codes are taken, until there is a limit.
        stop = min(last, start + min(len(block), max(CODES_PER_RUN, start - first)))
        for q in range(len(queries)):
            measure(planes, start, stop, queries[q], block)
            count[q] = append(
                block, stop - start, start, limit[q], mask, near[q], where[q], count[q]
            )
            if count[q] >= crowd:
                count[q], limit[q] = _keep(near[q], where[q], count[q], k, bins)
        start = stop
    return near, where, count


@kernel
def _nearest(
    planes: Planes,
    first: int,
    last: int,
    queries: Packed,
    k: int,
    block: Integers,
    bins: Integers,
    distances: Distances,
    positions: Positions,
) -> None:
    """Write the k nearest of each query, among the codes first..last-1."""
    limit = np.empty(len(queries), block.dtype)
    for q in range(len(queries)):
        limit[q] = _guess(planes, first, last, queries[q], k, block, bins) + 1
    near, where, count = _sift(planes, first, last, queries, k, limit, block, bins)
    for q in range(len(queries)):
        c = count[q]
        if c >= min(k, last - first):
            _rank(near[q, :c], where[q, :c], bins, distances[q], positions[q])
        else:  # guessed too low
            one = queries[q : q + 1]
            limit[:1] = len(bins)
            again, places, c1 = _sift(planes, first, last, one, k, limit, block, bins)
            c = c1[0]
            _rank(again[0, :c], places[0, :c], bins, distances[q], positions[q])


@kernel
def _within(
    planes: Planes, first: int, last: int, queries: Packed, radius: int, block: Integers
) -> tuple[Positions, Distances, Positions]:
    """Return stops, distances and positions; those of query q are [stops[q]:stops[q + 1]]."""
    room = 2 * len(block)
    near, where = np.empty(room, np.int32), np.empty(room, np.int64)
    owner = np.empty(room, np.int32)
    limit = np.full(1, radius + 1, block.dtype)[0]
    mask = np.empty(CODES_PER_STRIP, np.uint8)
    count = 0
    for start in range(first, last, len(block)):
        stop = min(last, start + len(block))
        for q in range(len(queries)):
            if count + len(block) >= room:
                near, where, owner = grown(near), grown(where), grown(owner)
                room = len(near)
            measure(planes, start, stop, queries[q], block)
            before = count
            count = append(block, stop - start, start, limit, mask, near, where, before)
            owner[before:count] = q
    # One stable counting sort by (query, distance).
    place = np.zeros(len(queries) * (radius + 1) + 1, np.int64)
    for i in range(count):
        place[owner[i] * (radius + 1) + near[i] + 1] += 1
    place = np.cumsum(place)
    stops = place[:: radius + 1].copy()
    distances, positions = np.empty(count, np.int32), np.empty(count, np.int64)
    for i in range(count):
        key = owner[i] * (radius + 1) + near[i]
        distances[place[key]] = near[i]
        positions[place[key]] = where[i]
        place[key] += 1
    return stops, distances, positions


@kernel
def grown(array: AnyArray) -> AnyArray:
    """Return a copy of twice the length, whose second half is not set."""
    larger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # a slice would take numba seconds more to compile
        larger[i] = array[i]
    return larger
