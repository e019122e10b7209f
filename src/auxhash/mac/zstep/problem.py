"""The Z step's objective: eq. (5) of the paper, with multipliers l, and with all its constants.

    L_P(Z) = sum over pairs w loss(d, y, b) + sum_n mu |z_n - h_n|^2 + l_n'(z_n - h_n)

with h_n = h(x_n) and l = 0 for the quadratic penalty. For bit k with the other bits fixed, let d'
be the distance over the other bits and a_ij = w (loss(d') - loss(d'+1)). Up to a constant, eqs.
(6)-(8) of the paper become

    E(z) = (1/4) z'Az + c'z,   c = l - 2 mu h
    g(z) = (1/2) Az + c        flipping z_n changes L_P by -2 z_n g_n
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes, Words, codes_to_words, popcount, words_to_codes
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.device import CPU, Device
from auxhash.compute.kernels import kernel
from auxhash.mac.affinity import Affinity
from auxhash.mac.losses import LossLike, LossTable, get, sum_pairs, tabulate, tabulate_at
from auxhash.mac.zstep.gains import (
    MIN_NEIGHBORS,
    Gains,
    find_gains,
    gains_of,
    gather,
    is_set,
    most_edges,
    sum_bit,
    sum_byte,
)
from auxhash.mac.zstep.graph import Edges, Graph, graph_of, weigh

Later = Literal["absent", "zero"]

ENERGY_TOLERANCE = 1e-12  # a relative change in E that is smaller counts as none


@dataclass(frozen=True)
class Penalty:
    """mu |z - h|^2 + l'(z - h): the penalty of eq. (5) on codes that differ from h(X)."""

    H: Codes  # (n, b), h(X)
    mu: float
    multipliers: Array | None = None  # (n, b), l; None is zero

    def linear(self) -> Array:
        """c = l - 2 mu h, for all bits (n, b)."""
        c: Array = -2.0 * self.mu * self.H.astype(np.float64)
        return c if self.multipliers is None else c + self.multipliers

    def value(self, Z: Codes) -> float:
        gap = Z.astype(np.float64) - self.H
        result = self.mu * float(np.square(gap).sum())
        return (
            result if self.multipliers is None else result + float((self.multipliers * gap).sum())
        )


class Differences(NamedTuple):
    """loss(d') - loss(d'+1) in column d' + 1, for the rows of the loss table and for its basis.

    The first and the last column are padding: kernels can read columns d and d + 1 for every
    d = 0..b without a test.
    """

    table: Array  # (rows, b + 2)
    basis: Array  # (R, b + 2)


