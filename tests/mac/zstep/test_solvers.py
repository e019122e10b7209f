"""One contract for every solver, a user's own included."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.compute import context
from auxhash.mac import affinity
from auxhash.mac.zstep import SOLVERS, Cut, Penalty, Problem, Quad, get, z_step
from auxhash.mac.zstep import problem as module
from tests import oracle
from tests.conftest import SOAK


def flip_one(bit, z, rng):
    """A user's solver: often wrong, so that the skip rule has work to do."""
    new = z.copy()
    new[rng.integers(len(z))] *= -1
    return new


PAPERS = Quad("eigenvector", "sign", None)
ALL_SOLVERS = [*SOLVERS, Cut("fixed"), Cut(overlap=True), PAPERS, flip_one]


def setting(A, name, b, seed):
    rng = np.random.default_rng(seed)
    Z, H = oracle.codes(rng, A.n_points, b), oracle.codes(rng, A.n_points, b)
    return Problem(A, oracle.ALL_LOSSES[name], b), Z, H


@pytest.mark.parametrize("solver", ALL_SOLVERS, ids=lambda s: getattr(s, "__name__", str(s)))
@given(
    A=oracle.affinities(),
    name=st.sampled_from(list(oracle.ALL_LOSSES)),
    mu=st.sampled_from([0.0, 0.05, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_never_raises_l_p_and_reports_it(solver, A, name, mu, seed):
    problem, Z, H = setting(A, name, 4, seed)
    result = z_step(problem, Z, Penalty(H, mu), get(solver), 3, np.random.default_rng(seed))
    before = oracle.penalized(Z, A, name, H, mu)
    after = oracle.penalized(result.Z, A, name, H, mu)
    np.testing.assert_allclose(result.value, after, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.free_loss, oracle.loss(result.Z, A, name), atol=1e-9)
    assert after <= before + 1e-9 * abs(before)
    assert result.converged or result.sweeps == 3
    assert result.Z.dtype == np.int8


@pytest.mark.parametrize("solver", ["descent", "descent-bits"])
@given(
    A=oracle.affinities(),
    name=st.sampled_from(list(oracle.ALL_LOSSES)),
    mu=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 2**32),
)
def test_no_flip_is_left_to_descent(solver, A, name, mu, seed):
    problem, Z, H = setting(A, name, 3, seed)
    result = z_step(problem, Z, Penalty(H, mu), get(solver), 1000, np.random.default_rng(0))
    assert result.converged
    for n, k in itertools.product(range(A.n_points), range(3)):
        flipped = result.Z.copy()
        flipped[n, k] *= -1
        assert oracle.penalized(flipped, A, name, H, mu) >= result.value - 1e-8


@pytest.mark.parametrize("b", [7, 20, 70])
@pytest.mark.parametrize(("name", "real"), [("ksh", False), ("hinge", False), ("ee", True)])
def test_a_sweep_of_descent_is_one_flip_after_another(b, name, real):
    """Points with few neighbours and many, whose bits are summed in different ways."""
    A = oracle.uneven_pairs(200, 12000, real, b)
    problem, Z, H = setting(A, name, b, 0)
    penalty = Penalty(H, problem.last_mu / 20)
    result = z_step(problem, Z, penalty, get("descent"), 1, np.random.default_rng(0)).Z
    c, edges = penalty.linear(), problem.edges
    for n in np.concatenate(problem.graph.memo["colours"]):
        for k in range(b):
            S = np.empty((200, b))
            module._fields(n, n + 1, problem.to_words(Z), edges, problem.gains, S)
            if Z[n, k] * (S[n, k] + c[n, k]) > module.ENERGY_TOLERANCE * problem.last_mu:
                Z[n, k] *= -1
    np.testing.assert_array_equal(result, Z)


@pytest.mark.parametrize("solver", ["cut", "quad", "descent", "descent-bits"])
def test_same_codes_on_any_number_of_threads(solver):
    y = np.arange(900) % 5
    A = affinity.from_labels(y, 20, 40, random_state=0)
    rng = np.random.default_rng(0)
    Z, H = oracle.codes(rng, 900, 9), oracle.codes(rng, 900, 9)
    result = []
    for n_jobs in (1, 2, 4):
        with context.using(n_jobs=n_jobs):
            problem, seeded = Problem(A, "ksh", 9), np.random.default_rng(1)
            result.append(z_step(problem, Z, Penalty(H, 0.3), get(solver), 2, seeded).Z)
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result[0], result[2])


@pytest.mark.parametrize("b", [1, 7, 8, 9, 63, 64, 65, *([128, 256] if SOAK else [])])
@pytest.mark.parametrize("solver", ["cut", "quad", "descent"])
def test_any_number_of_bits(solver, b):
    A = affinity.from_labels(np.arange(30) % 3, 4, 8, random_state=0)
    problem, Z, H = setting(A, "ksh", b, 0)
    result = z_step(problem, Z, Penalty(H, 0.01), get(solver), 2, np.random.default_rng(0))
    assert result.value < oracle.penalized(Z, A, "ksh", H, 0.01)
    np.testing.assert_allclose(result.value, oracle.penalized(result.Z, A, "ksh", H, 0.01))


@pytest.mark.parametrize("solver", ["cut", "descent", "descent-bits"])
@pytest.mark.parametrize("name", ["ksh", "esplh", "hinge", "ee"])
def test_once_the_codes_are_the_hash_function_s_nothing_changes(solver, name):
    """The paper's stopping criterion: a converged Z step that ends with Z = h(X) is the end."""
    A = affinity.from_labels(np.arange(60) % 3, 5, 10, random_state=0)
    problem, Z, H = setting(A, name, 6, 1)
    mu, result = 0.01, None
    while result is None or not (result.converged and np.array_equal(result.Z, H)):
        result = z_step(problem, Z, Penalty(H, mu), get(solver), 50, np.random.default_rng(0))
        Z, mu = result.Z, mu * 1.2
    for factor in (1, 1.01, 2, 100):
        again = z_step(
            problem, H, Penalty(H, mu / 1.2 * factor), get(solver), 50, np.random.default_rng(5)
        )
        np.testing.assert_array_equal(again.Z, H)


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_are_plain_values(name):
    """They go into parameters of estimators, which are cloned and sent to other processes."""
    pickle.loads(pickle.dumps(SOLVERS[name]()))


@pytest.mark.parametrize(
    ("solver", "error", "says"),
    [
        ("cutt", ValueError, "did you mean 'cut'"),
        ("nothing", ValueError, "z_step must be one of"),
        (3, TypeError, "z_step must be a name or a solver"),
    ],
)
def test_what_is_no_solver(solver, error, says):
    with pytest.raises(error, match=says):
        get(solver)


def test_a_solver_must_return_codes():
    A = affinity.from_labels(np.arange(12) % 2, 2, 3, random_state=0)
    problem, Z, H = setting(A, "ksh", 2, 0)
    for wrong in (lambda bit, z, rng: z[:3], lambda bit, z, rng: 0 * z):
        with pytest.raises(ValueError, match="must return 12 values"):
            z_step(problem, Z, Penalty(H, 0.1), wrong, 1, np.random.default_rng(0))
