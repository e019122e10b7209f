"""Memory of a problem: bytes per pair, and couplings only where a solver needs them."""

import numpy as np
import pytest

from auxhash.compute import context, threads
from auxhash.mac import affinity
from auxhash.mac.zstep import Penalty, Problem, get, graph, z_step
from auxhash.mac.zstep import problem as module
from tests import oracle


def real_pairs(n, count, rng):
    i, j = rng.integers(0, n, (2, count))
    return affinity.from_pairs(i[i != j], j[i != j], rng.normal(size=(i != j).sum()), n)


def test_descent_never_holds_the_couplings():
    A = affinity.from_labels(np.arange(2000) % 5, 20, 60, random_state=0)
    problem = Problem(A, "ksh", 8)
    rng = np.random.default_rng(0)
    Z, H = oracle.codes(rng, 2000, 8), oracle.codes(rng, 2000, 8)
    z_step(problem, Z, Penalty(H, 0.1), get("descent"), 2, rng)
    assert problem.last_mu > 0
    assert problem.first_mu_bound(Z, H) >= 0
    n_bytes = problem.nbytes - A.nbytes
    assert n_bytes < 2 * len(A) * 5 + 2000 * 30  # two edges of a number and a byte each
    z_step(problem, Z, Penalty(H, 0.1), get("cut"), 1, rng)
    assert problem.nbytes - A.nbytes == n_bytes + 2 * len(A) * 8


def test_real_values_are_held_once_per_pair():
    A = real_pairs(300, 5000, np.random.default_rng(0))
    problem = Problem(A, "ksh", 8)
    R = problem.table.coef.shape[1]
    assert R == 2
    n_bytes = problem.nbytes - A.nbytes
    assert n_bytes < len(A) * (8 * R + 1) + 2 * len(A) * 9 + 300 * 30


@pytest.mark.parametrize("loss", ["ksh", "esplh"])
def test_bit_after_bit_the_neighbour_lists_stay_the_same(loss, monkeypatch):
    """Real values have other coefficients for every number of bits; the lists are made once."""
    A = real_pairs(60, 900, np.random.default_rng(0))
    problem = Problem(A, loss, 6)
    expected = [Problem(A, loss, k + 1) for k in range(6)]
    monkeypatch.setattr(module, "graph_of", None)
    rng = np.random.default_rng(1)
    Z = oracle.codes(rng, 60, 6)
    words = module.codes_to_words(Z)
    with context.using(n_jobs=1), threads.pool() as run:
        for k in range(6):
            a = problem.first_bits(words, k, "absent", run).a
            plain = expected[k].bit(words & np.uint64((2 << k) - 1), k, np.zeros(60), 0.0, run)
            np.testing.assert_array_equal(a, plain.a)


@pytest.mark.parametrize("chunk", [1, 50, 1 << 18])
@pytest.mark.parametrize("real", [False, True])
def test_fields_and_the_last_mu_in_parts(chunk, real, monkeypatch):
    A = affinity.from_labels(np.arange(60) % 3, 5, 9, random_state=0)
    if real:
        A = real_pairs(60, 900, np.random.default_rng(0))
    full = Problem(A, "ksh", 5)
    monkeypatch.setattr(graph, "EDGES_PER_TASK", chunk)
    Z = oracle.codes(np.random.default_rng(1), 60, 5)
    with context.using(n_jobs=2):
        parts = Problem(A, "ksh", 5)
        np.testing.assert_array_equal(full.fields(Z), parts.fields(Z))
    np.testing.assert_array_equal(full.graph.indices, parts.graph.indices)
    assert full.last_mu == parts.last_mu