class Problem:
    """L_P over the codes of `affinity.n_points` points, for one loss and number of bits."""

    device: Device = CPU  # where codes are, and the pairs

    def __init__(self, affinity: Affinity, loss: LossLike, n_bits: int) -> None:
        self.affinity = affinity
        self.function = get(loss)
        self.n_bits = int(n_bits)  # NumPy's small integers would wrap around
        self.table: LossTable = tabulate(affinity, loss, self.n_bits)
        self.graph = graph_of(affinity, self.table)
        self.edges = self.graph.edges
        self.values = self.table.table, self.table.basis
        self.differences = differences_of(*self.values)
        self.gains = gains_of(*self.differences)

    @property
    def n_points(self) -> int:
        return self.affinity.n_points

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory, those of the affinity included."""
        # The coefficients of the table are those of the edges.
        arrays: list[AnyArray] = [*self.graph.edges, self.table.row]
        arrays += [self.couplings] if "couplings" in vars(self) else []
        own = sum(part.nbytes for part in arrays if part is not self.affinity.row)
        return self.affinity.nbytes + own

    @cached_property
    def couplings(self) -> Array:
        """A buffer for the couplings of one bit: only solvers that take bits one by one need it."""
        return np.empty(len(self.graph.indices))

    def to_words(self, Z: Codes) -> Words:
        """Return codes as 64-bit words, where the problem is computed."""
        return codes_to_words(Z)

    def to_codes(self, words: Words) -> Codes:
        """Return the codes of 64-bit words: the reverse of `to_words`."""
        return words_to_codes(words, self.n_bits)

    def loss(self, Z: Codes) -> float:
        """Return L(Z), eq. (10)."""
        return sum_pairs(Z, self.affinity, self.table)

    def penalized(self, Z: Codes, penalty: Penalty) -> float:
        """Return L_P(Z), eq. (5)."""
        return self.loss(Z) + penalty.value(Z)

    def bit(self, words: Words, k: int, c: Array, mu: float, run: threads.Run) -> "BitProblem":
        """The problem of bit k, eq. (8), the other bits as in `words`; c (n,) is its linear term.

        Its couplings are in a buffer that the next call overwrites.
        """
        others = _all_but(k, words.shape[1])
        return self._bit(self.graph, self.differences, words, others, c, mu, run)

    def first_bits(self, words: Words, k: int, later: Later, run: threads.Run) -> "BitProblem":
        """Return the problem of bit k given the bits before it, as in `words`, at mu = 0.

        `later` says what bits k + 1, ... count as: "absent" takes the loss of codes of k + 1 bits;
        "zero" that of all b bits, these being 0: with s the inner product of the bits so far, the
        loss at the real distance d = (b - s) / 2. Couplings are in the same buffer as for `bit`.
        """
        so_far = np.arange(k + 2.0)  # distances of codes of k + 1 bits
        if later == "zero":
            d, n_bits = so_far + (self.n_bits - k - 1) / 2, self.n_bits
        else:
            d, n_bits = so_far, k + 1
        table = tabulate_at(d, self.affinity, self.function, n_bits)
        # Pairs and rows are the same at any distances; coefficients belong to a basis over them.
        graph = replace(self.graph, edges=self.graph.edges._replace(coef=table.coef))
        before = [(1 << min(64, max(0, k - 64 * w))) - 1 for w in range(words.shape[1])]
        mask = np.array(before, np.uint64)
        differences = differences_of(table.table, table.basis)
        return self._bit(graph, differences, words, mask, np.zeros(len(words)), 0.0, run)

    def _bit(
        self,
        graph: Graph,
        differences: Differences,
        words: Words,
        others: NDArray[np.uint64],
        c: Array,
        mu: float,
        run: threads.Run,
    ) -> "BitProblem":
        a = self.couplings

        def couple(rows: slice) -> None:
            _couplings(rows.start, rows.stop, others, words, graph.edges, differences, a)

        run(couple, graph.chunks)
        return BitProblem(graph, a, c, mu, self.affinity.groups, run)

    def fields(self, Z: Codes) -> Array:
        """S (n, b): for every bit S_n = (1/2) sum_j a_nj z_j, so that g = S + c."""
        words, S = codes_to_words(Z), np.empty(Z.shape)

        def part(rows: slice) -> None:
            _fields(rows.start, rows.stop, words, self.graph.edges, self.gains, S)

        threads.run_kernels(part, self.graph.chunks)
        return S

    @cached_property
    def last_mu(self) -> float:
        """A mu past which every flip to h(X) lowers L_P: (1/4) max_n sum_j max_d' |a_nj(d')|."""
        edges, most = self.graph.edges, np.abs(self.differences.table).max(axis=1)

        def part(rows: slice) -> float:
            if edges.coef.shape[1]:
                return float(_most_of_pairs(rows.start, rows.stop, edges, self.differences))
            return float(_most_of_rows(rows.start, rows.stop, edges, most))

        with threads.pool() as run:
            return max(run(part, self.graph.chunks), default=0.0) / 4

    def flip_thresholds(self, Z: Codes, H: Codes) -> Array:
        """For each z_n != h_n, the mu past which flipping it to h_n lowers L_P: h_n S_n / 2."""
        differ = Z != H
        needed: Array = H[differ] * self.fields(Z)[differ] / 2
        return needed

    def first_mu_bound(self, Z: Codes, H: Codes) -> float:
        """A lower bound for mu_1: no flip of one entry of Z lowers L_P at any mu below it.

        That is the smallest of the `flip_thresholds`, and the first flip happens right above it. It
        is 0 if a flip lowers L already, and infinite if Z = h(X). Solvers that flip several points
        together can change Z below it, and no bound other than 0 holds for every one of them:
        flipping all points of a bit costs nothing.
        """
        cost = -2 * Z * self.fields(Z)  # in L, of each flip
        if (cost < -ENERGY_TOLERANCE * self.last_mu).any():
            return 0.0
        return float(cost[Z != H].min(initial=np.inf).clip(0) / 4)


@dataclass(frozen=True)
class BitProblem:
    """min E(z) = (1/4) z'Az + c'z over z in {-1,+1}^n, A sparse and symmetric.

    `a` holds A's entries along the edges of the neighbour lists; `groups` is the affinity's.
    """

    graph: Graph
    a: Array
    c: Array
    mu: float
    groups: Numbers | None
    run: threads.Run

    def field(self, z: AnyArray) -> Array:
        """Return S = (1/2) Az."""
        z = np.asarray(z, np.float64)
        S = np.empty(len(z))

        def multiply(rows: slice) -> None:
            _field(rows.start, rows.stop, self.graph.edges, self.a, z, S)

        self.run(multiply, self.graph.chunks)
        return S

    def move(self, S: Array, moved: Numbers, by: Array) -> None:
        """Make S = (1/2) Az that of z with these entries moved by so much, by their rows alone."""
        _move(moved, by, self.graph.edges, self.a, S)

    def energy(self, z: AnyArray) -> float:
        """E(z), which for +-1 codes is L_P up to a constant."""
        return float(0.5 * (z @ self.field(z)) + self.c @ z)


def _all_but(k: int, n_words: int) -> Words:
    """Return a mask of all bits but bit k."""
    others = np.full(n_words, ~np.uint64(0))
    others[k // 64] ^= np.uint64(1 << (k % 64))
    return others


def differences_of(table: Array, basis: Array) -> Differences:
    """Return the differences of a `LossTable`'s table and basis."""
    return Differences(*(np.pad(-np.diff(part), ((0, 0), (1, 1))) for part in (table, basis)))


