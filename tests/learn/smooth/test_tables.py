"""Codes and tables against their definition, written plainly, and against finite differences."""

from types import SimpleNamespace

import numpy as np
import pytest

from auxhash.codes import pack
from auxhash.compute import context, threads
from auxhash.compute.device import CPU
from auxhash.learn.smooth.similar import Partners
from auxhash.learn.smooth.tables import (
    Asker,
    TableRank,
    codebook_of_bits,
    hamming_weight,
    packed,
)
from auxhash.mac.hashfunctions import Scaled, SVMHash
from auxhash.model.tables import TableFunction
from tests.learn.smooth.test_rank import soft_rank_loss

N, B, DIMS, BATCH, SAMPLE = 30, 11, 12, 5, 9


def similar_points():
    table = np.random.default_rng(1).permuted(np.tile(np.arange(N - 1), (N, 1)), axis=1)[:, :3]
    return table + (table >= np.arange(N)[:, None])


def log_rank(asked, Y, rows, known):
    """Mean log(R + 1/n) of vectors: `asked` for the points i, Y for their j and the sample."""
    total = 0.0
    for i in range(BATCH):
        nearer = [
            0.0
            if m == rows[i] or m in known[rows[i]]
            else 1 / (1 + np.exp(asked[i] @ (Y[i] - Y[BATCH + at])))
            for at, m in enumerate(rows[2 * BATCH :])
        ]
        total += np.log(np.mean(nearer) + 1 / N)
    return total / BATCH


def vectors_of(codes, C):
    rows = codes.astype(int) + 256 * np.arange(codes.shape[1])
    return C[rows].sum(axis=1)


class Kept:
    """A query's side whose outputs are numbers in a table, and which keeps the gradients."""

    def __init__(self, A):
        self.A, self.parameters, self.rates, self.device = A, [], (), CPU

    def begin(self, rng):
        pass

    def batch(self, rows, run):
        return self.A[rows]

    def outputs(self, rows, run):
        return self.A[rows]

    def gradients(self, rows, pull, run):
        self.pull = pull.copy()
        return []


@pytest.fixture(params=[(B,), (8, B)])
def learning(request):
    rng = np.random.default_rng(0)
    asked = rng.normal(size=(N, DIMS)).astype(np.float32)
    asker = Asker(Kept(asked), rng.normal(size=(512, DIMS)).astype(np.float32) / 2)
    table = similar_points()
    rank = TableRank(
        Partners.of_table(table), asker, 10, 0.001, BATCH, SAMPLE, prefixes=request.param
    )
    rows = next(rank.batches(np.random.default_rng(2)))
    return SimpleNamespace(
        rank=rank, asker=asker, rows=rows, known=[set(row) for row in table.tolist()]
    )


def pulled(learning, A, s=0.7):
    """The pull of the outputs A, and the gradient by the codebook before it moved."""
    slopes = []
    learning.asker.adam.follow = lambda gradients, moment: slopes.extend(gradients)
    with context.using(n_jobs=2), threads.pool() as run:
        pull = learning.rank.pull(
            lambda rows: A[rows].astype(np.float32), learning.rows, np.float32(s), run
        )
    return pull, slopes[-1]


