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
from numpy.typing import NDArray

from auxhash.codes import Packed, pack_bits
from auxhash.compute import threads
from auxhash.compute.arrays import Array

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
HELD_BY_SINGLE = (np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16)
SLOP = 1.02  # factor on every bound: products of roundings, and the rounding of the bounds
MOST_FEATURES = 200_000  # for which SLOP is enough
BLOCK = 512  # features that are summed at a time in single precision: rounding grows with them
TINY = {SINGLE: 2.0**-124, DOUBLE: 2.0**-1020}  # more than a product loses that is subnormal
LARGEST = {SINGLE: 2.0**120, DOUBLE: 2.0**1000}  # sums up to here are far from infinity
CACHED = 1 << 19  # bytes of points that are multiplied at once: a core's cache holds them
GROWN, FAR = 1.1, 4.0  # bounds are for points so much longer than these, and for no less
TILE = 16  # rows of products that are compared at once; a multiple of 8
ANEW = 1 << 17  # numbers that are multiplied at a time where products are computed anew
OPEN = 1 / 32  # of the products; where more stay open, it is quicker to compute all of them anew


@dataclass(frozen=True)
class Hyperplanes:
    """The outputs sum_k (x_k - low) / width W_kj + bias_j >= 0 as x'V_j >= threshold_j.

    Columns of V are those of W times powers of 2, so that their largest entries are about 1.
    """

    V: dict[Any, list[NDArray[Any]]]  # by precision: (D, b), in blocks of rows
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
        """Those of the weights W (D + 1, b); None if they reach the ends of the double range."""
        weights, bias = W[:-1], W[-1]
        if not 0 < len(weights) <= MOST_FEATURES:
            return None
        with np.errstate(all="ignore"):
            power = -np.frexp(np.abs(weights).max(axis=0))[1].astype(np.int64)
            V = np.ldexp(weights, power)
            norm, sums = SLOP * np.linalg.norm(V, axis=0), SLOP * np.abs(V).sum(axis=0)
            scale, level = np.ldexp(1.0, power), width * np.ldexp(np.abs(bias), power)
            threshold = low * V.sum(axis=0) - width * np.ldexp(bias, power)
            # The outputs and what is compared with them here, each with its roundings.
            most = 2 * SLOP * (len(weights) + 10) * np.finfo(DOUBLE).eps
            lost = TINY[DOUBLE] * len(W)
            slope = most * norm + lost * (1 + scale)
            offset = most * (abs(low) * sums + level)
            offset += lost * (1 + width) * (1 + scale * (1 + abs(low)))
            steep = float(SLOP * np.abs(weights).sum(axis=0).max() / width)
        if not (np.isfinite([threshold, slope, offset]).all() and np.isfinite(steep)):
            return None
        constant = ~V.any(axis=0)
        threshold[constant] = np.where(bias[constant] >= 0, -np.inf, np.inf)
        n_blocks = -(-len(V) // BLOCK)
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

    def codes(self, X: NDArray[Any], rooms: "Rooms | None" = None) -> Packed | None:
        """Packed codes (n, n_bytes) of raw X (n, D); None where the outputs have to say.

        `rooms` are those of earlier calls in this thread, to be used again.
        """
        rooms = {} if rooms is None else rooms
        found = self._codes(X, SINGLE, rooms) if X.dtype in HELD_BY_SINGLE else None
        return self._codes(X, DOUBLE, rooms) if found is None else found

    def _codes(self, X: NDArray[Any], dtype: np.dtype[Any], rooms: "Rooms") -> Packed | None:
        """The same from products in one precision; None where these do not say enough."""
        n, n_bits = len(X), len(self.threshold)
        room = rooms.get(dtype.name)
        if room is None or len(room.products) < n:
            room = rooms[dtype.name] = Room(n, n_bits, dtype)
        with np.errstate(all="ignore"):  # what overflows is not used
            length = room.multiply(X, self.V[dtype])
        if not length <= room.length <= FAR * length:
            if not self._stays_finite(GROWN * length, dtype):
                return None
            room.set_bounds(GROWN * length, *self._bounds(GROWN * length, dtype))
        packed, still_open = room.decide(n)
        if len(still_open) > OPEN * n * n_bits:
            return None
        for some in threads.chunks(len(still_open), max(TILE, ANEW // X.shape[1])):
            at, bits = np.divmod(still_open[some], n_bits)
            gap = np.vecdot(X[at].astype(DOUBLE), self.rows[bits]) - self.threshold[bits]
            if not (np.abs(gap) > length * self.slope[bits] + self.offset[bits]).all():
                return None
            at, bits = at[gap > 0], bits[gap > 0]
            np.bitwise_or.at(packed, (at, bits // 8), (1 << bits % 8).astype(np.uint8))
        return packed

    def _stays_finite(self, length: float, dtype: np.dtype[Any]) -> bool:
        """Whether no sum can overflow, here or in the outputs; False for NaN."""
        furthest = length + abs(self.low)
        sums = furthest, furthest / self.width, furthest * self.steep + self.level
        return length * float(self.norm.max()) < LARGEST[dtype] and all(
            each < LARGEST[DOUBLE] for each in sums
        )

    def _bounds(self, length: float, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Products below the first are below the threshold, those above the second above it."""
        slope, offset = self.slope, self.offset
        if dtype == SINGLE:
            blocks = self.V[SINGLE]
            n_roundings = len(blocks[0]) + len(blocks) + 4
            lost = TINY[SINGLE] * self.rows.shape[1]
            slope = slope + SLOP * n_roundings * 2.0**-24 * self.norm + lost
            offset = offset + lost
        error = length * slope + offset
        with np.errstate(over="ignore"):  # infinite in single precision, as it should be
            lower = (self.threshold - error).astype(dtype)
            upper = (self.threshold + error).astype(dtype)
        infinity = dtype.type(np.inf)
        return np.nextafter(lower, -infinity), np.nextafter(upper, infinity)


class Room:
    """Room for the products of up to n points, used again and again."""

    def __init__(self, n: int, n_bits: int, dtype: np.dtype[Any]) -> None:
        n = -(-n // TILE) * TILE
        self.products = np.zeros((n, n_bits), dtype)
        self.squares = np.empty(n, dtype)
        # Several rows are compared at once: short ones take long.
        self.wide = self.products.reshape(-1, TILE * n_bits)
        self.above, self.around = (np.empty(self.wide.shape, np.bool_) for _ in range(2))
        self.lower = self.upper = np.empty(0, dtype)
        self.length = 0.0  # of the points that these bounds are for, at most

    def multiply(self, X: NDArray[Any], V: list[NDArray[Any]]) -> float:
        """Fill in X @ V, V in blocks of rows. Returns no less than the length of any row of X."""
        dtype, n_features = self.products.dtype, X.shape[1]
        n_cached = CACHED // (n_features * dtype.itemsize) // TILE * TILE
        for rows in threads.chunks(len(X), max(TILE, n_cached)):
            points, found = np.ascontiguousarray(X[rows], dtype), self.products[rows]
            np.matmul(points[:, : len(V[0])], V[0], out=found)
            at = len(V[0])
            for block in V[1:]:
                found += points[:, at : at + len(block)] @ block
                at += len(block)
            np.vecdot(points, points, out=self.squares[rows])
        longest = float(self.squares[: len(X)].max())
        return float(SLOP * np.sqrt(longest + n_features * TINY[dtype]))

    def set_bounds(self, length: float, lower: NDArray[Any], upper: NDArray[Any]) -> None:
        self.length, self.lower, self.upper = length, np.tile(lower, TILE), np.tile(upper, TILE)

    def decide(self, n: int) -> tuple[Packed, NDArray[np.int64]]:
        """Packed signs (n, n_bytes) of the first n products, and where they are still open."""
        n_bits = self.products.shape[1]
        used = slice(0, -(-n // TILE))
        above = np.greater(self.wide[used], self.upper, out=self.above[used])
        around = np.greater_equal(self.wide[used], self.lower, out=self.around[used])
        still_open = _unequal(above.ravel(), around.ravel())
        signs = pack_bits(above.reshape(-1, n_bits)[:n])
        return signs, still_open[still_open < n * n_bits]


Rooms = dict[str, Room]  # by precision


def _unequal(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where flags, a multiple of 8 of them, differ: quick where few do."""
    words = np.flatnonzero(one.view(np.uint64) != other.view(np.uint64))
    near = (8 * words[:, None] + np.arange(8)).ravel()
    found: NDArray[np.int64] = near[one[near] != other[near]]
    return found
