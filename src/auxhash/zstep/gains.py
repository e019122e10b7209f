"""What the flips of all bits of one point change, from one look at the codes of its neighbours.

Let d be the distance of point n to a neighbour m. In a bit where they agree, the other bits have
d' = d, and z_n z_m a_nm = a(d); where they differ, d' = d - 1, and it is -a(d - 1), whichever bit
it is. So for every bit

    z_n S_n = (1/2) sum_m z_n z_m a_nm = (1/2) (agree + sum of gain_m over the m that differ)

with agree = sum_m a(d), and gain_m = -a(d - 1) - a(d), what m adds if it differs instead.
"""

from typing import Any

import numpy as np

from auxhash.codes import popcount
from auxhash.compute.kernels import kernel


@kernel
def most_edges(points: Any, indptr: Any) -> int:
    """The largest number of edges that a point has."""
    most = 0
    for n in points:
        most = max(most, indptr[n + 1] - indptr[n])
    return most


@kernel
def gather(n: int, words: Any, partners: Any, differ: Any, d: Any) -> None:
    """The bits `differ` (n_words, degree) in which n is not like its partners, and how many, d."""
    d[:] = 0
    for w in range(words.shape[1]):
        for e in range(len(d)):
            differ[w, e] = words[n, w] ^ words[partners[e], w]
        for e in range(len(d)):
            d[e] += popcount(differ[w, e])


@kernel
def gains(row: Any, pair: Any, coef: Any, differences: Any, d: Any, gain: Any) -> float:
    """Returns `agree`; `gain` becomes that of each neighbour."""
    agree = 0.0
    for e in range(len(d)):
        same = differences.table[row[e], d[e] + np.uint64(1)]
        other = differences.table[row[e], d[e]]
        for r in range(coef.shape[1]):
            same += coef[pair[e], r] * differences.basis[r, d[e] + np.uint64(1)]
            other += coef[pair[e], r] * differences.basis[r, d[e]]
        agree += same
        gain[e] = -other - same
    return agree


@kernel(fastmath={"reassoc"})
def sum_where_set(differ: Any, shift: Any, gain: Any) -> float:
    """The sum of the gains of the neighbours that differ in one bit."""
    total = 0.0
    for e in range(len(gain)):
        total += gain[e] * np.float64(np.int64((differ[e] >> shift) & np.uint64(1)))
    return total


@kernel
def is_set(words: Any, n: int, k: int) -> Any:
    """Whether bit k of point n is."""
    return (words[n, k // 64] >> np.uint64(k % 64)) & np.uint64(1) != 0