@kernel
def _fold(partners: AnyArray, a: Array) -> None:
    """Move the couplings of edges to the same partner, which are adjacent, to the first of them."""
    first = 0
    for e in range(1, len(partners)):
        if partners[e] != partners[e - 1]:
            first = e
        else:
            a[first] += a[e]
            a[e] = 0.0


@kernel
def _couplings(
    start: int,
    stop: int,
    others: AnyArray,
    words: Words,
    edges: Edges,
    differences: Differences,
    out: AnyArray,
) -> None:
    """a_ij, eq. (8), along the edges of points start..stop; `others` masks the bits that d' counts.

    A pair with several y has several edges: the first gets the sum of their terms.
    """
    indptr, indices, row, coef = edges.indptr, edges.indices, edges.row, edges.coef
    pair, table, basis = edges.pair, differences.table, differences.basis
    for n in range(start, stop):
        own = slice(indptr[n], indptr[n + 1])
        partners, rows, a = indices[own], row[own], out[own]
        word = words[n, 0]  # read once: the compiler cannot know that `out` is another array
        for e in range(len(partners)):
            m = partners[e]
            d = popcount((word ^ words[m, 0]) & others[0]) + np.uint64(1)
            for w in range(1, words.shape[1]):
                d += popcount((words[n, w] ^ words[m, w]) & others[w])
            value = table[rows[e], d]
            for r in range(coef.shape[1]):
                value += coef[pair[own.start + e], r] * basis[r, d]
            a[e] = value
        _fold(partners, a)


@kernel
def _field(start: int, stop: int, edges: Edges, a: Array, z: AnyArray, out: AnyArray) -> None:
    """S of points start..stop, from the coupling of each edge in a."""
    indptr, indices = edges.indptr, edges.indices
    for n in range(start, stop):
        own = slice(indptr[n], indptr[n + 1])
        out[n] = 0.5 * weigh(a[own], indices[own], z)


@kernel
def _move(moved: AnyArray, by: Array, edges: Edges, a: Array, S: Array) -> None:
    """Add half of A's columns of the moved, times how far: A is symmetric, they are its rows."""
    indptr, indices = edges.indptr, edges.indices
    for i in range(len(moved)):
        half = 0.5 * by[i]
        for e in range(indptr[moved[i]], indptr[moved[i] + 1]):
            S[indices[e]] += half * a[e]


@kernel
def _fields(start: int, stop: int, words: Words, edges: Edges, table: Gains, S: Array) -> None:
    """S of all bits of points start..stop."""
    most = most_edges(range(start, stop), edges.indptr)
    differ = np.empty((words.shape[1], most), np.uint64)
    at_all, gain_all, sums = np.empty(most, np.uint32), np.empty(most), np.empty(256)
    for n in range(start, stop):
        own = slice(edges.indptr[n], edges.indptr[n + 1])
        degree = own.stop - own.start
        at, gain = at_all[:degree], gain_all[:degree]
        gather(n, words, edges.indices[own], edges.row[own], S.shape[1] + 1, differ, at)
        agree = find_gains(at, edges.pair[own], edges.coef, table, gain)
        for k in range(S.shape[1]):
            if degree < MIN_NEIGHBORS:
                sums[1 << k % 8] = sum_bit(differ, k, gain)
            elif k % 8 == 0:
                sum_byte(differ, k, gain, sums)
            z_field = 0.5 * (agree + sums[1 << k % 8])
            S[n, k] = z_field if is_set(words, n, k) else -z_field


@kernel
def _most_of_rows(start: int, stop: int, edges: Edges, most: AnyArray) -> float:
    """The largest sum over a point's edges of max |a|, which `most` has by row, for start..stop."""
    indptr, row = edges.indptr, edges.row
    largest = 0.0
    for n in range(start, stop):
        total = 0.0
        for e in range(indptr[n], indptr[n + 1]):
            total += most[row[e]]
        largest = max(largest, total)
    return largest


@kernel
def _most_of_pairs(start: int, stop: int, edges: Edges, differences: Differences) -> float:
    """Return the largest sum of max |a| as `_most_of_rows`, with coefficients for each pair."""
    indptr, row, coef = edges.indptr, edges.row, edges.coef
    largest = 0.0
    for n in range(start, stop):
        total = 0.0
        for e in range(indptr[n], indptr[n + 1]):
            most = 0.0
            for d in range(1, differences.table.shape[1] - 1):
                value = differences.table[row[e], d]
                for r in range(coef.shape[1]):
                    value += coef[edges.pair[e], r] * differences.basis[r, d]
                most = max(most, abs(value))
            total += most
        largest = max(largest, total)
    return largest
