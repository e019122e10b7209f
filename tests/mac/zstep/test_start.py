"""The first codes, bit after bit, against plain definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash import MACHash, TwoStepHash
from auxhash.codes import codes_to_words
from auxhash.compute import context, threads
from auxhash.mac import affinity, hashfunctions, loop, zstep
from auxhash.mac.zstep import Cut, Penalty, Problem, Quad, first_codes, get, z_step
from tests import oracle

BITWISE = ["cut", "quad", "descent", "descent-bits"]


def loss_so_far(Z, A, name, start, b):
    """The loss of codes Z of the first bits of b, one pair after another."""
    function = oracle.ALL_LOSSES[name]
    y = A.read_as(getattr(function, "reads", "similarity"))
    total = 0.0
    for p in range(len(A)):
        s = float(Z[A.i[p]].astype(int) @ Z[A.j[p]])
        n_bits = b if start == "zeros" else Z.shape[1]
        total += A.weight[p] * float(function(np.array((n_bits - s) / 2), np.array(y[p]), n_bits))
    return total


@pytest.mark.parametrize(("start", "later"), [("bitwise", "absent"), ("zeros", "zero")])
@given(
    A=oracle.affinities(),
    name=st.sampled_from(list(oracle.ALL_LOSSES)),
    shape=st.sampled_from([(1, 0), (5, 0), (5, 2), (5, 4), (70, 0), (70, 63), (70, 64), (70, 69)]),
    seed=st.integers(0, 2**32),
)
def test_the_energy_is_the_loss_of_the_bits_so_far(start, later, A, name, shape, seed):
    b, k = shape
    rng = np.random.default_rng(seed)
    Z = oracle.codes(rng, A.n_points, b)
    problem = Problem(A, oracle.ALL_LOSSES[name], b)
    a, z = oracle.codes(rng, 2, A.n_points)
    before = Z[:, :k]
    with context.using(n_jobs=1), threads.pool() as run:
        bit = problem.first_bits(codes_to_words(Z), k, later, run)
        difference = bit.energy(a) - bit.energy(z)
    expected = [
        loss_so_far(np.column_stack([before, codes]), A, name, start, b) for codes in (a, z)
    ]
    size = 1e-9 * max(1.0, *map(abs, expected))
    np.testing.assert_allclose(difference, expected[0] - expected[1], atol=size)


def test_real_values_of_y_take_a_basis_of_their_own():
    """More distinct y than a table has rows: the loss is factorised anew for every bit."""
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(30, 1)
    A = affinity.from_pairs(i, j, rng.uniform(-1, 1, len(i)), 30)
    problem = Problem(A, "esplh", 6)
    assert problem.table.coef.shape[1] > 0
    Z = oracle.codes(rng, 30, 6)
    with context.using(n_jobs=1), threads.pool() as run:
        for start, later in (("bitwise", "absent"), ("zeros", "zero")):
            bit = problem.first_bits(codes_to_words(Z), 3, later, run)
            ends = [oracle.codes(rng, 30, 1)[:, 0] for _ in range(2)]
            difference = bit.energy(ends[0]) - bit.energy(ends[1])
            a, b = (loss_so_far(np.column_stack([Z[:, :3], z]), A, "esplh", start, 6) for z in ends)
            assert difference == pytest.approx(a - b, abs=1e-9)


@pytest.mark.parametrize("solver", BITWISE)
@pytest.mark.parametrize("start", ["bitwise", "zeros"])
@pytest.mark.parametrize("name", ["ksh", "esplh", "hinge"])
def test_no_bit_raises_the_loss_of_the_bits_so_far(solver, start, name):
    A = affinity.from_labels(np.arange(60) % 4, 6, 15, random_state=0)
    Z = first_codes(Problem(A, name, 5), start, get(solver), np.random.default_rng(0))
    assert Z.dtype == np.int8
    for k in range(5):
        plus = np.column_stack([Z[:, :k], np.ones(60, np.int8)])
        result, from_plus = (loss_so_far(c, A, name, start, 5) for c in (Z[:, : k + 1], plus))
        assert result <= from_plus
        if k == 0 and solver in ("cut", "quad"):  # no single flip need gain anything
            assert result < from_plus


def test_ksh_with_later_bits_zero_by_hand():
    """s/b with the full b: the couplings of bit k are 2 w / b (s'/b - y), s' of the bits before."""
    A = affinity.from_labels(np.arange(30) % 3, 4, 8, random_state=0)
    Z = oracle.codes(np.random.default_rng(0), 30, 8)
    with context.using(n_jobs=1), threads.pool() as run:
        bit = Problem(A, "ksh", 8).first_bits(codes_to_words(Z), 5, "zero", run)
    graph = bit.graph
    pairs = {(i, j): (w, y) for i, j, w, y in zip(A.i, A.j, A.weight, A.y, strict=True)}
    for n in range(30):
        for e in range(graph.indptr[n], graph.indptr[n + 1]):
            m = int(graph.indices[e])
            w, y = pairs[min(n, m), max(n, m)]
            s = int(Z[n, :5].astype(int) @ Z[m, :5])
            # loss(d') - loss(d' + 1) = ((s' + 1)/b - y)^2 - ((s' - 1)/b - y)^2
            assert bit.a[e] == pytest.approx(w * 4 / 8 * (s / 8 - y))


@pytest.mark.parametrize("solver", BITWISE)
@pytest.mark.parametrize("start", ["bitwise", "zeros"])
def test_the_first_pass_counts_as_a_sweep(solver, start):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 6)) + 1.2 * np.eye(3, 6)[y]
    problem = Problem(affinity.from_labels(y, 8, 16, random_state=0), "ksh", 4)
    h = hashfunctions.linear().prepare(X, rng)
    F = h.features(X)
    for max_sweeps in (1, 3):
        draws = np.random.default_rng(1)
        Z = first_codes(problem, start, get(solver), draws)
        if max_sweeps > 1:
            Z = z_step(problem, Z, Penalty(Z, 0.0), get(solver), max_sweeps - 1, draws).Z
        algorithm = loop.MAC(get(solver), max_sweeps=max_sweeps, start=start)
        start_codes = oracle.codes(rng, 90, 4)
        step, state = next(algorithm.steps(problem, F, h, start_codes, np.random.default_rng(1)))
        np.testing.assert_array_equal(state.Z, Z)
        assert step.free_loss == pytest.approx(problem.loss(Z))


@pytest.mark.parametrize("solver", [Cut("fixed"), Quad("eigenvector", "sign", None), "descent"])
def test_estimators_start_there_on_any_number_of_threads(solver):
    y = np.arange(200) % 10
    X = np.random.default_rng(0).normal(size=(200, 12)) + 1.2 * np.eye(10, 12)[y]
    settings = {"n_bits": 7, "z_step": solver, "n_similar": 10, "n_dissimilar": 20}
    result = {}
    for start in zstep.STARTS:
        one, two = (
            MACHash(
                **settings, start=start, refine=None, max_iter=3, random_state=0, n_jobs=n_jobs
            ).fit(X, y)
            for n_jobs in (1, 2)
        )
        np.testing.assert_array_equal(one.codes_, two.codes_)
        two_step = TwoStepHash(**settings, start=start, random_state=0).fit(X, y)
        assert two_step.loss_ == one.history_[0].loss
        result[start] = two_step.codes_.tobytes()
    assert len(set(result.values())) == 3


def test_what_cannot_start_bit_after_bit():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3

    class Sweeps:
        def sweep(self, problem, words, c, run, rng):
            return 0

    small = {"n_bits": 3, "n_similar": 3, "n_dissimilar": 5, "refine": None}
    MACHash(**small, z_step=Sweeps()).fit(X, y)
    for settings, message in [
        ({"start": "bits"}, "start must be one of random, bitwise, zeros; got 'bits'"),
        ({"start": "zeros", "z_step": Sweeps()}, "start='zeros' needs a z_step that can be called"),
        ({"start": "zeros", "init": np.ones((30, 3))}, "init takes the place of the codes that"),
    ]:
        with pytest.raises(ValueError, match=message):
            MACHash(**small, **settings).fit(X, y)
