"""A network's width and what it leaves out: set for the points, and by the user."""

from dataclasses import replace

import numpy as np
import pytest

from auxhash.codes import sign
from auxhash.mac.hashfunctions import NetworkHash, get, network
from auxhash.mac.hashfunctions import step as h_steps
from auxhash.model.encoding import decode, encode

WIDE = network(n_hidden=300, dropout=0.5, noise=0.1)


@pytest.fixture
def points(rng):
    X = rng.normal(size=(80, 5))
    return X, sign(np.column_stack([X[:, 0], X[:, 1] * X[:, 2], X[:, 3]]))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def fitted(h, points):
    X, Z = points
    h = h.prepare(X, np.random.default_rng(1))
    F = h.features(X)
    return h.refit(F, Z, np.arange(Z.shape[1])), F


@pytest.mark.parametrize(
    ("n", "suited"), [(50, (512, 0.5, 0.5)), (3000, (1024, 0.5, 0.5)), (9000, (2048, 0.7, 0.3))]
)
def test_a_layer_suits_the_number_of_points(n, suited, rng):
    h = get("network", 1.0).prepare(rng.normal(size=(n, 3)), rng)
    assert (h.n_hidden, h.dropout, h.noise) == suited
    assert h.V.shape == (4, suited[0])


def test_what_is_given_stays(rng):
    X = rng.normal(size=(50, 3))
    h = network(n_hidden=7, noise=0.0).prepare(X, rng)
    assert (h.n_hidden, h.dropout, h.noise) == (7, 0.5, 0.0)
    h = NetworkHash().prepare(X, rng)
    assert (h.n_hidden, h.dropout, h.noise, h.thinned) == (256, 0.0, 0.0, False)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_hidden": 0}, "n_hidden must be a whole number of at least 1 or None, got 0"),
        ({"dropout": 1.0}, "dropout must be below 1, got 1.0"),
        ({"dropout": "half"}, "dropout must be a number of at least 0 or None, got 'half'"),
        ({"noise": -1}, "noise must be a number of at least 0 or None, got -1"),
    ],
)
def test_settings_are_checked(setting, message):
    with pytest.raises(ValueError, match=message):
        network(**setting)


def test_the_h_step_looks_at_the_first_units(points):
    Z = points[1]
    h, F = fitted(WIDE, points)
    assert h.W.shape == (300 + 6, 3)
    assert h.W[:256].any()
    assert h.W[300:].any()
    assert not h.W[256:300].any()
    expected = np.hstack([np.maximum(F @ h.V, 0), F]) @ h.W
    np.testing.assert_allclose(h.decision(F), expected, atol=1e-9)
    narrow = replace(h, V=h.V[:, :256], W=None).refit(F, Z, np.arange(3))
    np.testing.assert_array_equal(narrow.decision(F), h.decision(F))


def test_bits_that_are_not_fitted_again_keep_all_their_units(points, rng):
    Z = points[1]
    h, F = fitted(WIDE, points)
    refined = replace(h, W=rng.normal(size=h.W.shape))
    again = refined.refit(F, Z, np.array([1]))
    np.testing.assert_array_equal(again.W[:, [0, 2]], refined.W[:, [0, 2]])
    assert not again.W[256:300, 1].any()
    np.testing.assert_array_equal(again.take(refined, np.array([1])).W, refined.W)


def test_files_that_know_nothing_of_thinning(points):
    h, F = fitted(NetworkHash(20), points)
    coded, arrays = encode(h, "h")
    parts = next(iter(value for value in coded.values() if "thinned" in str(value)))
    fields = parts if "thinned" in parts else parts[-1]
    del fields["thinned"]
    decoded = decode(coded, arrays)
    assert decoded.thinned is False
    np.testing.assert_array_equal(decoded.decision(F), h.decision(F))


def test_what_is_left_open_has_alternatives(points):
    X, _ = points
    h = get("network", 1.0)
    result = h_steps.alternatives(h.prepare(X, np.random.default_rng(0)), h)
    settings = [(one.dropout, one.noise) for one in result]
    assert settings[0] == (0.5, 0.5)  # what suits the points comes first, and wins where equal
    assert len(set(settings)) == len(settings) > 2
    thinned = network(dropout=0.2)
    assert len(h_steps.alternatives(thinned.prepare(X, np.random.default_rng(0)), thinned)) == 1
    linear = get("linear", 1.0)
    assert h_steps.alternatives(linear, linear) == [linear]
