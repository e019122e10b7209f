"""The paper's methods, set as the paper sets them."""

import numpy as np
import pytest
from sklearn.base import clone

import auxhash
from auxhash import MACHash, TwoStepHash
from auxhash.learn import paper
from auxhash.mac import presets
from auxhash.mac.zstep import Cut, Quad

FEW_PAIRS = {"n_similar": 10, "n_dissimilar": 30, "n_jobs": 1}

y = np.arange(240) % 6
X = np.random.default_rng(0).normal(size=(240, 10)) + 1.3 * np.eye(6, 10)[y]


def test_what_the_paper_says():
    for make, solver, mu in (
        (paper.maccut, Cut("random"), 0.3),
        (paper.macquad, Quad("eigenvector", "sign", None), 0.01),
    ):
        result = make().get_params()
        assert type(make()) is MACHash
        assert (result["z_step"], result["mu"], result["alpha"]) == (solver, mu, 1.4)
        assert (result["n_similar"], result["n_dissimilar"]) == (100, 500)
        assert result["penalty"] == "quadratic"
        assert result["refine"] is None
        assert (result["h_step"], result["iterate"]) == ("plain", "last")
        assert result["validation"] is not None
        assert (result["loss"], result["hash_function"], result["n_bits"]) == ("ksh", "linear", 32)
    for make in (paper.cut, paper.quad):
        assert type(make()) is TwoStepHash


def test_arguments_go_where_they_belong():
    hasher = paper.maccut(16, "rbf", "esplh", order="random", random_state=3, n_jobs=2, max_iter=7)
    result = hasher.get_params()
    assert (result["n_bits"], result["hash_function"], result["loss"]) == (16, "rbf", "esplh")
    assert (result["z_step"], result["random_state"]) == (Cut("random"), 3)
    assert (result["n_jobs"], result["max_iter"]) == (2, 7)
    assert paper.quad(8, validation=None).validation is None
    with pytest.raises(ValueError, match="order must be one of random, fixed"):
        paper.cut(order="sorted")
    with pytest.raises(TypeError, match="colour"):
        paper.macquad(colour="red")


@pytest.mark.parametrize(
    ("estimator", "first"), [(paper.maccut, paper.cut), (paper.macquad, paper.quad)]
)
def test_mac_starts_where_two_steps_end_and_never_validates_below_it(estimator, first):
    hasher = estimator(8, random_state=0, **FEW_PAIRS).fit(X, y)
    two = first(8, random_state=0, **FEW_PAIRS).fit(X, y)
    assert two.loss_ == hasher.history_[0].loss
    h = hasher.two_step_
    np.testing.assert_array_equal(h.decision(h.features(X)), two.decision_function(X))
    scores = [step.score for step in hasher.history_ if step.accepted]
    assert scores == sorted(scores)
    assert hasher.history_[-1].mu > hasher.history_[1].mu
    assert hasher.n_iter_ < presets.MAX_ITER  # it stopped by itself


def test_they_are_saved_and_cloned(tmp_path):
    hasher = clone(paper.macquad(4, random_state=0, max_iter=2, **FEW_PAIRS)).fit(X, y)
    hasher.save(tmp_path / "model")
    loaded = auxhash.load(tmp_path / "model")
    assert loaded.z_step == presets.QUAD
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
