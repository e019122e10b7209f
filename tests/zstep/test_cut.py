import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash import affinity
from auxhash.codes import pack, to_words
from auxhash.compute import threads
from auxhash.zstep import Penalty, Problem
from auxhash.zstep.cut import Cut, blocks, survey
from tests import oracle


def bit_problem(A, name, seed, mu=0.0, b=4):
    rng = np.random.default_rng(seed)
    Z, H = oracle.codes(rng, A.n_points, b), oracle.codes(rng, A.n_points, b)
    problem = Problem(A, oracle.ALL_LOSSES[name], b)
    with threads.pool(1) as run:
        return problem.bit(to_words(pack(Z)), 0, Penalty(H, mu).linear()[:, 0], mu, run), Z[:, 0]


def dense(bit):
    """A as a full matrix."""
    n = len(bit.c)
    A = np.zeros((n, n))
    for point in range(n):
        for e in range(bit.graph.indptr[point], bit.graph.indptr[point + 1]):
            A[point, bit.graph.indices[e]] += bit.a[e]
    return A


@given(
    st.integers(4, 14),
    st.sampled_from(["ksh", "esplh", "ee", "hinge"]),
    st.sampled_from([0.0, 0.05, 0.4]),
    st.integers(0, 2**32),
)
def test_a_submodular_block_is_minimised_exactly(n, name, mu, seed):
    """All pairs similar: one block, the whole problem. Brute force over all its codes."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    chosen = rng.random(len(i)) < 0.7
    chosen[0] = True
    A = affinity.from_pairs(i[chosen], j[chosen], np.ones(chosen.sum()), n)
    bit, z = bit_problem(A, name, seed, mu)
    found = Cut()(bit, z, rng)
    best = min(bit.energy(candidate) for candidate in oracle.all_codes(n))
    np.testing.assert_allclose(bit.energy(found), best, rtol=1e-8, atol=1e-8)


@given(oracle.affinities(), st.sampled_from(list(oracle.ALL_LOSSES)), st.integers(0, 2**32))
def test_blocks_are_submodular_whatever_the_affinities(A, name, seed):
    """Tested on the couplings: real distances and pairs with both signs break groups up."""
    bit, z = bit_problem(A, name, seed)
    block = blocks(bit, survey(bit, z)[2], np.random.default_rng(seed))
    coupling = dense(bit)
    for number in range(block.max() + 1):
        inside = block == number
        assert inside.any()
        assert (coupling[np.ix_(inside, inside)] <= 0).all()
        if A.groups is not None:
            assert len(np.unique(A.groups[inside])) == 1


def test_with_labels_a_block_is_a_class():
    y = np.arange(40) % 4
    A = affinity.from_labels(y, 5, 9, random_state=0)
    bit, z = bit_problem(A, "ksh", 0)
    block = blocks(bit, survey(bit, z)[2], np.random.default_rng(0))
    np.testing.assert_array_equal(block, y)


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_a_pass_is_block_wise_optimal(mu):
    """After a block is solved, no setting of that block alone is better: brute force."""
    y = np.repeat([0, 1, 2], 8)
    A = affinity.from_labels(y, 4, 9, random_state=0)
    bit, z = bit_problem(A, "ksh", 2, mu)

    class LastBlock:  # a generator whose permutation puts class 1 last
        def permutation(self, n):
            return np.array([0, 2, 1]) if n == 3 else np.arange(n)

    found = Cut()(bit, z, LastBlock())
    inside = np.flatnonzero(y == 1)
    for candidate in oracle.all_codes(8):
        other = found.copy()
        other[inside] = candidate
        assert bit.energy(other) >= bit.energy(found) - 1e-8


def test_a_pair_with_both_values_is_one_coupling():
    """+1 drawn twice outweighs -1 drawn once: the pair attracts, and one block holds it."""
    A = affinity.from_pairs([0, 0, 1, 1], [1, 1, 0, 2], [1, 1, -1, 1], 3)
    bit, z = bit_problem(A, "ksh", 0)
    block = blocks(bit, survey(bit, z)[2], np.random.default_rng(0))
    assert len(A) == 3
    assert len(np.unique(block)) == 1
