"""The constants: every energy of the bit problem against L_P computed from scratch."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.codes import pack, to_words
from auxhash.compute import context, threads
from auxhash.mac import affinity
from auxhash.mac.zstep import Penalty, Problem, get, graph, z_step
from auxhash.mac.zstep.gains import MIN_NEIGHBORS, MIN_NEIGHBORS_AFTER_FLIP
from tests import oracle

LOSSES = list(oracle.ALL_LOSSES)


@given(
    oracle.affinities(),
    st.sampled_from(LOSSES),
    st.integers(1, 6),
    st.floats(0, 5),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_change_of_the_bit_problem_is_the_change_of_l_p(A, name, b, mu, augmented, seed):
    rng = np.random.default_rng(seed)
    Z, H = oracle.codes(rng, A.n_points, b), oracle.codes(rng, A.n_points, b)
    multipliers = rng.normal(size=Z.shape) if augmented else None
    problem = Problem(A, oracle.ALL_LOSSES[name], b)
    penalty = Penalty(H, mu, multipliers)
    before = oracle.penalized(Z, A, name, H, mu, multipliers)
    np.testing.assert_allclose(problem.penalized(Z, penalty), before, rtol=1e-9)
    for k in range(b):
        with context.using(n_jobs=1), threads.pool() as run:
            bit = problem.bit(to_words(pack(Z)), k, penalty.linear()[:, k], mu, run)
        z = Z[:, k].astype(float)
        g = bit.field(z) + bit.c
        new = oracle.codes(rng, A.n_points, 1)[:, 0]
        changed = Z.copy()
        changed[:, k] = new
        after = oracle.penalized(changed, A, name, H, mu, multipliers)
        np.testing.assert_allclose(bit.energy(new) - bit.energy(z), after - before, atol=1e-8)
        n = int(rng.integers(A.n_points))  # one flip: -2 z_n g_n
        changed = Z.copy()
        changed[n, k] *= -1
        after = oracle.penalized(changed, A, name, H, mu, multipliers)
        np.testing.assert_allclose(-2 * z[n] * g[n], after - before, atol=1e-8)


@given(oracle.affinities(), st.sampled_from(LOSSES), st.integers(0, 2**32))
def test_past_the_last_mu_every_code_gives_in(A, name, seed):
    rng = np.random.default_rng(seed)
    Z, H = oracle.codes(rng, A.n_points, 4), oracle.codes(rng, A.n_points, 4)
    problem = Problem(A, oracle.ALL_LOSSES[name], 4)
    alone = problem.flip_thresholds(Z, H)
    assert len(alone) == (Z != H).sum()
    assert (alone <= problem.last_mu * (1 + 1e-9)).all()


def test_flip_thresholds_are_where_a_single_flip_starts_to_pay():
    A = affinity.from_labels(np.arange(20) % 3, 4, 8, random_state=0)
    rng = np.random.default_rng(1)
    Z, H = oracle.codes(rng, 20, 3), oracle.codes(rng, 20, 3)
    alone = Problem(A, "ksh", 3).flip_thresholds(Z, H)
    for (n, k), mu in zip(np.argwhere(Z != H), alone, strict=True):
        flipped = Z.copy()
        flipped[n, k] *= -1
        for at, pays in ((mu - 0.01, False), (mu + 0.01, True)):
            gain = oracle.penalized(flipped, A, "ksh", H, at) - oracle.penalized(Z, A, "ksh", H, at)
            assert (gain < 0) == pays


@pytest.mark.parametrize("b", [1, 7, 8, 9, 63, 64, 65, 128, 256])
def test_any_number_of_bits(b):
    A = affinity.from_labels(np.arange(12) % 2, 2, 3, random_state=0)
    Z = oracle.codes(np.random.default_rng(b), 12, b)
    problem = Problem(A, "esplh", b)
    np.testing.assert_allclose(problem.loss(Z), oracle.loss(Z, A, "esplh"))
    flipped = Z.copy()
    flipped[3, b - 1] *= -1
    change = -2 * Z[3, b - 1] * problem.fields(Z)[3, b - 1]
    np.testing.assert_allclose(
        change, oracle.loss(flipped, A, "esplh") - problem.loss(Z), atol=1e-9
    )


@pytest.mark.parametrize("b", [1, 8, 31, 64, 65, 130, 256])
@pytest.mark.parametrize("name", ["ksh", "bre", "ee", "own"])
@pytest.mark.parametrize("real", [False, True])
def test_fields_of_all_bits_are_those_of_each_bit(b, name, real):
    A = oracle.uneven_pairs(200, 12000, real, b)
    problem = Problem(A, oracle.ALL_LOSSES[name], b)
    degrees = np.diff(problem.graph.indptr)
    assert degrees.min() == 0
    assert degrees.max() > MIN_NEIGHBORS_AFTER_FLIP > MIN_NEIGHBORS > degrees[degrees > 0].min()
    assert problem.table.coef.shape[1] > 0 or not real
    Z = oracle.codes(np.random.default_rng(b), 200, b)
    words, none = problem.to_words(Z), np.zeros(200)
    with context.using(n_jobs=1), threads.pool() as run:
        each = [problem.bit(words, k, none, 0.0, run).field(Z[:, k]) for k in range(b)]
    with context.using(n_jobs=2):
        fields = problem.fields(Z)
    np.testing.assert_allclose(fields, np.transpose(each), atol=1e-11 * problem.last_mu)


@given(
    oracle.affinities(most_points=8),
    st.sampled_from(list(oracle.ALL_LOSSES)),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_below_the_bound_for_the_first_mu_no_flip_lowers_l_p(A, name, settled, seed):
    """Brute force over all flips of one entry, right below the bound and right above it."""
    rng = np.random.default_rng(seed)
    Z, H = oracle.codes(rng, A.n_points, 3), oracle.codes(rng, A.n_points, 3)
    problem = Problem(A, oracle.ALL_LOSSES[name], 3)
    if settled:
        Z = z_step(problem, Z, Penalty(Z, 0.0), get("descent"), 1000, rng).Z
    bound = problem.first_mu_bound(Z, H)

    def least(mu):
        """The lowest change of L_P by a flip, and the size of the numbers it comes from."""
        before = oracle.penalized(Z, A, name, H, mu)
        after = []
        for n, k in itertools.product(range(A.n_points), range(3)):
            flipped = Z.copy()
            flipped[n, k] *= -1
            after.append(oracle.penalized(flipped, A, name, H, mu))
        return min(after) - before, 1e-9 * (1 + abs(before))

    if bound > 0:
        change, size = least(0.999 * min(bound, 1e3))
        assert change >= -size
    if np.isfinite(bound):
        change, size = least(1.001 * bound + 1e-6)
        assert change < size
    assert not settled or bound >= 0
    assert (bound == np.inf) <= np.array_equal(Z, H)


def test_the_bound_for_the_first_mu_is_where_descent_starts_to_move():
    A = affinity.from_labels(np.arange(60) % 4, 6, 15, random_state=0)
    rng = np.random.default_rng(0)
    problem, H = Problem(A, "ksh", 5), oracle.codes(rng, 60, 5)
    Z = z_step(problem, H, Penalty(H, 0.0), get("descent"), 100, rng).Z
    bound = problem.first_mu_bound(Z, H)
    assert 0 < bound == problem.flip_thresholds(Z, H).min()
    for factor, changes in ((0.999, False), (1.001, True)):
        result = z_step(problem, Z, Penalty(H, factor * bound), get("descent"), 1, rng)
        assert (result.Z != Z).any() == changes
    assert problem.first_mu_bound(Z, Z) == np.inf
    assert problem.first_mu_bound(oracle.codes(rng, 60, 5), H) == 0  # not at an optimum


@pytest.mark.parametrize("loss", ["ksh", "own"])
def test_neighbour_lists_do_not_depend_on_threads(loss, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    A = affinity.from_labels(y, 5, 9, random_state=0)
    if loss == "own":  # values of their own for each pair
        A = affinity.from_pairs(A.i, A.j, rng.uniform(-1, 1, len(A)), 40)
    function = "ksh" if loss == "ksh" else lambda d, y, b: (y * b - b + 2 * d) ** 2 * y
    with context.using(n_jobs=1):
        alone = Problem(A, function, 8)
    monkeypatch.setattr(graph, "EDGES_PER_TASK", 7)
    monkeypatch.setattr(graph, "POINTS_PER_BLOCK", 3)
    for n_jobs in (2, 3, 50):
        with context.using(n_jobs=n_jobs):
            shared = Problem(A, function, 8)
        for ours, theirs in zip(alone.edges, shared.edges, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("groups", [None, np.arange(30) // 7, (np.arange(30) // 7) << 32])
@pytest.mark.parametrize("block", [1, 5, 4096])
def test_neighbour_lists_of_pairs_in_any_order(groups, block, monkeypatch):
    """Against lists by hand; the coefficients of a pair stay with it."""
    monkeypatch.setattr(graph, "POINTS_PER_BLOCK", block)
    rng = np.random.default_rng(1)
    ends = np.stack(np.triu_indices(30, 1))
    kept = rng.permutation(ends.shape[1])[:400]
    for order in (kept, np.sort(kept)):
        i, j = ends[:, order]
        A = affinity.Affinity(i, j, rng.uniform(-1, 1, 400), np.ones(400), 30, groups=groups)
        edges = Problem(A, "ksh", 4).edges
        assert edges.coef.shape[1]
        for n in range(30):
            own = slice(edges.indptr[n], edges.indptr[n + 1])
            inside = slice(edges.indptr[n], edges.within[n])
            pairs = np.flatnonzero((i == n) | (j == n))
            partners = i[pairs] + j[pairs] - n
            same = np.ones(len(pairs), bool) if groups is None else groups[partners] == groups[n]
            np.testing.assert_array_equal(edges.indices[inside], np.sort(partners[same]))
            result = edges.indices[own].argsort()
            np.testing.assert_array_equal(edges.indices[own][result], np.sort(partners))
            np.testing.assert_array_equal(edges.pair[own][result], pairs[partners.argsort()])


@pytest.mark.parametrize("count", range(10))
def test_a_weighted_sum_over_any_number_of_edges(count):
    rng = np.random.default_rng(count)
    a, z, partners = rng.normal(size=count), rng.normal(size=50), rng.integers(0, 50, count)
    partners = partners.astype(np.uint32)
    np.testing.assert_allclose(graph.weigh(a, partners, z), a @ z[partners], atol=1e-12)
    signs = np.sign(z).astype(np.int8)
    np.testing.assert_allclose(graph.weigh(a, partners, signs), a @ signs[partners], atol=1e-12)


def test_couplings_of_a_pair_with_several_values_are_in_its_first_edge():
    """The pair 0, 1 has three values, 0, 2 has one and 1, 2 has two."""
    A = affinity.from_pairs([0, 0, 0, 0, 1, 1], [1, 1, 1, 2, 2, 2], [1, 0.5, -1, 1, 0.3, -0.2], 3)
    problem = Problem(A, "ksh", 4)
    Z = oracle.codes(np.random.default_rng(0), 3, 4)
    with context.using(n_jobs=1), threads.pool() as run:
        bit = problem.bit(to_words(pack(Z)), 0, np.zeros(3), 0.0, run)
    np.testing.assert_array_equal(bit.graph.indices, [1, 1, 1, 2, 0, 0, 0, 2, 2, 0, 1, 1])
    assert bit.a[[0, 3, 4, 7, 9, 10]].all()
    assert not bit.a[[1, 2, 5, 6, 8, 11]].any()
    for e, reverse in ((0, 4), (3, 9), (7, 10)):
        assert bit.a[e] == bit.a[reverse]
