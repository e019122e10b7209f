"""The Z step on a GPU: the objective of `problem`, with its pairs and codes in the GPU's memory.

The loops over the pairs are in problem.cu and descent.cu. Sums over the pairs of a point are exact
in any order, because what is added up is rounded to a grid first (`on_grid`): so neighbour lists
need not be sorted, and the same seed gives the same codes.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes, Words
from auxhash.compute import threads
from auxhash.compute.arrays import Array, Numbers
from auxhash.compute.device import CPU, MAX_THREADS_PER_BLOCK, THREADS_PER_BLOCK, Device, Kernels
from auxhash.mac.affinity import Affinity
from auxhash.mac.affinity.gpu import SIGN_ROWS, DeviceAffinity
from auxhash.mac.losses import LossLike, get, tabulate, tabulate_rows
from auxhash.mac.zstep import descent, problem
from auxhash.mac.zstep.descent import visit_points
from auxhash.mac.zstep.graph import Edges, graph_of
from auxhash.mac.zstep.problem import ENERGY_TOLERANCE, Differences, Problem, differences_of

N_GRID_DIGITS = 40  # binary digits of the entries of a table, below the largest
N_DOUBLE_DIGITS = 52  # of a double
MAX_SHARED_POINTS = 512  # of a colour; so few keep a GPU busy only if threads share a point
# Threads per point: as many as leave room for all points of a colour.
THREADS_PER_POINT = (MAX_THREADS_PER_BLOCK, MAX_THREADS_PER_BLOCK // 2, THREADS_PER_BLOCK)


class DeviceProblem(Problem):
    """L_P over codes in the memory of a GPU; see `Problem`."""

    def __init__(self, affinity: Affinity, loss: LossLike, n_bits: int, device: Device) -> None:
        self.affinity, self.function = affinity, get(loss)
        self.n_bits, self.device = int(n_bits), device
        if isinstance(affinity, DeviceAffinity):
            table = tabulate_rows(SIGN_ROWS, affinity.kind, loss, self.n_bits)
            drawn = affinity.edges
            empty = device.empty(0, np.uint32), device.empty((1, 0))
            self.edges = Edges(drawn.indptr, drawn.indptr[1:], drawn.indices, drawn.row, *empty)
            values, basis, self.constant = table, np.zeros((0, table.shape[1])), 0.0
        else:
            tabulated = tabulate(affinity, loss, self.n_bits)
            self.edges = Edges(*(device.put(part) for part in graph_of(affinity, tabulated).edges))
            values, basis, self.constant = tabulated.table, tabulated.basis, tabulated.constant
        self.most_edges = int(np.diff(self.edges.indptr).max())
        self.values = values, basis
        self.on_loss = self._on_device(values, basis)
        self.differences = differences_of(values, basis)
        self.on_differences = self._on_device(*self.differences)

    def _on_device(self, table: Array, basis: Array) -> Differences:
        return Differences(self.device.put(on_grid(table, self.most_edges)), self.device.put(basis))

    @property
    def nbytes(self) -> int:
        """Number of bytes in the memory of the GPU."""
        return sum(part.nbytes for part in self.edges)

    def arguments(self, table: Differences) -> tuple[object, ...]:
        """Return the arguments EDGES of the kernels."""
        edges = self.edges
        lists = edges.indptr, edges.indices, edges.row, edges.pair
        width = edges.coef.shape[1]
        return *lists, edges.coef, width, table.table, table.basis, table.table.shape[1]

    def to_words(self, Z: Codes) -> Words:
        n, b = Z.shape
        words = self.device.empty((n, -(-b // 64)), np.uint64)
        _of_problem(self.device).over("codes_to_words", words.size, Z, words, n, b, words.shape[1])
        return words

    def to_codes(self, words: Words) -> Codes:
        n, n_words = words.shape
        Z: Codes = self.device.empty((n, self.n_bits), np.int8)
        sizes = n, self.n_bits, n_words
        _of_problem(self.device).over("words_to_codes", Z.size, words, Z, *sizes)
        return Z

    def loss(self, Z: Codes) -> float:
        words, out = self.to_words(Z), self.device.empty(len(Z))
        arguments = words, words.shape[1], *self.arguments(self.on_loss)
        _of_problem(self.device)("losses", len(Z), *arguments, out)
        return self.constant + float(out.sum()) / 2

    def fields(self, Z: Codes) -> Array:
        words, S = self.to_words(Z), self.device.empty((len(Z), self.n_bits))
        arguments = words, words.shape[1], self.n_bits, *self.arguments(self.on_differences)
        _of_descent(self.device)("fields", len(Z), *arguments, S)
        return S

    @cached_property
    def last_mu(self) -> float:
        out = self.device.empty(self.n_points)
        arguments = self.arguments(self.on_differences)
        _of_problem(self.device)("most", self.n_points, *arguments, out)
        return float(out.max()) / 4

    @cached_property
    def colours(self) -> "Colours":
        """Colours of the points: no two of a colour form a pair."""
        put, kernels = self.device.put, _of_descent(self.device)
        edges, n = self.edges, self.n_points
        priority = self.device.empty(n, np.uint64)
        kernels.over("priorities", n, priority, n)
        order = np.argsort(~priority).astype(np.uint32)
        colour = put(np.full(n, -1, np.int32))
        lists = order, priority, edges.indptr, edges.indices, colour
        kernels("colour", n, *lists, self.most_edges + 1)
        sizes = self.device.fetch(np.bincount(colour))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        order = np.argsort(colour, kind="stable").astype(np.uint32)
        return Colours(order, put(starts), sizes)


class Colours(NamedTuple):
    """Points, colour by colour."""

    order: NDArray[np.uint32]  # (n,)
    starts: Numbers  # (colours + 1,), where each colour starts in it
    sizes: Numbers


def problem_on(device: Device, affinity: Affinity, loss: LossLike, n_bits: int) -> Problem:
    """Return the problem of these pairs, computed on that device."""
    if device is CPU:
        return Problem(affinity, loss, n_bits)
    return DeviceProblem(affinity, loss, n_bits, device)


def on_grid(table: Array, n_terms: int) -> Array:
    """Round the entries, so that sums of `n_terms` of them are exact in double precision."""
    largest = np.abs(table).max(initial=0.0)
    if not largest:
        return table
    digits = min(N_GRID_DIGITS, N_DOUBLE_DIGITS - int(n_terms).bit_length() - 1)
    unit = 2.0 ** (np.ceil(np.log2(largest)) - digits)
    rounded: Array = np.rint(table / unit) * unit
    return rounded


@visit_points.register
def _(problem: DeviceProblem, words: Words, c: Array, run: threads.Run) -> int:
    device, colours = problem.device, problem.colours
    flips, arrived = device.zeros(1, np.uint64), device.zeros(1, np.uint32)
    tolerance = np.float64(ENERGY_TOLERANCE * problem.last_mu)
    arguments = words, words.shape[1], c, problem.n_bits, tolerance
    arguments = *arguments, *problem.arguments(problem.on_differences), flips, arrived
    lists, n, most = (colours.order, colours.starts), len(colours.sizes), int(colours.sizes.max())
    # One launch for all colours, whose blocks wait for each other, if all of them have room.
    for threads_each in THREADS_PER_POINT if most <= MAX_SHARED_POINTS else ():
        kernels = _of_descent(device, threads_each)
        if kernels.at_once("descend_points") >= most:
            kernels.together("descend_points", most, *lists, 0, n, *arguments)
            return int(flips[0])
    threads_each = THREADS_PER_BLOCK if most > MAX_SHARED_POINTS else MAX_THREADS_PER_BLOCK
    kernels = _of_descent(device, threads_each)
    for k, size in enumerate(colours.sizes.tolist()):
        kernels("descend_points", size, *lists, k, k + 1, *arguments)
    return int(flips[0])


def _of_problem(device: Device) -> Kernels:
    return device.kernels(problem.__file__)


def _of_descent(device: Device, threads: int = THREADS_PER_BLOCK) -> Kernels:
    return device.kernels(descent.__file__, threads)
