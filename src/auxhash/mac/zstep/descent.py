"""descent: flip any bit that lowers L_P, until none does.

Points are visited one by one, so that the codes of a point's neighbours are gathered once for all
its bits. Points that form no pair do not affect each other and can be visited at the same time. So
the points are coloured (no pair within a colour), and the colours take turns. The colouring depends
on the pairs alone: the result is the same on any number of threads.
"""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes, Words
from auxhash.compute import threads, underway
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.kernels import kernel
from auxhash.mac.zstep.gains import (
    MIN_NEIGHBORS,
    MIN_NEIGHBORS_AFTER_FLIP,
    Gains,
    find_gains,
    flip,
    gather,
    is_set,
    most_edges,
    sum_bit,
    sum_byte,
)
from auxhash.mac.zstep.graph import Edges, Graph
from auxhash.mac.zstep.problem import ENERGY_TOLERANCE, BitProblem, Problem

POINTS_PER_TASK = 16  # points of one colour that a thread takes at a time


class BitDescent:
    """A solver of the bit problem: one bit of all points, over and over."""

    single_flips = True  # it flips one entry of Z at a time, never several together

    def __call__(self, bit: BitProblem, z: Codes, rng: np.random.Generator) -> Codes:
        z = z.copy()
        graph = bit.graph
        largest = np.diff(graph.indptr).max() * np.abs(bit.a).max(initial=0.0)
        tolerance = ENERGY_TOLERANCE * float(largest + np.abs(bit.c).max())
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
    tolerance = ENERGY_TOLERANCE * problem.last_mu

    def descend(points: NDArray[np.int32]) -> int:
        return _descend_points(points, words, c, tolerance, graph.edges, problem.gains)

    flips = 0
    for points in underway.each("Z step", colours):
        parts = [points[s] for s in threads.chunks(len(points), POINTS_PER_TASK)]
        flips += sum(run(descend, parts))
    return flips


def _by_colour(graph: Graph) -> list[NDArray[np.int32]]:
    """One array per colour: its points, in rising order."""
    colour = np.full(len(graph.indptr) - 1, -1, np.int64)
    seen_by = np.full(len(colour) + 1, -1, np.int64)
    for points in underway.each("colours of points", graph.chunks):
        _colour(points.start, points.stop, graph.edges, colour, seen_by)
    order = np.argsort(colour, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(colour))[:-1])


@kernel
def _colour(start: int, stop: int, edges: Edges, colour: AnyArray, seen_by: AnyArray) -> None:
    """Greedy colouring: each point in turn takes the first colour none of its partners has.

    seen_by[c] is the last point that found colour c taken.
    """
    indptr, indices = edges.indptr, edges.indices
    for point in range(start, stop):
        for e in range(indptr[point], indptr[point + 1]):
            if colour[indices[e]] >= 0:
                seen_by[colour[indices[e]]] = point
        choice = 0
        while seen_by[choice] == point:
            choice += 1
        colour[point] = choice


@kernel
def _descend_points(
    points: AnyArray, words: Words, c: Array, tolerance: float, edges: Edges, table: Gains
) -> int:
    most = most_edges(points, edges.indptr)
    differ = np.empty((words.shape[1], most), np.uint64)
    at_all, gain_all, sums = np.empty(most, np.uint32), np.empty(most), np.empty(256)
    flips = 0
    for n in points:
        own = slice(edges.indptr[n], edges.indptr[n + 1])
        pair, degree = edges.pair[own], own.stop - own.start
        at, gain = at_all[:degree], gain_all[:degree]
        gather(n, words, edges.indices[own], edges.row[own], c.shape[1] + 1, differ, at)
        agree = find_gains(at, pair, edges.coef, table, gain)
        summed = 0  # bits whose sums are those of the gains
        for k in range(c.shape[1]):
            if k >= summed:
                enough = MIN_NEIGHBORS if k % 8 == 0 else MIN_NEIGHBORS_AFTER_FLIP
                if degree < enough or k % 8 == 7:
                    sums[1 << k % 8] = sum_bit(differ, k, gain)
                    summed = k + 1
                else:
                    sum_byte(differ, k, gain, sums)
                    summed = k // 8 * 8 + 8
            z = 1.0 if is_set(words, n, k) else -1.0
            if 0.5 * (agree + sums[1 << k % 8]) + z * c[n, k] > tolerance:
                flips += 1
                word, bit = k // 64, np.uint64(k % 64)
                words[n, word] ^= np.uint64(1) << bit
                flip(differ, word, bit, at)
                agree = find_gains(at, pair, edges.coef, table, gain)
                summed = k + 1
    return flips


@kernel
def _descend_bit(z: AnyArray, c: Array, tolerance: float, edges: Edges, a: Array) -> bool:
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
