"""The estimator of continuous maps: what it learns, that new points land in it, its files."""

from functools import partial
from itertools import islice

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

import auxhash
from auxhash import MACMap, affinity
from auxhash.learn import regression
from auxhash.mac.hashfunctions import RadialBasis
from auxhash.mac.maps import Energy, attraction
from auxhash.model.modelfile import ModelFileError
from tests.conftest import SOAK

N = 150
QUICK = {"perplexity": 10.0, "alpha": 2.0, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:N], y[:N], X[N : 2 * N], y[N : 2 * N]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(regression, "N_FIRST_STEPS", 100)
    monkeypatch.setattr(regression, "N_STEPS", 10)


@pytest.fixture(scope="module")
def fitted(digits):
    return MACMap(mapping="linear", **QUICK).fit(digits[0])


def agreement(places, y, base, base_y):
    """Share of the five nearest on the map that are the same digit."""
    near = np.argsort(((places[:, None] - base) ** 2).sum(axis=2), axis=1)[:, :5]
    return (base_y[near] == y[:, None]).mean()


def sklearn_checks():
    """In soak all of each mapping; else every third, others of the next mapping."""
    step = 1 if SOAK else 3
    for at, mapping in enumerate(["linear", "rbf", "network"]):
        result = estimator_checks_generator(MACMap(mapping=mapping, max_iter=2))
        for estimator, check in islice(result, at % step, None, step):
            yield pytest.param(estimator, check, id=f"{mapping}-{check.func.__name__}")


@pytest.mark.parametrize(("estimator", "check"), list(sklearn_checks()))
@pytest.mark.filterwarnings("ignore")
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["tsne", "ee"])
@pytest.mark.parametrize("mapping", ["linear", "rbf"])
def test_learnt_together_it_is_better_than_fitted_afterwards(digits, loss, mapping, monkeypatch):
    """Even where the regression onto the direct embedding goes on for as many steps."""
    monkeypatch.setattr(regression, "RadialBasis", partial(RadialBasis, 40))  # too few for a fit
    X = digits[0]
    one = MACMap(loss=loss, mapping=mapping, **QUICK).fit(X)
    assert one.loss_ == min(step.loss for step in one.history_)
    energy = Energy(attraction.of_neighbors(X, 10.0), loss)
    Z = clone(one).set_params(max_iter=0).fit(X).embedding_
    regress = regression.regression(mapping, X, np.random.default_rng(0).spawn(3)[2])
    losses = [energy(regress(Z)[1])[0] for _ in one.history_]
    assert losses[0] == one.history_[0].loss
    assert one.loss_ < 0.99 * min(losses)


def test_new_points_land_among_their_kind(fitted, digits):
    X, y, new, new_y = digits
    places = fitted.transform(new)
    assert places.shape == (N, 2)
    assert agreement(places, new_y, fitted.embedding_, y) > 0.4  # by chance, 0.1
    assert np.abs(fitted.transform(X) - fitted.embedding_).max() < 0.1 * np.ptp(fitted.embedding_)


def test_a_path_that_ends_before_both_agree_is_warned_of(digits):
    one = MACMap(mapping="linear", max_iter=1, **QUICK)
    with pytest.warns(ConvergenceWarning, match=r"after max_iter=1 iterations.*tol=0\.02"):
        one.fit(digits[0])
    assert one.history_[-1].distance > one.tol


def test_labels_and_pairs_are_learnt_from(fitted, digits):
    X, y, _, _ = digits
    alone = fitted.transform(X)
    for learnt_from in ({"y": y}, {"affinity": affinity.from_labels(y, 10, 5, 0)}):
        places = MACMap(mapping="linear", **QUICK).fit(X, **learnt_from).transform(X)
        assert agreement(places, y, places, y) > agreement(alone, y, alone, y)


@pytest.mark.parametrize("mapping", ["linear", "rbf", "network"])
@pytest.mark.filterwarnings("ignore:Z and F:sklearn.exceptions.ConvergenceWarning")
def test_the_same_seed_gives_the_same_bytes_on_any_threads(mapping, digits, tmp_path):
    files = []
    for n_jobs in (1, 3):
        one = MACMap(mapping=mapping, max_iter=3, n_jobs=n_jobs, **QUICK).fit(digits[0])
        one.set_params(n_jobs=None).save(tmp_path / "map.safetensors")
        files.append((tmp_path / "map.safetensors").read_bytes())
    assert files[0] == files[1]


def test_a_saved_map_is_the_same_map(fitted, digits, tmp_path):
    fitted.save(tmp_path / "map.safetensors")
    loaded = auxhash.load(tmp_path / "map.safetensors")
    assert isinstance(loaded, MACMap)
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.transform(digits[2]) == fitted.transform(digits[2])).all()
    assert (loaded.embedding_ == fitted.embedding_).all()
    assert [step.loss for step in loaded.history_] == [step.loss for step in fitted.history_]
    assert loaded.get_feature_names_out().tolist() == ["macmap0", "macmap1"]
    loaded.save(tmp_path / "again.safetensors")
    first, second = ((tmp_path / f"{n}.safetensors").read_bytes() for n in ("map", "again"))
    assert first == second


def test_a_map_with_parts_that_do_not_fit_is_refused(fitted, tmp_path):
    wrong = clone(fitted).set_params(n_components=3)
    vars(wrong).update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
    wrong.save(tmp_path / "map.safetensors")
    with pytest.raises(ModelFileError, match="not those of 3 components"):
        auxhash.load(tmp_path / "map.safetensors")


def test_a_map_is_no_model_that_makes_codes(fitted, tmp_path):
    from auxhash.learn import encoder

    fitted.save(tmp_path / "map.safetensors")
    with pytest.raises(ValueError, match=r"holds a map \(MACMap\), which makes no codes"):
        encoder.load(tmp_path / "map.safetensors")


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.filterwarnings("ignore:Z and F:sklearn.exceptions.ConvergenceWarning")
def test_other_dimensions(width, digits):
    one = MACMap(n_components=width, mapping="linear", max_iter=2, **QUICK).fit(digits[0][:60])
    assert one.transform(digits[2]).shape == (N, width)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"loss": "umap"}, "loss must be one of ee, tsne"),
        ({"mapping": "trees"}, "mapping must be one of linear, rbf, network"),
        ({"perplexity": 0.5}, "perplexity must be a number of at least 1"),
        ({"mu": 0}, 'mu must be a number above 0 or "auto"'),
        ({"alpha": 1}, "alpha must be a number above 1"),
        ({"max_iter": -1}, "max_iter must be a whole number of at least 0"),
        ({"tol": -1}, "tol must be a number of at least 0"),
    ],
)
def test_wrong_parameters_are_refused_before_any_work(wrong, message):
    with pytest.raises(ValueError, match=message):
        MACMap(**wrong).fit("nothing")


@pytest.mark.skipif(not SOAK, reason="make soak runs it")
def test_a_network_learnt_together_is_better_as_well(digits, monkeypatch):
    monkeypatch.setattr(regression, "N_FIRST_STEPS", 2000)
    monkeypatch.setattr(regression, "N_STEPS", 200)
    one = MACMap(mapping="network", **QUICK).fit(digits[0])
    assert one.loss_ < one.history_[0].loss
