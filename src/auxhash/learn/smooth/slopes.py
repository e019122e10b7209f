"""Slopes of the soft rank by inner products, and the gradients that follow from them; see `rank`.

S holds u_i'u_m of points i (rows) and a sample m (columns), -inf where m does not count as nearer,
and `level` u_i'u_j. Most of a sample is so far away that it has no part in the gradients: on a
processor, lists of the others, the contenders, take less time than products with all of it.
"""

import math
import threading

import numpy as np

from auxhash.compute import device as devices
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.device import CPU
from auxhash.compute.kernels import kernel

TAU = 0.5  # bits
FAR = 16  # a sigmoid so many times smaller than 1/n counts as 0, where most are
MOST_CONTENDERS = 0.15  # of a sample: lists of more take longer than products with all
COLUMNS_AT_ONCE = 1024  # of the sample, whose vectors fit in a processor's cache
STEEPEST = np.float32(np.log2(np.e) / (2 * TAU))  # of the sigmoid, as an exponent of 2
FARTHEST = np.float32(86)  # exponent of 2: beyond it a sigmoid is as good as 0 or 1
# 2^f for f from -1/2 to 1/2: Taylor's series, whose error is less than 2e-7.
C1, C2, C3, C4, C5, C6 = (np.float32(np.log(2) ** k / math.factorial(k)) for k in range(1, 7))


class Workspace(threading.local):
    """Tables of a thread, kept from step to step: to get new memory takes as long as to fill it."""

    size = 0
    S: Single
    contenders: Numbers

    def tables(self, n_rows: int, n_columns: int) -> tuple[Single, Numbers]:
        """Return a table of numbers and one of columns, with whatever was in them."""
        size = n_rows * n_columns
        if size > self.size:
            self.S, self.contenders = np.empty(size, np.float32), np.empty(size, np.int32)
            self.size = size
        shape = n_rows, n_columns
        return self.S[:size].reshape(shape), self.contenders[:size].reshape(shape)


def pulls(
    S: Single,
    level: Single,
    own: Single,
    sample: Single,
    least: np.float32,
    weight: np.float32,
    contenders: Numbers | None,
) -> tuple[Single, Single, Single]:
    """Return the gradients by the points i and by the sample, and the sums of `soft_rank`.

    S and `contenders`, a table for columns if lists may be made, are overwritten.
    """
    if contenders is not None:
        counts = _contend(S, level, np.log2(FAR / least), contenders)
        if counts.sum() <= MOST_CONTENDERS * S.size:
            of_own, of_sample = np.zeros_like(own), np.zeros_like(sample)
            total = _sparse_slopes(S, level, contenders, counts, least, weight)
            _gather(S, contenders, counts, own, sample, of_own, of_sample)
            return of_own, of_sample, total
    slope, total = soft_rank(S, level, least, weight)
    return slope @ sample, slope.T @ own, total


def soft_rank(
    S: Single, level: Single, least: np.float32, weight: np.float32
) -> tuple[Single, Single]:
    """Slopes of weight log(R + least) by S = u_i'u_m (rows, sample), and their sums (rows, 1).

    `level` is u_i'u_j (rows, 1). S is overwritten; where it is -inf, the slope is as good as 0.
    """
    device = devices.of(S)
    if device is CPU:
        _sigmoids(S, level)
        return S, _slopes(S, least, weight)
    total: Single = np.empty_like(level)
    steepness = np.float32(0.5 / TAU)
    arrays, numbers = (S, level, total), (S.shape[1], steepness, least, weight)
    device.kernels(__file__)("soft_rank", len(S), *arrays, *numbers)
    return S, total


