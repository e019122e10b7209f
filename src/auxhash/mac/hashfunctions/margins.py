"""Margins of points, z_n w'f_n, and the sums over them that Newton's method needs at each step.

A point is inside a bit's margin where its slack max(0, 1 - z_n w'f_n) is not 0. Columns are bits.
"""

from typing import Any

import numpy as np

from auxhash.codes import Codes
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, Array, Matrix, Numbers
from auxhash.compute.parts import Chunks

MIN_LENGTHS, MAX_LENGTHS = 4, 50  # of a step that are tried, at least and at most
MIN_ROWS_PER_BLOCK, MAX_BLOCKS = 64, 1024  # of a GPU that sums over points


class Margins:
    """Margins for codes Z (n, b) and features F (n, F); s (n, b) or (1, 1) weighs points."""

    def __init__(self, F: Matrix, Z: Codes, s: Array | None, parts: Chunks) -> None:
        self.F, self.parts, self.device = F, parts, devices.of(F)
        self.Z: AnyArray = Z
        self.s = self.device.put(np.ones((1, 1))) if s is None else s

    def take(self, bits: Numbers) -> None:
        """Go on with these columns alone."""
        self.Z = self.device.columns(self.Z, bits)
        self.s = self.device.columns(self.s, bits) if self.s.shape[1] > 1 else self.s

    def of(self, W: Array) -> Array:
        """Return the margins (n, b) of weights W (F, b)."""
        M: Array = self.device.empty(self.Z.shape)
        self.parts.each(lambda rows: np.multiply(self.Z[rows], self.F[rows] @ W, out=M[rows]))
        return M

    def sums(self, M: Array, inside: Array) -> tuple[Array, Array]:
        """Half the gradient (F, b), with its sign turned, and the value (b,) of the sum over n of
        s_n slack_n^2; `inside` becomes s_n inside the margin, else 0."""

        def part(rows: slice) -> Array:
            slack = np.maximum(0.0, 1.0 - M[rows])
            inside[rows] = (slack > 0) * self._weight(rows)
            weighted = slack * self._weight(rows)
            slope = self.F[rows].T @ (self.Z[rows] * weighted)
            return np.vstack([slope, (weighted * slack).sum(0)])

        total = self.parts.sum(part)
        return total[:-1], total[-1]

    def length(
        self, M: Array, change: Array, slope: Array, curve: Array, enough: Array, C: float
    ) -> Array:
        """Find the best length (b,) of each step, by Newton's method in one variable.

        The slope along a step is curve * length + slope, less a sum over the points whose margins
        M the step changes by `change`. It rises with the length, by pieces of straight lines, and
        Newton's method can jump to and fro between two of them. So it is kept between lengths
        where the slope is known to be negative and positive, until it is `enough` near to 0.
        """
        length = np.ones_like(slope)
        low, high = np.zeros_like(length), np.full_like(length, np.inf)
        for number in range(MAX_LENGTHS):

            def part(rows: slice, length: Array = length) -> Array:
                slack = np.maximum(0.0, 1.0 - M[rows] - length * change[rows])
                pull = change[rows] * self._weight(rows)
                return np.stack([(slack * pull).sum(0), ((slack > 0) * pull * change[rows]).sum(0)])

            first, second = 2 * C * self.parts.sum(part)
            value = slope + length * curve - first
            low = np.where(value < 0, np.maximum(low, length), low)
            high = np.where(value > 0, np.minimum(high, length), high)
            newton = length - value / (curve + second)
            if number < MIN_LENGTHS - 1:
                length = newton
                continue
            far = np.abs(value) > enough
            between = np.where(np.isfinite(high), (low + high) / 2, 2 * low)
            kept = np.where((newton > low) & (newton < high), newton, between)
            length = np.where(far, kept, newton)
            if not far.any():
                break
        return length

    def _weight(self, rows: slice) -> Array:
        return self.s if len(self.s) == 1 else self.s[rows]


class DeviceMargins(Margins):
    """Margins on a GPU, whose kernels take codes in double precision."""

    def __init__(self, F: Matrix, Z: Codes, s: Array | None, parts: Chunks) -> None:
        super().__init__(F, Z, s, parts)
        self.Z = Z.astype(np.float64)

    def sums(self, M: Array, inside: Array) -> tuple[Array, Array]:
        pull, partial = self.device.empty(M.shape), self._partial(M, 1)
        self._over("sums", M, M, self.Z, self.s, self.s.size, inside, pull, partial)
        slope = self.parts.sum(lambda rows: self.F[rows].T @ pull[rows])
        return slope, partial.sum(axis=0)[0]

    def length(
        self, M: Array, change: Array, slope: Array, curve: Array, enough: Array, C: float
    ) -> Array:
        length, low, high = np.ones_like(slope), np.zeros_like(slope), np.full_like(slope, np.inf)
        partial, far = self._partial(M, 2), self.device.empty(len(length), np.bool_)
        run = self.device.kernels(__file__)
        for number in range(MAX_LENGTHS):
            late = number >= MIN_LENGTHS - 1
            self._over("slopes", M, M, change, self.s, self.s.size, length, partial)
            numbers = np.float64(2 * C), np.bool_(late), len(length)
            arguments = partial, len(partial), slope, curve, enough, *numbers
            run("next_lengths", len(length), *arguments, low, high, length, far)
            if late and not self.device.fetch(far).any():
                break
        return length

    def _partial(self, M: Array, kinds: int) -> Array:
        """Return a buffer for the sums of each block."""
        return self.device.empty((-(-len(M) // _rows_per_block(len(M))), kinds, M.shape[1]))

    def _over(self, name: str, M: Array, *args: Any) -> None:
        """Run the kernel on the points, cut into blocks."""
        *arguments, partial = args
        sizes = *M.shape, _rows_per_block(len(M))
        self.device.kernels(__file__)(name, len(partial), *arguments, *sizes, partial)


def _rows_per_block(n: int) -> int:
    return max(MIN_ROWS_PER_BLOCK, -(-n // MAX_BLOCKS))
