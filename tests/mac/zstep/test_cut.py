import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.codes import pack, to_words
from auxhash.compute import context, threads
from auxhash.mac import affinity
from auxhash.mac.zstep import Penalty, Problem
from auxhash.mac.zstep.cut import Cut, blocks, solve_block, survey
from tests import oracle


def bit_problem(A, name, seed, mu=0.0, b=4):
    rng = np.random.default_rng(seed)
    Z, H = oracle.codes(rng, A.n_points, b), oracle.codes(rng, A.n_points, b)
    problem = Problem(A, oracle.ALL_LOSSES[name], b)
    with context.using(n_jobs=1), threads.pool() as run:
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
    solution = Cut()(bit, z, rng)
    best = min(bit.energy(candidate) for candidate in oracle.all_codes(n))
    np.testing.assert_allclose(bit.energy(solution), best, rtol=1e-8, atol=1e-8)


@given(
    oracle.affinities(),
    st.sampled_from(list(oracle.ALL_LOSSES)),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_blocks_are_submodular_whatever_the_affinities(A, name, seed, overlap):
    """Tested on the couplings: real distances and pairs with both signs break groups up."""
    bit, _ = bit_problem(A, name, seed)
    groups = blocks(bit, survey(bit)[1], overlap, np.random.default_rng(seed).permutation)
    coupling = dense(bit)
    for members in groups:
        assert len(members)
        assert (np.diff(members) > 0).all()
        assert (coupling[np.ix_(members, members)] <= 0).all()
        if A.groups is not None:
            assert len(np.unique(A.groups[members])) == 1
    every = np.concatenate(groups)
    np.testing.assert_array_equal(np.unique(every), np.arange(A.n_points))
    assert overlap or len(every) == A.n_points


@given(oracle.affinities(), st.sampled_from(list(oracle.ALL_LOSSES)), st.integers(0, 2**32))
def test_blocks_that_overlap_lack_only_points_that_a_member_repels(A, name, seed):
    bit, _ = bit_problem(A, name, seed)
    repels = survey(bit)[1]
    plain, result = (
        blocks(bit, repels, overlap, np.random.default_rng(seed).permutation)
        for overlap in (False, True)
    )
    groups = np.zeros(A.n_points) if A.groups is None else A.groups
    coupling = dense(bit)
    for small, members in zip(plain, result, strict=True):
        assert set(small) <= set(members)
        for point in set(np.flatnonzero(groups == groups[members[0]])) - set(members):
            assert (coupling[point, members] > 0).any()
    if not repels:
        assert all(len(a) == len(b) for a, b in zip(plain, result, strict=True))


@given(
    oracle.affinities(),
    st.sampled_from(list(oracle.ALL_LOSSES)),
    st.sampled_from([0.0, 0.1]),
    st.integers(0, 2**32),
)
def test_every_block_is_minimised_exactly_and_none_raises_the_energy(A, name, mu, seed):
    """Block after block against brute force over its codes, blocks overlapping or not."""
    bit, start = bit_problem(A, name, seed, mu)
    for overlap in (False, True):
        slack, repels = survey(bit)
        place, z = np.full(len(start), -1, np.int32), start.copy()
        for members in blocks(bit, repels, overlap, np.arange):
            others = np.repeat(z[None], 2 ** len(members), axis=0)
            others[:, members] = oracle.all_codes(len(members))
            solve_block(bit, members, place, z, np.empty(0) if repels else slack)
            assert (place == -1).all()
            best = min(bit.energy(other) for other in others)
            np.testing.assert_allclose(bit.energy(z), best, rtol=1e-8, atol=1e-8)
        np.testing.assert_array_equal(z, Cut("fixed", overlap)(bit, start, None))


def test_a_fixed_order_draws_nothing_and_a_random_one_matters():
    A = affinity.from_labels(np.arange(60) % 5, 5, 20, random_state=0)
    bit, z = bit_problem(A, "ksh", 0)
    fixed = Cut("fixed")(bit, z, None)

    class Classes:  # a generator whose permutation is that of the classes, sorted
        permutation = staticmethod(np.arange)

    np.testing.assert_array_equal(fixed, Cut()(bit, z, Classes()))
    result = {Cut()(bit, z, np.random.default_rng(seed)).tobytes() for seed in range(9)}
    assert len(result) > 1


def test_settings_of_cut():
    assert Cut() == Cut("random", overlap=False) != Cut("fixed")
    assert repr(Cut("fixed")) == "Cut(order='fixed', overlap=False)"
    with pytest.raises(ValueError, match="order must be one of random, fixed; got 'sorted'"):
        Cut("sorted")
    with pytest.raises(ValueError, match="overlap must be True or False, got 1"):
        Cut(overlap=1)


def test_with_labels_a_block_is_a_class():
    y = np.arange(40) % 4
    A = affinity.from_labels(y, 5, 9, random_state=0)
    bit, _ = bit_problem(A, "ksh", 0)
    groups = blocks(bit, survey(bit)[1], False, np.arange)
    for label, members in enumerate(groups):
        np.testing.assert_array_equal(members, np.flatnonzero(y == label))


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_a_pass_is_block_wise_optimal(mu):
    """After a block is solved, no setting of that block alone is better: brute force."""
    y = np.repeat([0, 1, 2], 8)
    A = affinity.from_labels(y, 4, 9, random_state=0)
    bit, z = bit_problem(A, "ksh", 2, mu)

    class LastBlock:  # a generator whose permutation puts class 1 last
        def permutation(self, n):
            return np.array([0, 2, 1]) if n == 3 else np.arange(n)

    solution = Cut()(bit, z, LastBlock())
    inside = np.flatnonzero(y == 1)
    for candidate in oracle.all_codes(8):
        other = solution.copy()
        other[inside] = candidate
        assert bit.energy(other) >= bit.energy(solution) - 1e-8


def test_a_pair_with_both_values_is_one_coupling():
    """+1 drawn twice outweighs -1 drawn once: the pair attracts, and one block holds it."""
    A = affinity.from_pairs([0, 0, 1, 1], [1, 1, 0, 2], [1, 1, -1, 1], 3)
    bit, _ = bit_problem(A, "ksh", 0)
    assert len(A) == 3
    assert len(blocks(bit, survey(bit)[1], False, np.arange)) == 1
