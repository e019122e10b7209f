"""TSH and FastHash: the same as TwoStepHash, or its stagewise form."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from auxhash import TwoStepHash
from auxhash.codes import pack, sign, to_words
from auxhash.compute import context, threads
from auxhash.learn import baselines
from auxhash.learn.baselines.stagewise import Stagewise
from auxhash.mac import affinity, hashfunctions, zstep


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    return rng.standard_normal((200, 6)) + 1.5 * np.eye(6)[y], y


@pytest.mark.parametrize(("name", "solver"), [("TSH", "quad"), ("FastHash", "cut")])
def test_the_two_step_form_is_two_step_hash(name, solver, data):
    common = {"n_bits": 6, "n_similar": 30, "n_dissimilar": 60, "random_state": 0}
    ours = getattr(baselines, name)(stagewise=False, **common).fit(*data)
    reference = TwoStepHash(z_step=solver, **common).fit(*data)
    np.testing.assert_array_equal(ours.codes_, reference.codes_)
    assert ours.loss_ == reference.loss_


@pytest.mark.parametrize("name", ["TSH", "FastHash"])
def test_the_loss_is_that_of_the_hash_functions_codes(name, data):
    X, y = data
    pairs = affinity.from_labels(y, 30, 60, random_state=0)
    hasher = getattr(baselines, name)(6, random_state=0).fit(X, affinity=pairs)
    problem = zstep.Problem(pairs, "ksh", 6)
    assert hasher.loss_ == pytest.approx(problem.loss(hasher.transform(X)))
    assert hasher.n_iter_ == 1


@pytest.mark.parametrize("solver", ["quad", "cut"])
def test_a_stage_lowers_the_loss_of_the_bits_so_far(solver, data):
    X, y = data
    pairs = affinity.from_labels(y, 30, 60, random_state=0)
    h = hashfunctions.linear().prepare(X, np.random.default_rng(0))
    F = h.features(X)
    seen = []

    class Watched:
        """Records the start and the result of each stage."""

        def __call__(self, bit, z, rng):
            new = zstep.get(solver)(bit, z, rng)
            seen.append((z.copy(), new, bit.energy(z), bit.energy(new)))
            return new

    algorithm = Stagewise(Watched(), max_sweeps=1)
    problem = zstep.Problem(pairs, "ksh", 5)
    start = np.ones((len(X), 5), np.int8)
    state = algorithm.two_step(problem, F, h, start, np.random.default_rng(0), True).state
    assert len(seen) == 5
    for k, (z, new, before, after) in enumerate(seen):
        assert (z == 1).all()  # codes start at all +1
        so_far = zstep.Problem(pairs, "ksh", k + 1)
        H = np.column_stack([state.H[:, :k], z])
        with context.using(n_jobs=1), threads.pool() as run:
            bit = so_far.bit(to_words(pack(H)), k, np.zeros(len(X)), 0.0, run)
            assert bit.energy(z) == pytest.approx(before)
        np.testing.assert_array_equal(state.Z[:, k], new if after < before else z)
    np.testing.assert_array_equal(state.H, sign(state.h.decision(F)))


@pytest.mark.parametrize("stagewise", [True, False])
def test_kernels_and_trees(stagewise, data):
    X, y = data
    loss = {}
    few = HistGradientBoostingClassifier(max_iter=20, max_depth=4, early_stopping=False)
    for name, h in (("linear", "linear"), ("rbf", "rbf"), ("trees", few)):
        hasher = baselines.FastHash(
            4, hash_function=h, stagewise=stagewise, n_similar=30, n_dissimilar=60, random_state=0
        )
        loss[name] = hasher.fit(X, y).loss_
    assert loss["rbf"] < loss["linear"]
    assert loss["trees"] < loss["linear"]


def test_trees_by_name_are_200_of_depth_4():
    trees = hashfunctions.get("trees", 1.0).classifier
    assert (trees.max_iter, trees.max_depth) == (200, 4)
