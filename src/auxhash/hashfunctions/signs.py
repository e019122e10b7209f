"""Codes of a linear hash function at the cost of one product, in the precision of X.

A code is the signs of outputs that are computed in double precision, from a scaled copy of the
points. Nearly all of these signs are known for less: `Planes` multiplies X as it is, and keeps the
sign of every product that is further from its threshold than rounding can carry it, in the product
and in the outputs. The others are computed anew, one by one and in double precision; and where even
this is too near to tell, so are the outputs of a whole part of X. So the codes are those of
the outputs, to the last bit, on any BLAS.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, pack_bits
from auxhash.compute.arrays import Array

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
HELD_BY_SINGLE = (np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16)
SLOP = 1.02  # factor on every bound: products of roundings, and the rounding of the bounds
MOST_FEATURES = 200_000  # for which SLOP is enough
BLOCK = 200  # features that are summed at a time in single precision: rounding grows with them
TINY = {SINGLE: 2.0**-124, DOUBLE: 2.0**-1020}  # more than a product loses that is subnormal
LARGEST = {SINGLE: 2.0**120, DOUBLE: 2.0**1000}  # sums up to here are far from infinity
OPEN = 1 / 32  # of the products; where more stay open, it is quicker to compute all of them anew


@dataclass(frozen=True)
class Planes:
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
    def of(cls, W: Array, low: float, width: float) -> "Planes | None":
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

    def codes(self, X: NDArray[Any]) -> Packed | None:
        """Packed codes (n, n_bytes) of raw X (n, D); None where the outputs have to say."""
        dtype = SINGLE if X.dtype in HELD_BY_SINGLE else DOUBLE
        points = np.ascontiguousarray(X, dtype)
        length = self._longest(points)
        if not self._stays_finite(length, dtype):
            return None
        products = self._products(points)
        slope, offset = self._rounding(dtype)
        with np.errstate(over="ignore"):  # a threshold beyond single precision is infinite there
            error = length * slope + offset
            upper = np.nextafter((self.threshold + error).astype(dtype), dtype.type(np.inf))
            lower = np.nextafter((self.threshold - error).astype(dtype), dtype.type(-np.inf))
        above = products > upper
        still_open = np.flatnonzero(above == (products < lower))
        if len(still_open) > OPEN * above.size:
            return self.codes(points.astype(DOUBLE)) if dtype == SINGLE else None
        at, bits = np.divmod(still_open, above.shape[1])
        gap = np.vecdot(points[at].astype(DOUBLE), self.rows[bits]) - self.threshold[bits]
        if not (np.abs(gap) > length * self.slope[bits] + self.offset[bits]).all():
            return None
        above[at, bits] = gap > 0
        return pack_bits(above)

    def _longest(self, points: NDArray[Any]) -> float:
        """No less than the norm of any row."""
        with np.errstate(all="ignore"):
            square = float(np.vecdot(points, points).max())
        return float(SLOP * np.sqrt(square + points.shape[1] * TINY[points.dtype]))

    def _stays_finite(self, length: float, dtype: np.dtype[Any]) -> bool:
        """Whether no sum can overflow, here or in the outputs; False for NaN."""
        furthest = length + abs(self.low)
        sums = furthest, furthest / self.width, furthest * self.steep + self.level
        return length * float(self.norm.max()) < LARGEST[dtype] and all(
            each < LARGEST[DOUBLE] for each in sums
        )

    def _products(self, points: NDArray[Any]) -> NDArray[Any]:
        first, *others = self.V[points.dtype]
        at = len(first)
        found: NDArray[Any] = points[:, :at] @ first
        for block in others:
            found += points[:, at : at + len(block)] @ block
            at += len(block)
        return found

    def _rounding(self, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """What rounding adds to a product and to the output, per length of x and in any case."""
        if dtype == DOUBLE:
            return self.slope, self.offset
        blocks = self.V[SINGLE]
        n_roundings = len(blocks[0]) + len(blocks) + 4
        lost = TINY[SINGLE] * self.rows.shape[1]
        own = SLOP * n_roundings * float(np.finfo(SINGLE).eps) / 2 * self.norm + lost
        return self.slope + own, self.offset + lost
