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

from auxhash.codes import Words
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.kernels import kernel
from auxhash.zstep.gains import gains, gather, is_set, most_edges, sum_where_set
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
def _descend_points(
    points: Any, words: Any, c: Any, tolerance: float, edges: Any, differences: Any
) -> int:
    most = most_edges(points, edges.indptr)
    differ_all = np.empty((words.shape[1], most), np.uint64)
    d_all, gain_all = np.empty(most, np.uint64), np.empty(most)
    flips = 0
    for n in points:
        own = slice(edges.indptr[n], edges.indptr[n + 1])
        row, pair, degree = edges.row[own], edges.pair[own], own.stop - own.start
        differ, d, gain = differ_all[:, :degree], d_all[:degree], gain_all[:degree]
        gather(n, words, edges.indices[own], differ, d)
        agree = gains(row, pair, edges.coef, differences, d, gain)
        for k in range(c.shape[1]):
            word, shift = k // 64, np.uint64(k % 64)
            z = 1.0 if is_set(words, n, k) else -1.0
            z_field = 0.5 * (agree + sum_where_set(differ[word], shift, gain))
            if z_field + z * c[n, k] > tolerance:
                flips += 1
                words[n, word] ^= np.uint64(1) << shift
                for e in range(degree):
                    d[e] += np.uint64(1) - ((differ[word, e] >> shift) & np.uint64(1)) * np.uint64(
                        2
                    )
                    differ[word, e] ^= np.uint64(1) << shift
                agree = gains(row, pair, edges.coef, differences, d, gain)
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