@kernel(fastmath={"contract"})
def _row_sigmoids(row: Single, level: np.float32) -> None:
    """sigmoid((row - level) / (2 tau)), in place.

    With an exponential of its own, which works on as many numbers at once as the processor can.
    """
    n = len(row)
    fraction, power = np.empty(n, np.float32), np.empty(n, np.float32)
    exponent = power.view(np.int32)
    for m in range(n):
        x = min(max((level - row[m]) * STEEPEST, -FARTHEST), FARTHEST)
        rounded = np.floor(x + np.float32(0.5))
        f = x - rounded
        fraction[m] = np.float32(1) + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
        # The bits of 2^rounded.
        exponent[m] = (np.int32(rounded) + np.int32(127)) << np.int32(23)
    for m in range(n):
        row[m] = np.float32(1) / (np.float32(1) + fraction[m] * power[m])


@kernel(fastmath={"contract", "reassoc"})
def _row_slopes(row: Single, n: np.float32, least: np.float32, weight: np.float32) -> np.float32:
    """The slopes of a row in place of its sigmoids; n are in the sample. Return their sum."""
    nearer, total = np.float32(0), np.float32(0)
    for m in range(len(row)):
        nearer += row[m]
    factor = np.float32(0.5 / TAU) * weight / (nearer + n * least)
    for m in range(len(row)):
        slope = factor * (row[m] - row[m] * row[m])
        row[m] = slope
        total += slope
    return total


@kernel(fastmath={"contract"})
def _sigmoids(S: Single, level: Single) -> None:
    """sigmoid((S - level) / (2 tau)), in place."""
    for i in range(len(S)):
        _row_sigmoids(S[i], level[i, 0])


@kernel(fastmath={"contract", "reassoc"})
def _slopes(S: Single, least: np.float32, weight: np.float32) -> Single:
    """The slopes of weight log(R + least) in place of the sigmoids, and their sums (rows, 1)."""
    sums = np.empty((len(S), 1), np.float32)
    for i in range(len(S)):
        sums[i, 0] = _row_slopes(S[i], np.float32(S.shape[1]), least, weight)
    return sums


@kernel(fastmath={"contract"})
def _contend(S: Single, level: Single, farthest: np.float32, contenders: Numbers) -> Numbers:
    """List the columns of each row whose sigmoid is more than 2^-farthest; return how many."""
    n_rows, n = S.shape
    counts = np.zeros(n_rows, np.int64)
    for i in range(n_rows):
        row, bound, count = S[i], level[i, 0] - np.float32(farthest) / STEEPEST, 0
        for m in range(n):
            contenders[i, count] = m
            count += not row[m] <= bound  # NaN is not lost
        counts[i] = count
    return counts


@kernel(fastmath={"contract", "reassoc"})
def _sparse_slopes(
    S: Single, level: Single, lists: Numbers, counts: Numbers, least: np.float32, weight: np.float32
) -> Single:
    """The slopes of each row's contenders in place of its first numbers, and their sums."""
    n_rows, n = S.shape
    sums = np.empty((n_rows, 1), np.float32)
    for i in range(n_rows):
        listed, value = lists[i, : counts[i]], S[i, : counts[i]]
        for c in range(len(listed)):
            value[c] = S[i, listed[c]]
        _row_sigmoids(value, level[i, 0])
        sums[i, 0] = _row_slopes(value, np.float32(n), least, weight)
    return sums


@kernel(fastmath={"contract", "reassoc"})
def _gather(
    slopes: Single,
    lists: Numbers,
    counts: Numbers,
    own: Single,
    sample: Single,
    of_own: Single,
    of_sample: Single,
) -> None:
    """Add slope @ sample and slope' @ own for the contenders, of some columns after the others.

    So their rows stay in the cache.
    """
    place = np.zeros(len(own), np.int64)
    for stop in range(COLUMNS_AT_ONCE, len(sample) + COLUMNS_AT_ONCE, COLUMNS_AT_ONCE):
        for i in range(len(own)):
            c = place[i]
            while c < counts[i] and lists[i, c] < stop:
                m, slope = lists[i, c], slopes[i, c]
                for d in range(own.shape[1]):
                    of_own[i, d] += slope * sample[m, d]
                    of_sample[m, d] += slope * own[i, d]
                c += 1
            place[i] = c
