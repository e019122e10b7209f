"""Codes of a linear hash function at the cost of one product, in the precision of X.

A code is the signs of outputs that are computed in double precision, from a scaled copy of the
points. Nearly all of these signs are known for less: `Hyperplanes` multiplies X as it is, and keeps
the sign of every product that is further from its threshold than rounding can carry it, in the
product and in the outputs. The others are computed anew, one by one and in double precision; and
where even this is too near to tell, so are the outputs of a whole part of X. So the codes are those
of the outputs, to the last bit, on any BLAS.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from auxhash.codes import Packed, n_bytes
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.kernels import intrinsic, kernel

FloatType = np.dtype[np.float32] | np.dtype[np.float64]

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
SINGLE_TYPES = (np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16)
BOUND_FACTOR = 1.02  # on every bound: products of roundings, and the rounding of the bounds
MAX_FEATURES = 200_000  # for which BOUND_FACTOR is enough
FEATURES_PER_BLOCK = 1024  # summed at a time in single precision: rounding grows with them
TINY = {SINGLE: 2.0**-124, DOUBLE: 2.0**-1020}  # more than a product loses that is subnormal
LARGEST_DOUBLE = float(np.finfo(DOUBLE).max)
LARGEST = {SINGLE: 2.0**120, DOUBLE: 2.0**1000}  # sums up to here are far from infinity
CACHE_BYTES = 1 << 20  # bytes of points and products that are made at once: few enough to be cached
MIN_POINTS = 256  # points that are multiplied at once, however long they are; a power of 2, as all
PRODUCTS_COMPARED = 16  # products that are compared at once
GROWTH, SHRINKAGE = 1.1, 4.0  # bounds are for points so much longer than these, and for no less
TOO_NEAR = ABANDONED = -1  # sentinels of kernels, where bounds are not enough
MAX_OPEN_SHARE = 1 / 32  # of products; if more are open, computing all anew is quicker


@dataclass(frozen=True)
class Hyperplanes:
    """The outputs sum_k (x_k - low) / width W_kj + bias_j >= 0 as x'V_j >= threshold_j.

    Columns of V are those of W times powers of 2, so that their largest entries are about 1.
    """

    V: dict[FloatType, list[AnyArray]]  # by precision: (D, b), in blocks of rows
    rows: Array  # (b, D): V transposed
    threshold: Array  # (b,); infinite for a bit that does not depend on x
    norm: Array  # (b,): of the columns of V
    slope: Array  # (b,): the most that rounding adds in double precision, per length of x
    offset: Array  # (b,): and whatever x is
    low: float
    width: float
    steep: float  # the largest sum of |W_kj| / width
    level: float  # the largest |bias_j|

    @classmethod
    def of(cls, W: Array, low: float, width: float) -> "Hyperplanes | None":
        """Make the hyperplanes of weights W (D + 1, b); None if these are out of range."""
        weights, bias = W[:-1], W[-1]
        if not 0 < len(weights) <= MAX_FEATURES:
            return None
        with np.errstate(all="ignore"):
            power = -np.frexp(np.abs(weights).max(axis=0))[1].astype(np.int64)
            scale = np.ldexp(1.0, power)
            V = np.ascontiguousarray(weights * scale)
            norm = BOUND_FACTOR * np.linalg.norm(V, axis=0)
            sums = BOUND_FACTOR * np.abs(V).sum(axis=0)
            shift = width * (bias * scale)
            threshold = low * V.sum(axis=0) - shift
            # The outputs and what is compared with them here, each with its roundings.
            most = 2 * BOUND_FACTOR * (len(weights) + 10) * np.finfo(DOUBLE).eps
            lost = TINY[DOUBLE] * len(W)
            slope = most * norm + lost * (1 + scale)
            offset = most * (abs(low) * sums + np.abs(shift))
            offset += lost * (1 + width) * (1 + scale * (1 + abs(low)))
            steep = float(BOUND_FACTOR * np.abs(weights).sum(axis=0).max() / width)
        if not (np.isfinite([threshold, slope, offset]).all() and np.isfinite(steep)):
            return None
        constant = ~V.any(axis=0)
        threshold[constant] = np.where(bias[constant] >= 0, -np.inf, np.inf)
        n_blocks = -(-len(V) // FEATURES_PER_BLOCK)
        return cls(
            V={SINGLE: np.array_split(V.astype(SINGLE), n_blocks), DOUBLE: [V]},
            rows=np.ascontiguousarray(V.T),
            threshold=threshold,
            norm=norm,
            slope=slope,
            offset=offset,
            low=float(low),
            width=float(width),
            steep=steep,
            level=float(np.abs(bias).max()),
        )

    def codes(self, X: AnyArray, rooms: "Rooms | None" = None) -> Packed | None:
        """Return packed codes (n, n_bytes) of raw X (n, D); None if the outputs must decide.

        `rooms` are those of earlier calls in this thread, to be used again.
        """
        if X.shape[1] != self.rows.shape[1]:
            return None
        rooms = {} if rooms is None else rooms
        packed = self._codes(X, SINGLE, rooms) if X.dtype in SINGLE_TYPES else None
        return self._codes(X, DOUBLE, rooms) if packed is None else packed

    def _codes(self, X: AnyArray, dtype: FloatType, rooms: "Rooms") -> Packed | None:
        """Return packed codes from products in one precision; None if too many are undecided."""
        n_bits = len(self.threshold)
        room = rooms.get(dtype.name)
        if room is None:
            room = rooms[dtype.name] = Room(n_bits, X.shape[1], dtype)
        packed = np.empty((len(X), 2 * -(-n_bits // PRODUCTS_COMPARED)), np.uint8)
        left = MAX_OPEN_SHARE * len(X) * n_bits
        ready = X.dtype == dtype and X.flags.c_contiguous and X.flags.aligned
        as_it_is = ready and len(self.V[dtype]) == 1
        at_once = max(1, len(X)) if as_it_is else room.n_points  # what is copied stays in the cache
        with np.errstate(all="ignore"):  # what overflows is not used
            for rows in threads.chunks(len(X), at_once):
                left -= self._decided(_read_only(X[rows], dtype), packed[rows], room, left)
                if not left >= 0:
                    return None
        return packed[:, : n_bytes(n_bits)]

    def _decided(self, points: AnyArray, packed: Packed, room: "Room", most: float) -> float:
        """Pack the signs of points; return the number computed anew, infinity to give up."""
        dtype, n_done, n_anew = points.dtype, 0, 0
        while n_done < len(points):
            left = points[n_done:], packed[n_done:], most - n_anew
            more, anew, square = room.decide(*left, self.V[dtype], self.rows)
            if more == ABANDONED:
                return np.inf
            n_done, n_anew = n_done + more, n_anew + anew
            if not room.is_for(square):
                length = GROWTH * room.length(square)
                if not self._stays_finite(length, dtype):
                    return np.inf
                room.set_bounds(length, self._bounds(length, dtype), self._own_bounds(length))
        return n_anew

    def _stays_finite(self, length: float, dtype: FloatType) -> bool:
        """Return True if no sum can overflow, here or in the outputs; False for NaN."""
        furthest = length + abs(self.low)
        sums = furthest, furthest / self.width, furthest * self.steep + self.level
        return length * float(self.norm.max()) < LARGEST[dtype] and all(
            each < LARGEST[DOUBLE] for each in sums
        )

    def _own_bounds(self, length: float) -> tuple[Array, Array]:
        """Return the thresholds of outputs computed anew, and the errors around them."""
        return self.threshold, length * self.slope + self.offset

    def _bounds(self, length: float, dtype: FloatType) -> tuple[AnyArray, AnyArray]:
        """Return bounds: products below the first, or above the second, are decided."""
        slope, offset = self.slope, self.offset
        if dtype == SINGLE:
            blocks = self.V[SINGLE]
            n_roundings = len(blocks[0]) + len(blocks) + 4
            lost = TINY[SINGLE] * self.rows.shape[1]
            slope = slope + BOUND_FACTOR * n_roundings * 2.0**-24 * self.norm + lost
            offset = offset + lost
        error = length * slope + offset
        with np.errstate(over="ignore"):  # infinite in single precision, as it should be
            lower = (self.threshold - error).astype(dtype)
            upper = (self.threshold + error).astype(dtype)
        infinity = dtype.type(np.inf)
        return np.nextafter(lower, -infinity), np.nextafter(upper, infinity)


def _read_only(X: AnyArray, dtype: FloatType) -> AnyArray:
    """Return X in this precision and read-only, so that kernels are compiled for one kind."""
    points = np.require(np.asarray(X), dtype, ["C", "ALIGNED"]).view()
    points.flags.writeable = False
    return points


class Room:
    """Reusable buffer for the products of a chunk of points, with their bounds."""

    def __init__(self, n_bits: int, n_features: int, dtype: FloatType) -> None:
        n_cached = CACHE_BYTES // ((n_features + n_bits) * dtype.itemsize)
        self.n_bits, self.n_points = n_bits, max(MIN_POINTS, 1 << n_cached.bit_length() >> 1)
        # One after the other, and a few more: the last ones are read sixteen at a time, too.
        self.products = np.zeros(self.n_points * n_bits + PRODUCTS_COMPARED, dtype)
        self.lost = n_features * TINY[dtype]  # of a squared length, at most
        nothing, too = np.empty(0, dtype), np.empty(0)
        self.bounds = nothing, nothing, too, too
        self.squares = 0.0, -1.0  # no point has such a length

    def length(self, square: float) -> float:
        """Return an upper bound of the length whose computed square this is."""
        return float(BOUND_FACTOR * np.sqrt(square + self.lost))

    def set_bounds(
        self, length: float, bounds: tuple[AnyArray, AnyArray], own_bounds: tuple[Array, Array]
    ) -> None:
        """Set the bounds for points of up to this length, if not all are far shorter."""
        more = -self.n_bits % PRODUCTS_COMPARED
        lower, upper = (np.pad(bound, (0, more), constant_values=np.nan) for bound in bounds)
        self.bounds = lower, upper, *own_bounds
        longest = length / BOUND_FACTOR
        # An infinite square would be that of any point.
        most = min(longest * longest, LARGEST_DOUBLE)
        self.squares = most / SHRINKAGE**2 - self.lost, most - self.lost

    def is_for(self, square: float) -> bool:
        """Return True if the bounds suit points of which the longest has this squared length."""
        shortest, longest = self.squares
        return shortest <= square <= longest

    def decide(
        self, points: AnyArray, packed: Packed, most: float, V: list[AnyArray], rows: Array
    ) -> tuple[int, int, float]:
        """Run `_decide`; with V in several blocks, on no more than `n_points` points."""
        if len(V) == 1:
            room = self.products, self.n_points, *self.squares
            done, anew, square = _decide(points, V[0], rows, *self.bounds, *room, packed, most)
            return int(done), int(anew), float(square)
        square = float(_longest_square(points))
        if not self.is_for(square):
            return 0, 0, square
        self._multiply(points, V)
        anew = int(_pack(points, self.products, rows, *self.bounds, packed))
        return ABANDONED if anew == TOO_NEAR else len(points), anew, square

    def _multiply(self, points: AnyArray, V: list[AnyArray]) -> None:
        """points @ V, V in blocks of rows: what NumPy multiplies without copying a part first."""
        products = self.products[: len(points) * self.n_bits].reshape(len(points), self.n_bits)
        products[:], at = 0, 0
        for block in V:
            products += points[:, at : at + len(block)] @ block
            at += len(block)


Rooms = dict[str, Room]  # by precision


@intrinsic
def _sixteen(
    typing_context: Any, products: Any, lower: Any, upper: Any, start: Any, at: Any
) -> Any:
    """16 products from `start` on, counted through all rows, against the bounds from `at` on.

    At once: Numba would take them one by one. Gives twice 16 bits, the lowest of the first product:
    the lower ones say which are above the upper bound, the others which are between the bounds.
    Bounds of NaN give 0.
    """
    from llvmlite import ir
    from numba import types

    if products.layout != "C":
        return None  # no such function: products are counted through all rows

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sixteen = ir.VectorType(context.get_value_type(products.dtype), 16)
        sides = []
        for kind, array, first in zip(
            signature.args[:3], args[:3], (args[3], args[4], args[4]), strict=True
        ):
            data = context.make_array(kind)(context, builder, array).data
            place = builder.bitcast(builder.gep(data, [first]), sixteen.as_pointer())
            sides.append(builder.load(place, align=products.dtype.bitwidth // 8))
        above = builder.fcmp_ordered(">", sides[0], sides[2])
        between = builder.xor(builder.fcmp_ordered(">=", sides[0], sides[1]), above)
        low, high = (
            builder.zext(builder.bitcast(bits, ir.IntType(16)), ir.IntType(64))
            for bits in (above, between)
        )
        return builder.or_(low, builder.shl(high, ir.Constant(ir.IntType(64), 16)))

    return types.uint64(products, lower, upper, types.int64, types.int64), emit


# Sums may be made in any order: the bounds hold for all.


@kernel(fastmath={"reassoc", "contract"})
def _longest_square(points: AnyArray) -> float:
    """The largest squared length of a row; infinite if one is infinite or not a number."""
    most = points.dtype.type(0)
    for i in range(len(points)):
        square = points.dtype.type(0)
        for k in range(points.shape[1]):
            square += points[i, k] * points[i, k]
        if not square < np.inf:
            return np.inf
        most = max(most, square)
    return np.float64(most)


@kernel(fastmath={"reassoc", "contract"})
def _dot(x: AnyArray, v: AnyArray) -> float:
    total = 0.0
    for k in range(len(x)):
        total += np.float64(x[k]) * v[k]
    return total


@kernel
def _anew(
    points: AnyArray,
    rows: AnyArray,
    threshold: AnyArray,
    error: AnyArray,
    packed: AnyArray,
    i: int,
    j: int,
    near: AnyArray,
) -> int:
    """Bits j, j + 1, ... of point i, those that `near` has: their number, or TOO_NEAR."""
    n_anew = 0
    while near:
        if near & np.uint64(1):
            gap = _dot(points[i], rows[j]) - threshold[j]
            if not abs(gap) > error[j]:
                return TOO_NEAR
            if gap > 0:
                packed[i, j // 8] |= np.uint8(1 << (j % 8))
            n_anew += 1
        near >>= np.uint64(1)
        j += 1
    return n_anew


@kernel
def _pack(
    points: AnyArray,
    products: AnyArray,
    rows: AnyArray,
    lower: AnyArray,
    upper: AnyArray,
    threshold: AnyArray,
    error: AnyArray,
    packed: AnyArray,
) -> int:
    """Pack the signs of points @ rows' - threshold: of the products, where the bounds say enough.

    `products` has those of one point after the other, and `packed` a multiple of 16 bits for each.
    Returns how many were computed anew, in double precision and up to `error`; or TOO_NEAR, if one
    does not tell.
    """
    n_anew = 0
    for i in range(len(points)):
        for j in range(0, len(lower), PRODUCTS_COMPARED):
            mask = _sixteen(products, lower, upper, i * len(rows) + j, j)
            packed[i, j // 8] = np.uint8(mask)
            packed[i, j // 8 + 1] = np.uint8(mask >> np.uint64(8))
            near = mask >> np.uint64(16)
            if near:
                more = _anew(points, rows, threshold, error, packed, i, j, near)
                if more == TOO_NEAR:
                    return TOO_NEAR
                n_anew += more
    return n_anew


@kernel
def _decide(
    points: AnyArray,
    V: AnyArray,
    rows: AnyArray,
    lower: AnyArray,
    upper: AnyArray,
    threshold: AnyArray,
    error: AnyArray,
    products: AnyArray,
    n_points: int,
    shortest: float,
    longest: float,
    packed: AnyArray,
    most: float,
) -> tuple[int, int, float]:
    """Measure, multiply and pack `n_points` at a time, while these are in the cache.

    Stops before points of which the longest has a square that the bounds are not for. Returns how
    many points are done (ABANDONED if more than `most` signs were computed anew, or one does not
    tell), how many signs were computed anew, and that square.
    """
    n_anew, square = 0, 0.0
    for start in range(0, len(points), n_points):
        part = points[start : start + n_points]
        square = _longest_square(part)  # first: it brings the points into the cache
        if not shortest <= square <= longest:
            return start, n_anew, square
        np.dot(part, V, products[: len(part) * len(rows)].reshape((len(part), len(rows))))
        more = _pack(part, products, rows, lower, upper, threshold, error, packed[start:])
        n_anew += more
        if more == TOO_NEAR or n_anew > most:
            return ABANDONED, n_anew, square
    return len(points), n_anew, square