def test_the_query_s_side_gets_the_gradient_of_the_definition(learning):
    A = np.random.default_rng(3).normal(size=(N, B))
    _, slope = pulled(learning, A)
    codes, rows = packed(A[learning.rows[BATCH:]]), learning.rows
    asked = learning.asker.smooth.A[rows[:BATCH]].astype(np.float64)
    C = learning.asker.codebook.astype(np.float64)

    def loss(asked, C):
        parts = (codes[:, : -(-b // 8)] for b in learning.rank.prefixes)
        return sum(log_rank(asked, vectors_of(part, C), rows, learning.known) for part in parts)

    used = np.unique(codes.astype(int) + 256 * np.arange(codes.shape[1]))
    for at in [(0, 0), (3, 5), (4, 11)]:
        step = np.zeros_like(asked)
        step[at] = 1e-4
        slope_there = (loss(asked + step, C) - loss(asked - step, C)) / 2e-4
        assert learning.asker.smooth.pull[at] == pytest.approx(slope_there, abs=1e-5)
    for at in [(used[0], 0), (used[-1], 7), (used[len(used) // 2], 3)]:
        step = np.zeros_like(C)
        step[at] = 1e-4
        slope_there = (loss(asked, C + step) - loss(asked, C - step)) / 2e-4
        assert slope[at] == pytest.approx(slope_there, abs=1e-5)
    unused = np.setdiff1d(np.arange(512), used)
    assert not slope[unused].any()


def test_a_bit_is_pulled_by_what_its_flip_would_change(learning):
    """To first order in Y, and beside the pull of the rank by Hamming distance."""
    A = np.random.default_rng(3).normal(size=(N, B))
    s, rows = 0.7, learning.rows
    pull, _ = pulled(learning, A, s)
    U = np.tanh(s * A[rows])

    def hamming(A):
        parts = (A[:, :b] for b in learning.rank.prefixes)
        return sum(soft_rank_loss(part, rows, BATCH, learning.known, N, s) for part in parts)

    asked = learning.asker.smooth.A[rows[:BATCH]].astype(np.float64)
    C = learning.asker.codebook.astype(np.float64)

    def by_tables(Y):
        return log_rank(asked, Y, rows, learning.known)

    for at, bit in [(BATCH, 0), (BATCH + 2, 10), (2 * BATCH + 3, 4), (len(rows) - 1, 9)]:
        step = np.zeros_like(A)
        step[rows[at], bit] = 1e-5
        where = [row for row in range(len(rows)) if rows[row] == rows[at]]
        by_hamming = (hamming(A + step) - hamming(A - step)) / 2e-5
        flip = 0.0
        for b in learning.rank.prefixes:
            if bit >= b:
                continue
            codes = packed(A[rows[BATCH:]])[:, : -(-b // 8)]
            Y = vectors_of(codes, C)
            for place in (row - BATCH for row in where if row >= BATCH):
                upper, lower = codes.copy(), codes.copy()
                upper[place, bit // 8] |= 1 << bit % 8
                lower[place, bit // 8] &= 255 - (1 << bit % 8)
                way = np.zeros_like(Y)
                way[place] = (vectors_of(upper, C) - vectors_of(lower, C))[place]
                flip += (by_tables(Y + 1e-5 * way) - by_tables(Y - 1e-5 * way)) / 2e-5
        expected = hamming_weight(B) * by_hamming + flip / 2 * s * (1 - U[at, bit] ** 2)
        assert sum(pull[row, bit] for row in where) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("n_bits", [5, 8, 19])
def test_tables_begin_as_distances_of_outputs(n_bits):
    rng = np.random.default_rng(4)
    W = rng.normal(size=(7, n_bits + 2))
    X, Z = rng.normal(size=(6, 6)), np.where(rng.normal(size=(20, n_bits)) < 0, -1, 1)
    C = codebook_of_bits(n_bits, n_bits + 2, rng)
    C[:, n_bits:] = 0
    h = SVMHash(Scaled(), W=W).prepare(X, rng)
    function = TableFunction(h, C.reshape(-1, 256, n_bits + 2))
    function.check_read()
    tables, codes = function.tables(X), pack(Z.astype(np.int8))
    distances = sum(tables[:, g][:, codes[:, g]] for g in range(codes.shape[1]))
    outputs = h.outputs(X)[:, :n_bits]
    np.testing.assert_allclose(distances, -outputs @ Z.T, atol=1e-4)


def test_a_function_is_rounded_to_half_precision_if_its_numbers_allow_it():
    rng = np.random.default_rng(5)
    X, rows = rng.normal(size=(6, 6)), rng.normal(size=(512, 4)).astype(np.float32)
    h = SVMHash(Scaled(), W=rng.normal(size=(7, 4))).prepare(X, rng)
    plain = TableFunction(h, rows.reshape(2, 256, 4))
    rounded = TableFunction.of(h, rows)
    for array in (rounded.vector.W, rounded.codebook):
        np.testing.assert_array_equal(array.astype(np.float16), array)
    np.testing.assert_allclose(rounded.tables(X), plain.tables(X), rtol=0, atol=0.05)
    for factor in (1e6, 1e-9):  # beyond half precision
        np.testing.assert_array_equal(
            TableFunction.of(h, rows * factor).codebook, (rows * factor).reshape(2, 256, 4)
        )


def test_a_state_goes_on_where_it_was(learning):
    A = np.random.default_rng(3).normal(size=(N, B))

    def moved(times):
        with context.using(n_jobs=1), threads.pool() as run:
            for _ in range(times):
                learning.rank.pull(
                    lambda rows: A[rows].astype(np.float32), learning.rows, np.float32(1), run
                )
        return learning.asker.codebook.copy()

    moved(2)
    state = [part.copy() for part in learning.rank.state()]
    expected = moved(3)
    learning.rank.restore(state)
    np.testing.assert_array_equal(moved(3), expected)
