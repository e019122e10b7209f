import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.mac import affinity
from auxhash.mac.zstep import Penalty, Problem, quad, z_step
from auxhash.mac.zstep.quad import Quad, Relaxed, smallest_eigenvector
from tests import oracle
from tests.mac.zstep.test_cut import bit_problem, dense


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 2.0]))
def test_the_eigenvector_against_a_dense_solver(seed, mu):
    A = affinity.from_labels(np.arange(30) % 3, 5, 10, random_state=seed % 1000)
    bit, _ = bit_problem(A, "ksh", seed, mu)
    start = np.clip(smallest_eigenvector(bit, np.random.default_rng(seed)), -1, 1)
    B = np.block([[dense(bit) / 4, bit.c[:, None] / 2], [bit.c[None] / 2, np.zeros((1, 1))]])
    values, vectors = np.linalg.eigh(B)
    # The rough vector's quotient is close to the smallest eigenvalue, by the spread of them all.
    alpha = vectors[:, 0] * np.sqrt(31) / np.linalg.norm(vectors[:, 0])
    alpha *= np.sign(alpha[-1] if abs(alpha[-1]) > 1e-9 else alpha[np.abs(alpha) > 1e-9][0])
    if values[1] - values[0] > 0.05 * (values[-1] - values[0]):
        clipped = np.clip(alpha[:-1], -1, 1)
        assert np.abs(clipped - start).mean() < 0.1


def test_the_border_decides_the_sign():
    """With a linear term the last entry is made +1, so that the start leans towards h."""
    A = affinity.from_labels(np.arange(30) % 3, 5, 10, random_state=0)
    bit, _ = bit_problem(A, "ksh", 0, mu=5.0)
    start = smallest_eigenvector(bit, np.random.default_rng(0))
    assert bit.c @ start < 0


@pytest.mark.parametrize("seed", range(4))
def test_of_two_eigenvalues_close_together_the_smallest_is_found(seed):
    A = affinity.from_labels(np.arange(150) % 10, 10, 50, random_state=seed)
    bit, _ = bit_problem(A, "ksh", seed, b=1)
    values, vectors = np.linalg.eigh(dense(bit) / 4)
    assert values[1] < 0.95 * values[0] < 0
    result = smallest_eigenvector(bit, np.random.default_rng(seed))
    assert np.abs(vectors[:, 0] @ result) > 0.99 * np.linalg.norm(result)


@pytest.mark.parametrize("loss", ["ksh", "esplh"])
def test_the_relaxed_problem_with_mu_is_convex_for_large_mu(loss):
    """Sec. 3.3: the term on mu adds mu I to A, which is not positive definite itself."""
    A = affinity.from_labels(np.arange(60) % 3, 5, 10, random_state=0)
    last_mu = Problem(A, loss, 5).last_mu  # past which nothing changes

    def curvatures(mu):
        relaxed = Relaxed(bit_problem(A, loss, 0, mu)[0])
        slope = relaxed(np.zeros(60))[1]
        return np.linalg.eigvalsh([relaxed(z)[1] - slope for z in np.eye(60)])

    assert curvatures(0.0)[0] < 0
    assert curvatures(last_mu)[0] > 0


def test_it_finds_the_global_optimum_of_an_easy_problem():
    """Two classes, nearly all pairs: the best bit tells the classes apart."""
    y = np.repeat([0, 1], 10)
    A = affinity.from_labels(y, 9, 10, random_state=0)
    bit, z = bit_problem(A, "ksh", 3, b=1)
    solution = Quad()(bit, z, np.random.default_rng(0))
    np.testing.assert_array_equal(np.abs(solution @ (2 * y - 1)), 20)


def test_a_problem_without_couplings():
    """A loss that the bit does not touch: nothing to gain, and nothing breaks."""
    A = affinity.from_pairs([0, 1], [1, 2], [1.0, -1.0], 5)
    Z = oracle.codes(np.random.default_rng(0), 5, 3)
    with pytest.warns(UserWarning, match="does not depend on the distance d"):
        problem = Problem(A, lambda d, y, b: np.ones_like(d * y), 3)
    result = z_step(problem, Z, Penalty(Z, 0.0), Quad(), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(result.Z, Z)


@given(st.sampled_from(sorted(oracle.ALL_LOSSES)), st.integers(0, 2**32))
def test_the_relaxed_problem_and_its_gradient(name, seed):
    rng, mu = np.random.default_rng(seed), 0.7
    A = affinity.from_labels(np.arange(30) % 3, 5, 10, random_state=seed % 1000)
    bit, z = bit_problem(A, name, seed, mu)
    # On the corners the relaxed problem is E plus the constant mu n.
    np.testing.assert_allclose(Relaxed(bit)(z.astype(float))[0], bit.energy(z) + mu * len(z))
    z, step = rng.uniform(-1, 1, len(z)), rng.normal(size=len(z))
    value, gradient = Relaxed(bit)(z)
    np.testing.assert_allclose(value, z @ dense(bit) @ z / 4 + bit.c @ z + mu * z @ z, atol=1e-9)
    slope = (Relaxed(bit)(z + 1e-6 * step)[0] - Relaxed(bit)(z - 1e-6 * step)[0]) / 2e-6
    np.testing.assert_allclose(gradient @ step, slope, rtol=1e-4, atol=1e-5)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 30), min_size=1, max_size=12))
