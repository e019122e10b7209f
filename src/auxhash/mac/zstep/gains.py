"""Changes by flips of all bits of one point, from one pass over its neighbours' codes.

Let d be the distance of point n to a neighbour m. In a bit where they agree, the other bits have
d' = d, and z_n z_m a_nm = a(d); where they differ, d' = d - 1, and it is -a(d - 1), whichever bit
it is. So for every bit

    z_n S_n = (1/2) sum_m z_n z_m a_nm = (1/2) (agree + sum of gain_m over the m that differ)

with agree = sum_m a(d), and gain_m = -a(d - 1) - a(d), what m adds if it differs instead.

The sums of eight bits come from one pass over the neighbours: the gains of those whose byte of
differences has the same value are added up first, and these 256 sums give those of the bits.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from auxhash.codes import Words, popcount
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.kernels import kernel

MIN_NEIGHBORS = 48  # neighbours: of fewer, each bit is summed by itself
MIN_NEIGHBORS_AFTER_FLIP = 100  # more: fewer bits of the byte are left, and it may flip again


class Gains(NamedTuple):
    """a(d) in [0] and the gain in [1], by d = 0..b, for the loss table and for its basis."""

    table: Array  # (2, rows * (b + 1)), row after row
    basis: Array  # (2, R, b + 1)


def gains_of(table: Array, basis: Array) -> Gains:
    """Return the gains from a(d - 1) and a(d) in columns d and d + 1 of `Differences`."""
    rows, terms = (np.stack([a[:, 1:], -a[:, :-1] - a[:, 1:]]) for a in (table, basis))
    return Gains(rows.reshape(2, -1), terms)


@kernel
def most_edges(points: Iterable[int], indptr: AnyArray) -> int:
    """Return the largest number of edges that a point has."""
    most = 0
    for n in points:
        most = max(most, indptr[n + 1] - indptr[n])
    return most


@kernel(inline="always")
def gather(
    n: int,
    words: Words,
    partners: AnyArray,
    row: AnyArray,
    width: int,
    differ: AnyArray,
    at: AnyArray,
) -> None:
    """The bits `differ` (n_words, edges) of n and its partners, and the place `at` of each distance
    in the table of `Gains`, whose rows have that width."""
    for e in range(len(at)):
        at[e] = row[e] * width
    for w in range(words.shape[1]):
        for e in range(len(at)):
            differ[w, e] = words[n, w] ^ words[partners[e], w]
        for e in range(len(at)):
            at[e] += popcount(differ[w, e])


@kernel(inline="always")
def flip(differ: AnyArray, word: int, bit: np.uint64, at: AnyArray) -> None:
    """Update distances for a flip of one bit of the point; `differ` stays as it was."""
    one = np.uint64(1)
    for e in range(len(at)):
        at[e] += one - (((differ[word, e] >> bit) & one) << one)


@kernel
def find_gains(at: AnyArray, pair: AnyArray, coef: Array, table: Gains, gain: Array) -> float:
    """Return `agree`; `gain` becomes that of each neighbour."""
    agree = 0.0
    for e in range(len(at)):
        same, other = table.table[0, at[e]], table.table[1, at[e]]
        for r in range(coef.shape[1]):  # then the table has one row
            same += coef[pair[e], r] * table.basis[0, r, at[e]]
            other += coef[pair[e], r] * table.basis[1, r, at[e]]
        agree += same
        gain[e] = other
    return agree


@kernel(fastmath={"reassoc"})
def sum_bit(differ: AnyArray, k: int, gain: Array) -> float:
    """Return the sum of the gains of the neighbours that differ in bit k."""
    word, shift = k // 64, np.uint64(k % 64)
    total = 0.0
    for e in range(len(gain)):
        total += gain[e] * np.float64(np.int64((differ[word, e] >> shift) & np.uint64(1)))
    return total


@kernel(fastmath={"reassoc"})
def sum_byte(differ: AnyArray, k: int, gain: Array, sums: Array) -> None:
    """Sum the gains for all bits of bit k's byte; the sum of bit k is sums[1 << k % 8].

    `sums` (256,) are first those of each value of the byte. The values with the highest bit are
    the upper half. Once they are added to the lower half, that holds the sums of the values of the
    bits below.
    """
    word, shift = k // 64, np.uint64(k % 64 // 8 * 8)
    sums[:] = 0.0
    for e in range(len(gain)):
        sums[(differ[word, e] >> shift) & np.uint64(255)] += gain[e]
    half = np.uint64(128)
    while half:
        total = 0.0
        for value in range(half):
            total += sums[half + value]
            sums[value] += sums[half + value]
        sums[half] = total
        half >>= np.uint64(1)


@kernel
def is_set(words: Words, n: int, k: int) -> bool:
    """Return True if bit k of point n is 1."""
    bit: bool = (words[n, k // 64] >> np.uint64(k % 64)) & np.uint64(1) != 0
    return bit
