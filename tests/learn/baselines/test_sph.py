"""Spherical hashing: balanced, nearly independent bits."""

import numpy as np

from auxhash.learn import baselines
from auxhash.learn.baselines.sph import forces


def test_the_spheres_end_balanced_and_nearly_independent():
    X = np.random.default_rng(0).standard_normal((2000, 12))
    hasher = baselines.SPH(16, random_state=0).fit(X)
    inside = (hasher.transform(X) > 0).astype(float)
    assert hasher.converged_
    np.testing.assert_allclose(inside.mean(axis=0), 0.5, atol=1e-3)
    overlap = (inside.T @ inside)[np.triu_indices(16, 1)] / (len(X) / 4)
    assert np.abs(overlap - 1).mean() <= hasher.mean_tolerance
    assert overlap.std() <= hasher.spread_tolerance


def test_an_odd_number_of_points_is_balanced_too():
    X = np.random.default_rng(0).standard_normal((101, 5))
    inside = baselines.SPH(8, random_state=0).fit(X).transform(X) > 0
    assert (inside.sum(axis=0) == 50).all()


def test_the_iterations_are_capped():
    X = np.random.default_rng(0).standard_normal((50, 1))
    hasher = baselines.SPH(16, max_iter=3, random_state=0).fit(X)
    assert hasher.n_iter_ == 3
    assert not hasher.converged_


def test_forces_push_apart_what_overlaps_too_much():
    rng = np.random.default_rng(0)
    pivots, excess = rng.standard_normal((4, 3)), rng.standard_normal((4, 4))
    excess = excess + excess.T
    literal = np.zeros((4, 3))
    for i in range(4):
        for j in range(4):
            literal[i] += 0.5 * excess[i, j] * (pivots[i] - pivots[j]) / 4
    np.testing.assert_allclose(forces(pivots, excess), literal)
