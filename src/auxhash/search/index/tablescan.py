"""Exact search by tables of distances (`tables`): the kernels.

Most codes are passed over by a lower bound of their distance, a sum of bytes, which are looked up
and added for sixteen codes per instruction. Only codes whose bound is within the limit (the
distance of the k-th nearest so far) are measured in float32. There are two such bounds:

- halves: a table of 16 for the low four bits of a byte plus one for the high four. Close for
  tables that are nearly a sum over bits, as those of outputs are, and learnt ones;
- full: the table of 256 itself, rounded down. For any tables, and slower. The bytes that tell most
  codes apart come first; codes that are beyond the limit by half of the bytes are not looked at
  further, LANES codes together.

Which one pays is decided on the first codes, whenever the limit falls.
"""

import os
import platform
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute import context, threads
from auxhash.compute.arrays import AnyArray
from auxhash.compute.kernels import intrinsic, kernel
from auxhash.search.index.scan import (
    CODES_PER_BLOCK,
    CODES_PER_RUN,
    CODES_PER_STRIP,
    Planes,
    Positions,
    append,
    move_up,
    read_only,
    shares,
)
from auxhash.search.index.tables import VALUES_PER_BYTE, TableDistances, Tables

LANES = 16  # codes per instruction, and entries of a table of four bits
NEON = platform.machine().lower() in ("aarch64", "arm64")
# Numba compiles for the machine at hand, whose instructions are known, unless told otherwise.
SSSE3 = platform.machine().lower() in ("x86_64", "amd64") and not (
    {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"} & os.environ.keys()
)
EXACT, FULL, HALVES = 0, 1, 2  # bounds of a query
FORMS = HALVES if NEON or SSSE3 else EXACT  # the last that the processor has instructions for
# Hits among the codes of a run, for a bound to pay.
MAX_FULL_HITS, MAX_HALVES_HITS = CODES_PER_RUN // 4, CODES_PER_RUN // 8
MIN_BOUNDED_CODES = 8 * CODES_PER_RUN  # fewer are measured as quickly as bounds are made
MAX_LEVEL = 254  # of a sum of bounds that is within the limit; 255 may stand for more
NO_TERMS = np.empty((0, 0, LANES)), np.empty((0, 0)), np.empty((0, 0)), np.empty(0)
NO_ORDER = np.empty((0, 0), np.int64)
QUERIES_PER_TASK = 16  # with candidates of their own
MAX_BLOCKS_AT_ONCE = 8  # blocks of codes, for one query: memory is read ahead along a plane
ROUNDING_PER_ADDITION = 2.0**-22  # relative; bounds allow for 4 times the error of float32


def nearest(planes: Planes, n: int, tables: Tables, k: int) -> tuple[TableDistances, Positions]:
    """Return distances and positions (n_queries, min(k, n)) of the k nearest of the first n codes.

    Nearest first, equal distances by position.
    """
    k, planes, tables = min(k, n), read_only(planes), read_only(tables)
    groups, pieces, count = shares(n, len(tables))
    # A piece may hold fewer than k codes: the rest is at infinity.
    near = np.full((len(pieces), len(tables), k), np.inf, np.float32)
    where = np.zeros(near.shape, np.int64)

    def search(task: tuple[slice, int]) -> None:
        rows, p = task
        ends, results = (pieces[p].start, pieces[p].stop), (near[p, rows], where[p, rows])
        bounded = FORMS != EXACT and ends[1] - ends[0] >= MIN_BOUNDED_CODES
        terms = _bound_terms(tables[rows]) if bounded else (*NO_TERMS, NO_ORDER)
        _nearest(planes, *ends, tables[rows], terms, k, *results)

    tasks = [(rows, p) for rows in groups for p in range(len(pieces))]
    if len(tasks) == 1:  # a few codes take no longer than the other way
        search(tasks[0])
    else:
        with context.using(n_jobs=count):
            threads.run_kernels(search, tasks)
    # Rows are in the order of the positions now.
    distances, positions = np.concatenate(near, axis=1), np.concatenate(where, axis=1)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, 1), np.take_along_axis(positions, order, 1)


def nearest_own(
    codes: Packed, tables: Tables, present: NDArray[np.bool_], k: int
) -> tuple[TableDistances, Positions]:
    """Return distances and places (n_queries, k) of the k nearest of each query's own codes.

    Codes are (n_queries, n, n_bytes). Nearest first, equal distances by place; where fewer than
    k codes are present, the last distances are infinite, and their places -1.
    """
    near = np.full((len(tables), k), np.inf, np.float32)
    where = np.full(near.shape, -1)
    codes, tables = read_only(np.ascontiguousarray(codes)), read_only(tables)

    def search(rows: slice) -> None:
        _nearest_own(codes[rows], tables[rows], present[rows], near[rows], where[rows])

    threads.run_kernels(search, threads.chunks(len(tables), QUERIES_PER_TASK))
    order = np.argsort(near, axis=1, kind="stable")  # rows are in the order of the places now
    return np.take_along_axis(near, order, 1), np.take_along_axis(where, order, 1)


