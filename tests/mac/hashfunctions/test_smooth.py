"""Smooth outputs against the hash functions they come from, and against finite differences."""

from dataclasses import replace

import numpy as np
import pytest

from auxhash.codes import sign
from auxhash.compute import context, threads
from auxhash.mac.hashfunctions import NetworkHash, get, is_smooth, network
from auxhash.mac.hashfunctions import smooth as smooths

PLAIN = NetworkHash(24)
THINNED = network(n_hidden=24, dropout=0.4, noise=0.3)
DROPPED = NetworkHash(24, dropout=0.4, noise=0.3)  # each point leaves out units of its own


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6)) * np.array([5, 3, 1, 0.5, 0.1, 0.0]) + 2  # one feature is constant
    return X, sign(rng.normal(size=(90, 4)))


def fitted(kind, data):
    X, Z = data
    h = get(kind, 1.0).prepare(X, np.random.default_rng(1))
    F = h.features(X)
    return h.refit(F, Z, np.arange(4)), F


@pytest.mark.parametrize("kind", ["linear", "rbf", "network", PLAIN])
def test_outputs_are_the_decision_values_of_unit_deviation(kind, data):
    h, F = fitted(kind, data)
    assert is_smooth(h)
    smooth = h.smooth(F, np.random.default_rng(2))
    with context.using(n_jobs=1), threads.pool() as run:
        A = smooth.outputs(slice(None), run)
        some = np.array([7, 3, 50])
        np.testing.assert_allclose(smooth.outputs(some, run), A[some], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(A.std(axis=0), 1, rtol=1e-3)
    decision = h.decision(F)
    scale = (A * decision).sum(0) / (decision**2).sum(0)
    assert (scale > 0).all()
    np.testing.assert_allclose(A, decision * scale, atol=1e-3)
    # ... and back: the weights make a hash function of the same outputs.
    moved = h.moved(smooth.weights())
    np.testing.assert_allclose(moved.decision(F), A, atol=1e-3)


@pytest.mark.parametrize("kind", ["linear", "rbf", PLAIN, THINNED, DROPPED])
def test_gradients_are_those_of_finite_differences(kind, data, monkeypatch):
    monkeypatch.setattr(smooths, "POINTS_PER_GROUP", 15)
    monkeypatch.setattr(smooths, "N_POOLED_NUMBERS", 1000)
    h, F = fitted(kind, data)
    h = replace(h, decay=1e-3)
    smooth = h.smooth(F, np.random.default_rng(2))
    layered = not isinstance(kind, str)
    # In double precision, so that differences can be small enough not to meet a kink.
    smooth.principal.X = smooth.principal.X.astype(np.float64)
    for at, name in enumerate(("V", "W", "L") if layered else ("W",)):
        smooth.parameters[at] = smooth.parameters[at].astype(np.float64)
        setattr(smooth, name, smooth.parameters[at])
    rng = np.random.default_rng(3)
    rows = rng.permutation(len(F))[:40]
    pull = rng.normal(size=(40, 4))

    def value():
        smooth.begin(np.random.default_rng(4))
        with context.using(n_jobs=1), threads.pool() as run:
            total = (smooth.batch(rows, run) * pull).sum()
        # The last rows are biases, except in the weights of hidden units.
        decayed = [p if layered and p is smooth.W else p[:-1] for p in smooth.parameters]
        total += 0.5 * smooth.decay * sum(np.square(p).sum() for p in decayed)
        return total

    smooth.begin(np.random.default_rng(4))
    with context.using(n_jobs=1), threads.pool() as run:
        gradients = smooth.gradients(rows, pull, run)
    for parameter, gradient in zip(smooth.parameters, gradients, strict=True):
        for _ in range(10):
            at = tuple(rng.integers(parameter.shape))
            old, width = parameter[at], 1e-6
            parameter[at] = old + width
            above = value()
            parameter[at] = old - width
            below = value()
            parameter[at] = old
            assert gradient[at] == pytest.approx((above - below) / (2 * width), rel=1e-4, abs=1e-4)


def test_units_that_are_left_out_are_made_up_for(data):
    h, F = fitted(NetworkHash(24, dropout=0.4, noise=0.0), data)
    smooth = h.smooth(F, np.random.default_rng(2))
    rows = np.tile(np.arange(len(F)), 200)
    with context.using(n_jobs=2), threads.pool() as run:
        full = smooth.outputs(np.arange(len(F)), run)
        result = smooth.batch(rows, run).reshape(200, *full.shape)
    _, X, hidden = smooth.kept
    plain = np.maximum(X @ smooth.V, 0)
    assert np.mean(hidden[plain > 0] == 0) == pytest.approx(0.4, abs=0.02)
    stays = hidden > 0
    np.testing.assert_allclose(hidden[stays], plain[stays] * smooth.grown, rtol=1e-5)
    assert smooth.grown == pytest.approx(1 / 0.6, rel=0.01)
    error = result.std(axis=0) / np.sqrt(200)
    assert (np.abs(result.mean(axis=0) - full) < 5 * error + 1e-4).all()


def test_a_bit_that_never_changes_gets_a_direction(data):
    X, Z = data
    constant = Z.copy()
    constant[:, 1] = 1
    h = get("linear", 1.0).prepare(X, np.random.default_rng(1))
    F = h.features(X)
    h = h.moved([np.zeros((F.shape[1], 4))]).refit(F, constant, np.array([0, 2, 3]))
    smooth = h.smooth(F, np.random.default_rng(2))
    with context.using(n_jobs=1), threads.pool() as run:
        A = smooth.outputs(slice(None), run)
    np.testing.assert_allclose(A.std(axis=0), 1, rtol=1e-3)


def test_points_that_are_all_the_same_do_not_break_it():
    F = np.ones((20, 3))
    h = get("linear", 1.0).moved([np.zeros((3, 2))])
    smooth = h.smooth(F, np.random.default_rng(0))
    smooth.normalize()
    assert np.isfinite(smooth.weights()[0]).all()


def test_groups_of_points_leave_out_units_of_their_own(data, monkeypatch):
    monkeypatch.setattr(smooths, "POINTS_PER_GROUP", 15)
    h, F = fitted(THINNED, data)
    smooth = h.smooth(F, np.random.default_rng(2))
    rows = np.arange(40)
    with context.using(n_jobs=1), threads.pool() as run:
        smooth.batch(rows, run)
    assert [group.rows for group in smooth.groups] == [slice(0, 15), slice(15, 30), slice(30, 40)]
    for group in smooth.groups:
        assert len(np.unique(group.units)) == round(0.6 * 24)
    assert len({tuple(group.units) for group in smooth.groups}) == 3


def test_what_is_left_out_is_made_up_for(data, monkeypatch):
    monkeypatch.setattr(smooths, "POINTS_PER_GROUP", 15)
    h, F = fitted(network(n_hidden=24, dropout=0.4, noise=0.0), data)
    smooth = h.smooth(F, np.random.default_rng(2))
    rows, X = np.arange(40), smooth.principal.X
    with context.using(n_jobs=1), threads.pool() as run:
        outputs = smooth.batch(rows, run)
    for group in smooth.groups:
        own, some = X[rows[group.rows]], group.units
        hidden = np.maximum(own @ smooth.V, 0)[:, some]
        wanted = hidden @ smooth.W[some] * 24 / len(some) + own @ smooth.L
        np.testing.assert_allclose(outputs[group.rows], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [PLAIN, THINNED])
def test_the_same_on_any_number_of_threads(kind, data, monkeypatch):
    monkeypatch.setattr(smooths, "POINTS_PER_GROUP", 15)
    result = []
    for n_jobs in (1, 3):
        h, F = fitted(kind, data)
        smooth = h.smooth(F, np.random.default_rng(2))
        with context.using(n_jobs=n_jobs), threads.pool() as run:
            rows = np.arange(70)
            outputs = smooth.batch(rows, run)
            result.append([outputs, *smooth.gradients(rows, outputs, run)])
    for one, other in zip(*result, strict=True):
        np.testing.assert_array_equal(one, other)