def test_the_relaxed_problem_is_the_same_however_z_got_there(seed, moves):
    """From each z to the next so many entries move: none, few (S is changed), all (computed)."""
    rng = np.random.default_rng(seed)
    A = affinity.from_labels(np.arange(30) % 3, 5, 10, random_state=seed % 1000)
    bit, _ = bit_problem(A, "ksh", seed, 0.3)
    z, followed = rng.uniform(-1, 1, 30), Relaxed(bit)
    for n_moved in moves:
        z[rng.permutation(30)[:n_moved]] = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], n_moved)
        value, gradient = followed(z)
        alone = Relaxed(bit)(z)
        np.testing.assert_allclose(value, alone[0], atol=1e-12)
        np.testing.assert_allclose(gradient, alone[1], atol=1e-12)


def test_rounding_does_not_add_up(monkeypatch):
    """S is computed anew after so many changes, and is then what it is from nothing."""
    monkeypatch.setattr(quad, "MAX_CHANGES", 5)
    A = affinity.from_labels(np.arange(30) % 3, 5, 10, random_state=0)
    bit, _ = bit_problem(A, "ksh", 0, 0.3)
    rng, followed = np.random.default_rng(0), Relaxed(bit)
    z, alike = rng.uniform(-1, 1, 30), []
    for _ in range(13):
        z[rng.integers(30)] = rng.uniform(-1, 1)
        alike.append(np.array_equal(followed(z)[1], Relaxed(bit)(z)[1]))
    assert [at for at in (0, 6, 12) if not alike[at]] == []
    assert not all(alike)


class StoppedError(Exception):
    """Raised with the point at which L-BFGS-B starts."""


def first_point(solver, bit, z, monkeypatch):
    def minimize(function, start, **settings):
        raise StoppedError(start, settings["options"])

    monkeypatch.setattr(quad, "minimize", minimize)
    with pytest.raises(StoppedError) as stopped:
        solver(bit, z, np.random.default_rng(0))
    monkeypatch.undo()
    return stopped.value.args


@pytest.mark.parametrize("mu", [0.0, 0.2])
def test_where_the_relaxed_problem_starts(mu, monkeypatch):
    A = affinity.from_labels(np.arange(30) % 3, 5, 10, random_state=0)
    bit, z = bit_problem(A, "ksh", 0, mu)
    vector = smallest_eigenvector(bit, np.random.default_rng(0))
    clipped, signs = np.clip(vector, -1, 1), np.where(vector >= 0, 1, -1)
    assert (np.abs(vector) > 1).any()  # else clipping would do nothing
    for solver, expected, options in [
        (Quad(), z if mu else clipped, {"maxiter": 30}),
        (Quad(truncate="sign", max_iter=7), z if mu else signs, {"maxiter": 7}),
        (Quad("eigenvector"), clipped, {"maxiter": 30}),
        (Quad("eigenvector", "sign", None), signs, {}),
    ]:
        start, options_used = first_point(solver, bit, z, monkeypatch)
        np.testing.assert_array_equal(start, expected)
        assert options_used == options


def test_to_convergence_the_relaxed_problem_is_at_a_stationary_point(monkeypatch):
    """The projected gradient is zero there, and is not after one iteration."""
    A = affinity.from_labels(np.arange(200) % 4, 20, 40, random_state=0)
    bit, z = bit_problem(A, "ksh", 1, mu=0.05, b=8)
    result = []
    minimize = quad.minimize

    def watched(*args, **settings):
        result.append(minimize(*args, **settings))
        return result[-1]

    monkeypatch.setattr(quad, "minimize", watched)
    for most in (1, None):
        Quad("eigenvector", "sign", most)(bit, z, np.random.default_rng(0))
    left = [np.abs(np.clip(f.x - Relaxed(bit)(f.x)[1], -1, 1) - f.x).max() for f in result]
    assert left[1] < 1e-3 < left[0]


def test_settings_of_quad():
    assert Quad() == Quad("auto", "clip", 30) != Quad(max_iter=None)
    assert repr(Quad()) == "Quad(start='auto', truncate='clip', max_iter=30)"
    for wrong, message in [
        ({"start": "codes"}, "start must be one of auto, eigenvector; got 'codes'"),
        ({"truncate": None}, "truncate must be one of clip, sign; got None"),
        ({"max_iter": 0}, r"max_iter must be a whole number of at least 1 or None \(until"),
    ]:
        with pytest.raises(ValueError, match=message):
            Quad(**wrong)