def _bound_terms(tables: Tables) -> tuple[AnyArray, ...]:
    """Return halves (m, 2 n_bytes, 16), the least of each, the least of each table, margins, order.

    halves[2 p, v % 16] + halves[2 p + 1, v // 16] is at most tables[p, v]: the tables' means over
    the high bits, what these leave for the high bits, and then for the low ones. A distance is at
    least the sum of such terms less the query's margin (m,), which covers its rounding. The order
    (m, n_bytes) of the bytes begins with that which adds most to the distances of most codes.
    """
    m, width, _ = tables.shape
    square = tables.reshape(m, width, LANES, LANES).astype(np.float64)
    low = square.mean(axis=2, keepdims=True)
    high = (square - low).min(axis=3, keepdims=True)
    low += (square - low - high).min(axis=2, keepdims=True)
    halves = np.concatenate([low[:, :, 0], high[..., 0]], axis=2).reshape(m, 2 * width, LANES)
    least = square.min(axis=(2, 3))
    margin = width * ROUNDING_PER_ADDITION * np.abs(square).max(axis=(2, 3)).sum(axis=1)
    order = np.argsort(least - square.mean(axis=(2, 3)), axis=1)
    return halves, halves.min(axis=2), least, margin, order


@intrinsic
def _add_full(
    typing_context: Any, levels: Any, planes: Any, p: Any, a: Any, out: Any, starts: Any, n: Any
) -> Any:
    """Add levels[p, planes[p, a + i]] to out[i], at most 255, for LANES i from n starts on.

    The 256 levels are in sixteen registers: an index beyond the 64 that one instruction looks at
    gives 0 there.
    """

    def terms(builder: Any, call: Any, vector: Any, registers: Any, code: Any) -> list[Any]:
        if not NEON:  # never run, but compiled
            return []
        parts = []
        for r in range(0, VALUES_PER_BYTE // LANES, 4):
            index = builder.sub(code, vector(LANES * r))
            parts.append(call("aarch64.neon.tbl4.v16i8", *registers[r : r + 4], index))
        return [builder.or_(builder.or_(*parts[:2]), builder.or_(*parts[2:]))]

    return _over_lanes((levels, planes, p, a, out, starts, n), 1, VALUES_PER_BYTE // LANES, terms)


@intrinsic
def _add_halves(typing_context: Any, levels: Any, planes: Any, p: Any, a: Any, out: Any) -> Any:
    """Add levels[p, code % 16] + levels[p, 16 + code // 16] to all whole LANES of `out`."""
    return _over_lanes((levels, planes, p, a, out), 1, 2, _halves)


@intrinsic
def _add_four_halves(
    typing_context: Any, levels: Any, planes: Any, p: Any, a: Any, out: Any
) -> Any:
    """Add the halves of planes p to p + 3: one sum in a register for all."""
    return _over_lanes((levels, planes, p, a, out), 4, 2, _halves)


def _halves(builder: Any, call: Any, vector: Any, registers: Any, code: Any) -> list[Any]:
    if FORMS == EXACT:  # never run, but compiled
        return []
    look_up = "aarch64.neon.tbl1.v16i8" if NEON else "x86.ssse3.pshuf.b.128"
    low, high = builder.and_(code, vector(15)), builder.lshr(code, vector(4))
    return [call(look_up, registers[0], low), call(look_up, registers[1], high)]


def _over_lanes(kinds: tuple[Any, ...], n_planes: int, n_registers: int, terms: Any) -> Any:
    """Return an intrinsic that adds terms of codes, a vector of LANES bytes each, to `out`.

    `kinds` are the types of its arguments: with starts and their number, it adds from these on.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    lanes, listed = ir.VectorType(ir.IntType(8), LANES), len(kinds) == 7

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = context.get_value_type(types.intp)
        tables, codes, sums = (
            context.make_array(kinds[i])(context, builder, args[i]) for i in (0, 1, 4)
        )

        def call(name: str, *vectors: Any) -> Any:
            kind = ir.FunctionType(lanes, [lanes] * len(vectors))
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}")
            return builder.call(function, vectors)

        def vector(value: int) -> Any:
            return lanes([value] * LANES)

        def at(start: Any, i: Any) -> Any:
            return builder.bitcast(builder.gep(start, [i]), lanes.as_pointer())

        def row(array: Any, j: int) -> Any:
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            return builder.gep(array.data, [builder.mul(builder.add(args[2], size(j)), stride)])

        registers, starts = [], []
        for j in range(n_planes):
            table, places = row(tables, j), [size(LANES * r) for r in range(n_registers)]
            registers.append([builder.load(at(table, place), align=1) for place in places])
            starts.append(builder.gep(row(codes, j), [args[3]]))
        stop = builder.udiv(cgutils.unpack_tuple(builder, sums.shape)[0], size(LANES))
        with cgutils.for_range(builder, args[6] if listed else stop, intp=size) as loop:
            i = builder.mul(loop.index, size(LANES))
            if listed:
                first = context.make_array(kinds[5])(context, builder, args[5])
                i = builder.load(builder.gep(first.data, [loop.index]))
            total = builder.load(at(sums.data, i), align=1)
            for table, start in zip(registers, starts, strict=True):
                code = builder.load(at(start, i), align=1)
                for term in terms(builder, call, vector, table, code):
                    total = call("uadd.sat.v16i8", total, term)
            builder.store(total, at(sums.data, i), align=1)
        return context.get_dummy_value()

    return types.void(*kinds), emit


@intrinsic
def _keep_below(typing_context: Any, sums: Any, level: Any, starts: Any, n: Any) -> Any:
    """Keep those of n starts from which on any of LANES sums is below `level`; return how many."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    lanes, bit = ir.VectorType(ir.IntType(8), LANES), ir.IntType(1)
    same = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = context.get_value_type(types.intp)
        values = context.make_array(sums)(context, builder, args[0])
        first = context.make_array(starts)(context, builder, args[2])
        one = builder.insert_element(lanes(ir.Undefined), args[1], ir.IntType(32)(0))
        limit = builder.shuffle_vector(one, one, same)
        kind = ir.FunctionType(bit, [ir.VectorType(bit, LANES)])
        any_of = cgutils.get_or_insert_function(
            builder.module, kind, f"llvm.vector.reduce.or.v{LANES}i1"
        )
        count = cgutils.alloca_once_value(builder, size(0))
        with cgutils.for_range(builder, args[3], intp=size) as loop:
            i, kept = builder.load(builder.gep(first.data, [loop.index])), builder.load(count)
            at = builder.bitcast(builder.gep(values.data, [i]), lanes.as_pointer())
            below = builder.icmp_unsigned("<", builder.load(at, align=1), limit)
            builder.store(i, builder.gep(first.data, [kept]))
            more = builder.zext(builder.call(any_of, [below]), size)
            builder.store(builder.add(kept, more), count)
        return builder.load(count)

    return types.intp(sums, types.uint8, starts, types.intp), emit


# Each plane is passed as a contiguous array of its own, as in scan.


@kernel
def _add_four(
    p0: AnyArray, p1: AnyArray, p2: AnyArray, p3: AnyArray, t: AnyArray, out: AnyArray
) -> None:
    t0, t1, t2, t3 = t[0], t[1], t[2], t[3]
    for i in range(len(out)):
        out[i] = (((out[i] + t0[p0[i]]) + t1[p1[i]]) + t2[p2[i]]) + t3[p3[i]]


@kernel
def _add_one(plane: AnyArray, t: AnyArray, out: AnyArray) -> None:
    for i in range(len(out)):
        out[i] += t[plane[i]]


@kernel
def _measure(planes: AnyArray, a: int, z: int, table: AnyArray, out: AnyArray) -> None:
    """Distances of one query's table (n_bytes, 256) to the codes a..z-1."""
    out = out[: z - a]
    out[:] = 0
    p = 0
    # Eight planes at once, a power of 2 apart, would keep each other out of the cache.
    while p + 4 <= len(planes):
        four = planes[p, a:z], planes[p + 1, a:z], planes[p + 2, a:z], planes[p + 3, a:z]
        _add_four(four[0], four[1], four[2], four[3], table[p:], out)
        p += 4
    while p < len(planes):
        _add_one(planes[p, a:z], table[p], out)
        p += 1


@kernel
def _add_all_full(
    planes: AnyArray,
    a: int,
    levels: AnyArray,
    order: AnyArray,
    level: AnyArray,
    starts: AnyArray,
    out: AnyArray,
) -> None:
    """Add the levels of all planes; sums of LANES codes that all reach `level` may lack some."""
    n = len(out) // LANES
    for i in range(n):
        starts[i] = i * LANES
    step = max(1, len(planes) // 4)
    for p in range(len(planes)):
        if p % step == 0 and 2 * p >= len(planes):
            n = _keep_below(out, level, starts, n)
        _add_full(levels, planes, order[p], a, out, starts, n)


@kernel
def _bounds(
    planes: AnyArray,
    a: int,
    z: int,
    levels: AnyArray,
    form: int,
    order: AnyArray,
    level: AnyArray,
    starts: AnyArray,
    out: AnyArray,
) -> None:
    """Sums of levels (n_bytes, 256), at most 255, of the codes a..z-1; all that are below `level`.

    Other sums may be too low, but are not below `level`.
    """
    out = out[: z - a]
    out[:] = 0
    if form == FULL:
        _add_all_full(planes, a, levels, order, level, starts, out)
    p = 0 if form == HALVES else len(planes)
    while p < len(planes):
        if p + 4 <= len(planes):
            _add_four_halves(levels, planes, p, a, out)
            p += 4
        else:
            _add_halves(levels, planes, p, a, out)
            p += 1
    for i in range(len(out) // LANES * LANES, len(out)):
        total = 0
        for p in range(len(planes)):
            code = planes[p, a + i]
            if form == FULL:
                total += levels[p, code]
            else:
                total += levels[p, code % LANES] + levels[p, LANES + code // LANES]
        out[i] = min(255, total)


@kernel
def _round_down(
    terms: AnyArray, least: AnyArray, margin: float, limit: float, levels: AnyArray
) -> tuple[float, float]:
    """Write levels of terms (n_terms, n), so that MAX_LEVEL is the limit; return unit and zero.

    unit * (sum of levels) + zero is at most the distance of a code.
    """
    zero = -margin
    for t in range(len(terms)):
        zero += least[t]
    unit = (limit - zero) / MAX_LEVEL
    if not unit > 0:  # all terms are 0
        unit = 1.0
    per_byte, width = len(terms) // len(levels), terms.shape[1]
    for t in range(len(terms)):
        for v in range(width):
            level = min(255.0, np.floor((terms[t, v] - least[t]) / unit))
            levels[t // per_byte, t % per_byte * width + v] = np.uint8(level)
    return unit, zero


@kernel
def _pays(
    planes: AnyArray,
    first: int,
    levels: AnyArray,
    form: int,
    order: AnyArray,
    most: int,
    starts: AnyArray,
    bounds: AnyArray,
) -> bool:
    """Return True if at most `most` codes of the first run are within the limit by the bound."""
    beyond = np.uint8(MAX_LEVEL + 1)
    _bounds(planes, first, first + CODES_PER_RUN, levels, form, order, beyond, starts, bounds)
    hits = 0
    for i in range(CODES_PER_RUN):
        hits += bounds[i] <= MAX_LEVEL
    return hits <= most


@kernel
def _choose(
    planes: AnyArray,
    first: int,
    table: AnyArray,
    terms: tuple[AnyArray, ...],
    q: int,
    limit: float,
    levels: AnyArray,
    starts: AnyArray,
    bounds: AnyArray,
) -> tuple[int, float, float]:
    """Write the levels of the bound that pays at this limit; return its form, unit and zero."""
    halves, least_halves, least, margin, order = terms
    if FORMS == HALVES:
        unit, zero = _round_down(halves[q], least_halves[q], margin[q], limit, levels)
        if _pays(planes, first, levels, HALVES, order[q], MAX_HALVES_HITS, starts, bounds):
            return HALVES, unit, zero
    if NEON:
        unit, zero = _round_down(table, least[q], margin[q], limit, levels)
        if _pays(planes, first, levels, FULL, order[q], MAX_FULL_HITS, starts, bounds):
            return FULL, unit, zero
    return EXACT, 1.0, 0.0


@kernel
def _kth(values: TableDistances, count: int, k: int) -> np.float32:
    """Return the k-th smallest of the first `count` values, from 0 on; quickselect on a copy."""
    own = np.empty(count, values.dtype)
    for i in range(count):
        own[i] = values[i]
    first, last = 0, count - 1
    while first < last:
        pivot, i, j = own[(first + last) // 2], first, last
        while i <= j:
            while own[i] < pivot:
                i += 1
            while own[j] > pivot:
                j -= 1
            if i <= j:
                own[i], own[j] = own[j], own[i]
                i, j = i + 1, j - 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    kth: np.float32 = own[k]
    return kth


@kernel
def _keep(near: AnyArray, where: AnyArray, count: int, k: int) -> tuple[int, np.float32]:
    """Keep the k nearest, in their order; return how many, and the limit for further codes."""
    if count < k:
        return count, np.float32(np.inf)
    bound = _kth(near, count, k - 1)
    ties = k
    for i in range(count):
        ties -= near[i] < bound
    return move_up(near, where, count, bound, ties), bound


@kernel
def _take_all(
    planes: AnyArray,
    a: int,
    z: int,
    table: AnyArray,
    limit: float,
    sums: AnyArray,
    near: AnyArray,
    where: AnyArray,
    count: int,
) -> int:
    """Append the codes a..z-1 that are nearer than the limit, having measured all."""
    _measure(planes, a, z, table, sums)
    for i in range(z - a):
        if sums[i] < limit:
            near[count] = sums[i]
            where[count] = a + i
            count += 1
    return count


@kernel
def _take_hits(
    planes: AnyArray,
    hits: AnyArray,
    n_hits: int,
    table: AnyArray,
    limit: float,
    near: AnyArray,
    where: AnyArray,
    count: int,
) -> int:
    """Append the hits of a bound that are nearer than the limit."""
    for h in range(n_hits):
        d = np.float32(0)
        for p in range(len(planes)):
            d += table[p, planes[p, hits[h]]]
        near[count] = d
        where[count] = hits[h]
        count += int(d < limit)
    return count


@kernel
def _nearest(
    planes: AnyArray,
    first: int,
    last: int,
    tables: AnyArray,
    terms: tuple[AnyArray, ...],
    k: int,
    distances: AnyArray,
    at: AnyArray,
) -> None:
    """Write distances and positions (m, k) of the nearest of the codes first..last-1, by position.

    `terms` are those of `_bound_terms`, or of no queries, where bounds would not pay.
    """
    m, n = len(tables), last - first
    block = CODES_PER_BLOCK * max(1, MAX_BLOCKS_AT_ONCE // m)
    crowd = min(n, k + max(k, 16))  # number of candidates at which all but k are dropped
    near = np.empty((m, min(n, crowd + block)), np.float32)
    where, count = np.empty(near.shape, np.int64), np.zeros(m, np.int64)
    limit = np.full(m, np.inf, np.float32)
    levels = np.empty((m, len(planes), VALUES_PER_BYTE), np.uint8)
    form, unit, zero = np.full(m, EXACT), np.empty(m), np.empty(m)
    sums, bounds, mask = (
        np.empty(block, np.float32),
        np.empty(block, np.uint8),
        np.empty(CODES_PER_STRIP, np.uint8),
    )
    few, hits = np.empty(block, np.uint8), np.empty(block, np.int64)
    starts = np.empty(block // LANES, np.int64)
    start = first
    while start < last:
        # The first blocks are short: all their codes are measured, until there is a limit.
        stop = min(last, start + min(block, max(CODES_PER_RUN, start - first)))
        for q in range(m):
            table, so_far = tables[q], (near[q], where[q], count[q])
            if form[q] == EXACT:
                c = _take_all(planes, start, stop, table, limit[q], sums, *so_far)
            else:
                level = np.uint8(np.floor((limit[q] - zero[q]) / unit[q]) + 1)
                order = terms[4][q]
                _bounds(planes, start, stop, levels[q], form[q], order, level, starts, bounds)
                n_hits = append(bounds, stop - start, start, level, mask, few, hits, 0)
                c = _take_hits(planes, hits, n_hits, table, limit[q], *so_far)
            if c >= crowd:
                c, limit[q] = _keep(near[q], where[q], c, k)
                if len(terms[0]):
                    form[q], unit[q], zero[q] = _choose(
                        planes, first, table, terms, q, limit[q], levels[q], starts, bounds
                    )
            count[q] = c
        start = stop
    for q in range(m):
        c, _ = _keep(near[q], where[q], count[q], k)
        for i in range(c):
            distances[q, i] = near[q, i]
            at[q, i] = where[q, i]


@kernel
def _nearest_own(
    codes: AnyArray, tables: AnyArray, present: AnyArray, distances: AnyArray, places: AnyArray
) -> None:
    """Write distances and places of the nearest of the codes present, by place."""
    n, k = codes.shape[1], distances.shape[1]
    near, where = np.empty(n, np.float32), np.empty(n, np.int64)
    for q in range(len(tables)):
        count = 0
        for i in range(n):
            d = np.float32(0)
            for p in range(codes.shape[2]):
                d += tables[q, p, codes[q, i, p]]
            near[count] = d
            where[count] = i
            count += present[q, i]
        count, _ = _keep(near, where, count, k)
        for i in range(count):
            distances[q, i] = near[i]
            places[q, i] = where[i]
