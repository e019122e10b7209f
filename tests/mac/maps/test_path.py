"""The path of MAC for continuous maps: what neither step may raise, where it ends."""

from itertools import pairwise

import numpy as np
import pytest

from auxhash.learn.regression import regression
from auxhash.mac import affinity
from auxhash.mac.maps import LOSSES, Energy, Path, attraction, lowest, principal, z_step

N, ROUNDS = 60, 4


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 6)) + 4 * rng.standard_normal((3, 6))[np.arange(N) % 3]


@pytest.fixture(scope="module")
def start():
    return 0.01 * np.random.default_rng(1).standard_normal((N, 2))


def small(monkeypatch):
    monkeypatch.setattr("auxhash.learn.regression.N_FIRST_STEPS", 30)
    monkeypatch.setattr("auxhash.learn.regression.N_STEPS", 10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("mapping", ["linear", "rbf", "network"])
def test_no_step_raises_the_penalized_loss_at_one_mu(X, start, loss, mapping, monkeypatch):
    small(monkeypatch)
    energy, mu = Energy(attraction.of_neighbors(X, 5.0), loss), 0.1
    regress = regression(mapping, X, np.random.default_rng(2))
    Z = z_step(energy, start, start, 0.0, 50)[0]

    def penalized(Z, F):
        return energy(Z)[0] + mu / N * np.square(Z - F).sum()

    F = regress(Z)[1]
    values = [penalized(Z, F)]
    for _ in range(ROUNDS):
        Z, free_loss = z_step(energy, Z, F, mu, 5)
        assert free_loss == energy(Z)[0]
        values.append(penalized(Z, F))
        F = regress(Z)[1]
        values.append(penalized(Z, F))
    assert all(b <= a + 1e-12 for a, b in pairwise(values))
    assert values[-1] < values[0]


def test_a_linear_regression_that_goes_on_ends_at_least_squares(X, start):
    regress = regression("linear", X, np.random.default_rng(2))
    for _ in range(30):
        mapping, F = regress(start)
    extended = np.column_stack([X, np.ones(N)])
    best = extended @ np.linalg.lstsq(extended, start, rcond=None)[0]
    assert np.allclose(F, best, atol=1e-6 * np.abs(start).max())
    assert np.allclose(mapping.decision(mapping.features(X)), F)


def test_the_path_ends_where_both_agree(X, start):
    energy = Energy(attraction.of_neighbors(X, 5.0), "tsne")
    path = Path(first_steps=200, tol=0.05)
    every = list(path.steps(energy, regression("linear", X, np.random.default_rng(2)), start))
    steps = [step for step, _ in every]
    assert all(step.distance > 0.05 for step in steps[:-1])
    assert steps[-1].distance <= 0.05
    assert [step.iteration for step in steps] == list(range(len(steps)))
    ratios = [b.mu / a.mu for a, b in pairwise(steps[1:])]
    assert np.allclose(ratios, path.alpha)
    for step, state in every:
        assert step.loss == energy(state.F)[0]
        assert step.free_loss == energy(state.Z)[0]
        apart = np.square(state.Z - state.F).sum()
        assert step.penalized_loss == pytest.approx(step.free_loss + step.mu / N * apart)
    assert lowest(every)[0].loss == min(step.loss for step in steps)


def test_groups_that_nothing_joins_stay_in_sight(start):
    """Else the map of two classes would grow with every step."""
    pairs = affinity.from_pairs(*np.triu_indices(N // 2, 1), np.ones(435), N)
    energy = Energy(attraction.of_pairs(pairs), "tsne")
    sizes = [np.abs(z_step(energy, start, start, 0.0, n)[0]).max() for n in (300, 3000)]
    assert sizes[1] < 300


def test_auto_begins_where_the_penalty_is_one_percent(X, start):
    energy = Energy(attraction.of_neighbors(X, 5.0), "ee")
    regress = regression("linear", X, np.random.default_rng(2))
    (zero, at_zero), (first, _) = list(Path(max_iter=1).steps(energy, regress, start))
    apart = np.square(at_zero.Z - at_zero.F).sum()
    assert first.mu / N * apart == pytest.approx(0.01 * zero.free_loss)


@pytest.mark.parametrize("n_components", [1, 2, 8])
def test_it_starts_at_principal_coordinates(X, n_components):
    Z = principal(X, n_components, np.random.default_rng(3))
    centred = X - X.mean(axis=0)
    places = centred @ np.linalg.svd(centred)[2].T
    assert Z.shape == (N, n_components)
    assert Z[:, 0].std() == pytest.approx(0.01, rel=0.05)
    for result, expected in zip(Z.T[:2], places.T, strict=False):
        assert abs(np.corrcoef(result, expected)[0, 1]) > 0.999
    assert (np.ptp(Z, axis=0) > 0).all()


def test_a_start_takes_many_features():
    """Whose covariances would fill eighty gigabytes."""
    wide = np.zeros((20, 100_000))
    wide[:, :2] = 5, 3
    assert np.abs(principal(wide, 2, np.random.default_rng(4))).max() < 1e-3  # equal points
    wide[:, 7] = np.arange(20)
    Z = principal(wide, 2, np.random.default_rng(4))
    assert abs(np.corrcoef(Z[:, 0], wide[:, 7])[0, 1]) > 0.999
