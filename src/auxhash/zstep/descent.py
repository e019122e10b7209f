"""descent: flip any bit that lowers L_P, until none does.

Points are visited one by one, so that the codes of a point's neighbours are gathered once for all
its bits. Points that form no pair do not affect each other and can be visited at the same time. So
the points are coloured (no pair within a colour), and the colours take turns. The colouring depends
on the pairs alone: the result is the same on any number of threads.
"""

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Words, popcount
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.kernels import kernel
from auxhash.zstep.problem import ROUNDING, BitProblem, Graph, Problem

CHUNK = 16  # points of one colour that a thread takes at a time


class BitDescent:
    """A solver of the bit problem: one bit of all points, over and over."""

    single_flips = True  # it flips one entry of Z at a time, never several together

    def __call__(
        self, bit: BitProblem, z: NDArray[np.int8], rng: np.random.Generator
    ) -> NDArray[np.int8]:
        z = z.copy()
        graph = bit.graph
        largest = np.diff(graph.indptr).max() * np.abs(bit.a).max(initial=0.0)
        tolerance = ROUNDING * float(largest + np.abs(bit.c).max())
        while _descend_bit(z, bit.c, tolerance, graph.edges, bit.a):
            pass
        return z


class Descent(BitDescent):
    """A solver that makes whole sweeps: all bits of one point, then the next point.

    Called for one bit alone, it does what `BitDescent` does.
    """

    def sweep(
        self, problem: Problem, words: Words, c: Array, run: threads.Run, rng: np.random.Generator
    ) -> int:
        """Visit every point once, changing `words` in place; return how many bits flipped."""
        return visit_points(problem, words, c, run)


@singledispatch
def visit_points(problem: Problem, words: Words, c: Array, run: threads.Run) -> int:
    """Visit every point once, changing `words` in place; return how many bits flipped."""
    graph = problem.graph
    colours = graph.derive("colours", lambda: _by_colour(graph))
    tolerance = ROUNDING * problem.last_mu

    def descend(points: NDArray[np.int32]) -> int:
        flips: int = _descend_points(points, words, c, tolerance, graph.edges, problem.differences)
        return flips

    flips = 0
    for points in colours:
        flips += sum(run(descend, [points[s] for s in threads.chunks(len(points), CHUNK)]))
    return flips


def _by_colour(graph: Graph) -> list[NDArray[np.int32]]:
    """One array per colour: its points, in rising order."""
    colour = _colour(graph.edges)
    order = np.argsort(colour, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(colour))[:-1])


@kernel
def _colour(edges: Any) -> Any:
    """Greedy colouring: each point in turn takes the first colour none of its partners has."""
    indptr, indices = edges.indptr, edges.indices
    n = len(indptr) - 1
    colour = np.full(n, -1, np.int64)
    seen_by = np.full(n + 1, -1, np.int64)  # the last point that found this colour taken
    for point in range(n):
        for e in range(indptr[point], indptr[point + 1]):
            if colour[indices[e]] >= 0:
                seen_by[colour[indices[e]]] = point
        choice = 0
        while seen_by[choice] == point:
            choice += 1
        colour[point] = choice
    return colour


@kernel
def _gains(row: Any, pair: Any, coef: Any, differences: Any, d: Any, gain: Any) -> float:
    """Sum over the neighbours m of z_n z_m a_nm, for a bit in which all of them agree with n;
    `gain` becomes what each neighbour adds to that sum if it differs in the bit instead.

    Let d be the distance to a neighbour. If the bit agrees, the other bits have d' = d, and the
    term is +a(d); if it differs, d' = d - 1, and it is -a(d - 1), whichever bit it is.
    """
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
def _sum_where_set(differ: Any, shift: Any, gain: Any) -> float:
    total = 0.0
    for e in range(len(gain)):
        total += gain[e] * np.float64(np.int64((differ[e] >> shift) & np.uint64(1)))
    return total


@kernel
def _descend_points(
    points: Any, words: Any, c: Any, tolerance: float, edges: Any, differences: Any
) -> int:
    indptr, indices = edges.indptr, edges.indices
    n_words, n_bits = words.shape[1], c.shape[1]
    most = 0
    for n in points:
        most = max(most, indptr[n + 1] - indptr[n])
    differ_all = np.empty((n_words, most), np.uint64)
    d_all = np.empty(most, np.uint64)
    gain_all = np.empty(most)
    flips = 0
    for n in points:
        row, pair = edges.row[indptr[n] : indptr[n + 1]], edges.pair[indptr[n] : indptr[n + 1]]
        degree = indptr[n + 1] - indptr[n]
        differ, d, gain = differ_all[:, :degree], d_all[:degree], gain_all[:degree]
        d[:] = 0
        for w in range(n_words):
            for e in range(degree):
                differ[w, e] = words[n, w] ^ words[indices[indptr[n] + e], w]
                d[e] += popcount(differ[w, e])
        agree = _gains(row, pair, edges.coef, differences, d, gain)
        for k in range(n_bits):
            word, shift = k // 64, np.uint64(k % 64)
            z = 1.0 if (words[n, word] >> shift) & np.uint64(1) else -1.0
            z_field = 0.5 * (agree + _sum_where_set(differ[word], shift, gain))
            if z_field + z * c[n, k] > tolerance:
                flips += 1
                words[n, word] ^= np.uint64(1) << shift
                for e in range(degree):
                    d[e] += np.uint64(1) - ((differ[word, e] >> shift) & np.uint64(1)) * np.uint64(
                        2
                    )
                    differ[word, e] ^= np.uint64(1) << shift
                agree = _gains(row, pair, edges.coef, differences, d, gain)
    return flips


@kernel
def _descend_bit(z: Any, c: Any, tolerance: float, edges: Any, a: Any) -> bool:
    """One pass over the points; True if a bit flipped."""
    indptr, indices = edges.indptr, edges.indices
    changed = False
    for n in range(len(z)):
        field = 0.0
        for e in range(indptr[n], indptr[n + 1]):
            field += a[e] * z[indices[e]]
        if z[n] * (0.5 * field + c[n]) > tolerance:
            z[n] = -z[n]
            changed = True
    return changed
