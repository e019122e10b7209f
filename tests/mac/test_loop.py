import math
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

from auxhash.mac import affinity, hashfunctions, loop, zstep
from auxhash.mac.zstep import Penalty, Problem
from auxhash.model import encoding
from tests import oracle
from tests.conftest import SOAK


@pytest.fixture(scope="module")
def setting():
    """Three noisy classes that no linear function tells apart well."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 6)) + 1.2 * np.eye(3, 6)[y]
    A = affinity.from_labels(y, 10, 20, random_state=0)
    h = hashfunctions.linear().prepare(X, rng)
    return A, h.features(X), h


def run(setting, solver="descent", loss="ksh", b=8, seed=0, validate=None, free=True, **settings):
    A, F, h = setting
    problem = Problem(A, loss, b)
    Z = oracle.codes(np.random.default_rng(seed), A.n_points, b)
    algorithm = loop.MAC(zstep.get(solver), **settings)
    rng = np.random.default_rng(seed)
    return problem, list(algorithm.steps(problem, F, h, Z, rng, free, validate))


@pytest.mark.parametrize(
    ("penalty", "loss", "solver"),
    [
        (penalty, loss, solver)
        for penalty in ("quadratic", "augmented")
        for loss in ("ksh", "esplh", "bre", "ee", "hinge")
        for solver in ("cut", "quad", "descent")
        if SOAK
        or solver == "descent"
        or (penalty, loss) in (("quadratic", "hinge"), ("augmented", "ksh"))
    ],
)
def test_l_p_never_rises_within_one_mu(setting, solver, loss, penalty):
    problem, steps = run(setting, solver, loss, b=8 if SOAK else 4, penalty=penalty)
    for (_, before), (step, after) in pairwise(steps):
        at_start = problem.penalized(before.Z, Penalty(before.H, step.mu, before.multipliers))
        at_end = problem.penalized(after.Z, Penalty(after.H, step.mu, before.multipliers))
        np.testing.assert_allclose(step.penalized_loss, at_end, rtol=1e-9)
        assert at_end <= at_start * (1 + 1e-12)
        np.testing.assert_allclose(step.loss, problem.loss(after.H))
        np.testing.assert_allclose(step.free_loss, problem.loss(after.Z))
        assert step.violations == (after.Z != after.H).sum()
    final, _ = loop.lowest(steps)
    assert final.loss <= steps[0][0].loss


@pytest.mark.parametrize("solver", ["cut", "descent"])
def test_it_ends_with_the_codes_of_the_hash_function(setting, solver):
    problem, steps = run(setting, solver)
    step, state = steps[-1]
    assert step.violations == 0
    np.testing.assert_array_equal(state.Z, state.H)
    for (_, before), (_, after) in pairwise(steps[:-1]):
        assert (after.Z != before.H).any()  # only a Z step that ends at h(X) is the end
    assert step.mu <= problem.last_mu * 1.4
    for (a, _), (b, _) in pairwise(steps[1:]):
        np.testing.assert_allclose(b.mu, 1.4 * a.mu)


def test_the_path_is_discrete(setting):
    """The paper: (Z, h) changes at finitely many mu only. A fine schedule shows the plateaus."""
    _, steps = run(setting, b=3, mu=1e-3, alpha=1.01, max_iter=5000, max_sweeps=100)
    changed = [
        step.mu
        for (_, before), (step, after) in pairwise(steps)
        if (before.Z != after.Z).any() or (before.H != after.H).any()
    ]
    assert steps[-1][0].violations == 0
    assert 1 <= len(changed) < len(steps) / 4
    # Where nothing changed the loss did not either, and the last change is the end of the path.
    assert changed[-1] <= steps[-1][0].mu


@pytest.mark.parametrize("solver", ["cut", "descent"])
def test_once_the_codes_are_those_of_the_hash_function_nothing_changes(setting, solver):
    """Sec. 3.1: neither Z nor h, whatever mu is from there on."""
    problem, steps = run(setting, solver)
    step, state = steps[-1]
    for mu in (step.mu, 2 * step.mu, 100 * step.mu):
        rng = np.random.default_rng(1)
        after = zstep.z_step(problem, state.Z, Penalty(state.H, mu), zstep.get(solver), 5, rng)
        np.testing.assert_array_equal(after.Z, state.Z)
    _, H = hashfunctions.h_step(state.h, state.H, setting[1], state.Z, np.arange(8))
    np.testing.assert_array_equal(H, state.H)


def test_two_steps_are_the_first_step(setting):
    _, F, h = setting
    problem, steps = run(setting)
    step, state = steps[0]
    assert (step.iteration, step.mu, step.accepted) == (0, 0.0, True)
    # By hand: free codes, then one classifier a bit.
    Z = oracle.codes(np.random.default_rng(0), 150, 8)
    rng = np.random.default_rng(0)
    free = zstep.z_step(problem, Z, Penalty(Z, 0.0), zstep.get("descent"), 2, rng)
    np.testing.assert_array_equal(state.Z, free.Z)
    _, H = hashfunctions.h_step(h, None, F, free.Z, np.arange(8))
    np.testing.assert_array_equal(state.H, H)


@pytest.mark.parametrize("penalty", ["quadratic", "augmented"])
def test_the_plain_h_step_is_that_of_figure_1(setting, penalty):
    """Every classifier is fitted to its column of Z, whatever it misclassifies."""
    F = setting[1]
    _, steps = run(setting, penalty=penalty, h_step="plain")
    worse = 0
    for (_, before), (step, after) in pairwise(steps):
        if after.ended:
            continue
        weight = None
        if before.multipliers is not None:
            weight = np.abs(after.Z + before.multipliers / (2 * step.mu))
        changed = np.flatnonzero((after.trained != before.trained).any(axis=0))
        bits = changed if weight is None else np.arange(8)
        fitted = before.h.refit(F, after.trained, bits, weight)
        np.testing.assert_array_equal(after.H, hashfunctions.codes(fitted, F))
        cost = 1.0 if weight is None else weight
        wrong, was = ((cost * (H != after.trained)).sum(0) for H in (after.H, before.H))
        worse += (wrong > was).sum()
    assert worse  # which "monotone" would have kept as they were
    assert steps[-1][0].violations == 0  # it ends all the same


def test_iterating_the_two_step_method_changes_nothing(setting):
    """Sec. 3: its codes are learnt in isolation; those of MAC, given h, are others."""
    A, F, h = setting
    problem, Z = Problem(A, "ksh", 8), oracle.codes(np.random.default_rng(0), 150, 8)

    def two_step(h):
        return loop.MAC(zstep.get("cut")).two_step(problem, F, h, Z, np.random.default_rng(0), True)

    once = two_step(h).state
    again = two_step(once.h).state
    np.testing.assert_array_equal(again.Z, once.Z)
    np.testing.assert_array_equal(again.H, once.H)
    _, steps = run(setting, "cut")
    assert any((after.Z != before.Z).any() for (_, before), (_, after) in pairwise(steps))


def test_given_codes_take_the_place_of_the_free_ones(setting):
    _, steps = run(setting, free=False, seed=3)
    np.testing.assert_array_equal(steps[0][1].Z, oracle.codes(np.random.default_rng(3), 150, 8))


def test_a_step_that_lowers_the_score_is_skipped(setting):
    scores = iter([0.5, 0.6, 0.4, 0.6, 0.55, 0.7] + [0.1] * 50)
    _, steps = run(setting, validate=lambda h: next(scores))
    assert [s.accepted for s, _ in steps[:6]] == [True, True, False, True, False, True]
    accepted = [s.score for s, _ in steps if s.accepted]
    assert accepted == sorted(accepted)
    for (_, before), (step, after) in pairwise(steps):
        if not step.accepted:
            assert after is before
    best, _ = loop.lowest(steps)
    assert best.accepted


def test_automatic_mu_starts_where_codes_start_to_give_in(setting):
    problem, steps = run(setting, max_sweeps=50)
    first = steps[1][0].mu
    state = steps[0][1]
    alone = problem.flip_thresholds(state.Z, state.H)
    assert 0 < (alone < first).mean() < 0.05
    # With few iterations it starts higher, so that they still reach the end.
    _, short = run(setting, max_iter=4)
    assert short[-1][0].violations == 0
    assert short[1][0].mu * 1.4**3 >= problem.last_mu * 0.999


@pytest.mark.parametrize("solver", ["cut", "quad"])
def test_automatic_mu_allows_for_points_that_move_together(setting, solver):
    problem, steps = run(setting, solver)
    state = steps[0][1]
    alone = problem.flip_thresholds(state.Z, state.H)
    assert steps[1][0].mu <= np.quantile(alone[alone > 0], 0.01) + 1e-12


def test_unchanged_bits_are_not_trained_again(setting, monkeypatch):
    A, F, h = setting
    trained = []

    class Watch(hashfunctions.SVMHash):
        def refit(self, F, Z, bits, weight=None):
            trained.append(list(bits))
            return super().refit(F, Z, bits, weight)

    watched = Watch(h.map, h.C)
    _, steps = run((A, F, watched), b=12, mu=0.05)
    states = [state for _, state in steps]
    expected = [list(range(12))]
    for before, after in pairwise(states):
        bits = list(np.flatnonzero((after.Z != before.trained).any(0)))
        if bits and (after.Z != before.H).any():
            expected.append(bits)
    assert trained == expected
    assert any(len(bits) < 12 for bits in trained)


def test_the_augmented_lagrangian_by_its_formulas(setting):
    _, steps = run(setting, penalty="augmented", b=4)
    for (_, before), (step, after) in pairwise(steps):
        if (after.Z != before.H).any():
            gap = after.Z.astype(float) - after.H
            np.testing.assert_allclose(after.multipliers, before.multipliers + 2 * step.mu * gap)
            pull = 2 * step.mu * after.Z + before.multipliers
            np.testing.assert_array_equal(after.trained, np.where(pull >= 0, 1, -1))
    assert steps[-1][0].violations == 0


@pytest.mark.parametrize("solver", ["cut", "quad", "descent"])
def test_the_seconds_of_both_steps_are_part_of_the_whole(setting, solver):
    _, steps = run(setting, solver, mu=0.1, max_iter=60)
    for step, state in steps:
        assert step.z_seconds > 0
        assert step.z_seconds + step.h_seconds <= step.seconds
        assert (step.h_seconds == 0) == state.ended  # the last Z step is followed by no h step
    assert steps[-1][1].ended


@pytest.mark.parametrize("loss", ["ksh", "ee"])
def test_with_tol_it_ends_at_the_first_step_that_gains_too_little(setting, loss):
    _, result = run(setting, loss=loss)
    losses = [step.loss for step, _ in result]
    gains = [(before - after) / after for before, after in pairwise(losses)]
    for tol in (0.0, 1e-3, 5e-3, 1.0):
        _, steps = run(setting, loss=loss, tol=tol)
        last = next((i for i, gain in enumerate(gains, 1) if gain < tol), len(gains))
        assert [step.loss for step, _ in steps] == losses[: last + 1]
        assert [state.ended for _, state in steps] == [False] * last + [True]


def test_with_tol_a_step_that_validation_refuses_does_not_end_it(setting):
    scores = iter([0.5, 0.4, 0.4, *[0.5] * 100])
    _, steps = run(setting, tol=1.0, validate=lambda h: next(scores))
    assert [step.accepted for step, _ in steps] == [True, False, False, True]


def test_with_tol_it_goes_on_from_a_refused_step_as_it_would_have(setting):
    """The loss to be lowered is that of the state, not of the step that was refused."""
    A, F, h = setting
    problem = Problem(A, "ksh", 8)
    algorithm = loop.MAC(zstep.get("descent"), tol=1e-3)
    Z = oracle.codes(np.random.default_rng(0), A.n_points, 8)
    rng = np.random.default_rng(0)
    scores = iter([0.5, 0.4, *[0.5] * 100])
    path = algorithm.steps(problem, F, h, Z, rng, validate=lambda h: next(scores))
    _, (step, state) = next(path), next(path)
    assert not step.accepted
    again = algorithm.path(problem, F, step, state, deepcopy(rng), validate=lambda h: 0.5)
    ours, theirs = ([step.loss for step, _ in steps] for steps in (again, path))
    assert ours == theirs


def test_a_step_of_before_these_fields_is_read(setting):
    """Model files written before a step had them."""
    _, steps = run(setting, max_iter=1)
    coded, arrays = encoding.encode(steps[0][0])
    for name in ("z_seconds", "h_seconds", "skipped"):
        del coded["object"][1][name]
    result = encoding.decode(coded, arrays)
    assert result.loss == steps[0][0].loss
    assert math.isnan(result.z_seconds)
    assert math.isnan(result.h_seconds)
    assert result.skipped == 0


def test_updates_that_would_raise_l_p_are_counted(setting):
    def worse(bit, z, rng):
        """Flips the point that raises E most."""
        new = z.copy()
        new[np.argmin(z * (bit.field(z) + bit.c))] *= -1
        return new

    _, steps = run(setting, worse, b=4, mu=0.1, max_iter=3)
    assert all(step.skipped == 4 for step, _ in steps)  # every bit; then nothing changed
    for solver in ("cut", "descent"):  # these never raise it
        assert all(step.skipped == 0 for step, _ in run(setting, solver)[1])


def test_an_update_that_changes_nothing_is_not_counted(setting):
    _, steps = run(setting, lambda bit, z, rng: z, mu=0.1, max_iter=2)
    assert all(step.skipped == 0 for step, _ in steps)
