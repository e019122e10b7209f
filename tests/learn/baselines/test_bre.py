"""Binary reconstructive embedding: exact coordinate descent."""

import numpy as np
import pytest

from auxhash.codes import pack, sign, to_words
from auxhash.compute import context, threads
from auxhash.learn import baselines
from auxhash.learn.baselines.bre import best_weight
from auxhash.mac import affinity, losses, zstep


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((120, 5))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("supervised", [False, True])
def test_the_objective_never_rises(X, kernel, supervised):
    y = (X[:, 0] > 0).astype(int)
    hasher = baselines.BRE(
        8, kernel=kernel, supervised=supervised, n_kernel=6, tol=0.0, max_iter=5, random_state=0
    ).fit(X, y)
    assert (np.diff(hasher.objective_) <= 1e-9).all()
    assert hasher.objective_[-1] < 0.8 * hasher.objective_[0]
    assert hasher.n_iter_ == len(hasher.objective_) - 1
    assert (np.count_nonzero(hasher.weights_, axis=0) == 6).all()


def test_the_objective_is_the_reconstruction_error_of_the_codes(X):
    pairs = affinity.from_neighbors(X, 10, 30, values="distance", random_state=0)
    hasher = baselines.BRE(8, max_iter=3, random_state=0).fit(X, affinity=pairs)
    Z = hasher.transform(X)
    assert hasher.objective_[-1] == pytest.approx(losses.total(Z, pairs, "bre"))
    distance = (Z[pairs.i] != Z[pairs.j]).mean(axis=1)
    literal = (pairs.weight * np.square(distance - pairs.y)).sum()
    assert hasher.objective_[-1] == pytest.approx(literal)


def test_the_best_weight_is_that_of_a_search_over_all_intervals(X):
    rng = np.random.default_rng(1)
    pairs = affinity.from_neighbors(X, 10, 30, values="distance", random_state=0)
    Z = sign(rng.standard_normal((len(X), 4)))
    problem = zstep.Problem(pairs, "bre", 4)
    with context.using(n_jobs=1), threads.pool() as run:
        bit = problem.bit(to_words(pack(Z)), 2, np.zeros(len(X)), 0.0, run)
        for _ in range(5):
            rest, kernel = rng.standard_normal((2, len(X)))
            kernel[:3] = 0.0  # points that no weight moves
            events = np.sort(-rest[3:] / kernel[3:])
            between = np.concatenate(
                [[events[0] - 1], (events[1:] + events[:-1]) / 2, [events[-1] + 1]]
            )
            lowest = min(bit.energy(sign(rest + w * kernel)) for w in between)
            w = best_weight(bit, rest, kernel)
            assert bit.energy(sign(rest + w * kernel)) == pytest.approx(lowest)


def test_kernel_points_come_from_the_points_learnt_from(X):
    hasher = baselines.BRE(4, n_train=30, n_kernel=5, max_iter=1, random_state=0).fit(X)
    assert hasher.points_.shape == (30, 5)
    assert hasher.weights_.shape == (30, 4)
    assert all(
        (np.abs(X - hasher.mean_ - point).sum(axis=1) < 1e-12).any() for point in hasher.points_
    )


def test_an_affinity_without_pairs_among_the_drawn_points_is_refused(X):
    pairs = affinity.from_pairs([0], [1], [1.0], len(X))
    with pytest.raises(ValueError, match="no pairs among the n_train points"):
        baselines.BRE(4, n_train=5, random_state=0).fit(X, affinity=pairs)
