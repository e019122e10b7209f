"""The binary autoencoder: each step lowers the penalised objective."""

from itertools import product

import numpy as np
import pytest

from auxhash.codes import sign
from auxhash.compute import context
from auxhash.learn import baselines
from auxhash.learn.baselines.autoencoder import (
    Decoder,
    alternate,
    energy,
    enumerate_codes,
    f_step,
    flip_bits,
    penalized,
    relaxed,
    z_step,
)
from auxhash.mac.hashfunctions import Scaled


def problem(n_bits, n=60, dim=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    decoder = Decoder(rng.standard_normal((dim, n_bits)), rng.standard_normal(dim))
    Z, H = sign(rng.standard_normal((2, n, n_bits)))
    return X, decoder, Z, H


@pytest.mark.parametrize("n_bits", [2, 8, 10, 14])
def test_the_objective_never_rises_within_one_mu(n_bits):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12)) @ rng.standard_normal((12, 12))
    hasher = baselines.BinaryAutoencoder(n_bits, random_state=0).fit(X)
    for step in hasher.history_:
        assert step.start >= step.z_step >= step.h_step
        assert step.f_step <= step.h_step * (1 + 1e-12)
    mus = [step.mu for step in hasher.history_]
    np.testing.assert_allclose(np.divide(mus[1:], mus[:-1]), hasher.alpha)
    assert hasher.n_iter_ == len(hasher.history_)
    assert hasher.error_ == min(step.error for step in hasher.history_)
    assert hasher.error_ <= hasher.history_[0].error


@pytest.mark.parametrize("mu", [0.0, 0.5, 20.0])
def test_the_z_step_is_enumeration_for_few_bits(mu):
    X, decoder, Z, H = problem(5)
    codes = z_step(X, decoder, Z, H, mu)
    for x, h, z in zip(X, H, codes, strict=True):

        def value(code, x=x, h=h):
            error = x - decoder.A @ code - decoder.c
            return error @ error + mu * np.square(code - h).sum()

        lowest = min(value(np.array(code)) for code in product([-1, 1], repeat=5))
        assert value(z) == pytest.approx(lowest)


@pytest.mark.parametrize("n_bits", [4, 10])
def test_alternation_is_never_better_than_enumeration_and_often_as_good(n_bits):
    X, decoder, Z, H = problem(n_bits)
    G = decoder.A.T @ decoder.A
    R = (X - decoder.c) @ decoder.A + 0.5 * H
    best = energy(G, R, enumerate_codes(G, R, 0.5, Z))
    local = energy(G, R, alternate(G, R, 0.5, Z))
    assert (local >= best - 1e-9).all()
    assert (local <= energy(G, R, flip_bits(G, R, Z)) + 1e-9).all()
    assert np.mean(local <= best + 1e-9) > 0.3


def test_the_z_step_of_many_bits_lowers_the_objective_on_any_number_of_threads():
    X, decoder, Z, H = problem(20, n=3000)
    codes = [context.using(n_jobs=n)(z_step)(X, decoder, Z, H, 0.7) for n in (1, 2, 4)]
    assert penalized(X, decoder, codes[0], H, 0.7) < penalized(X, decoder, Z, H, 0.7)
    np.testing.assert_array_equal(codes[0], codes[1])
    np.testing.assert_array_equal(codes[0], codes[2])


def test_the_relaxed_solution_meets_the_conditions_of_the_box():
    X, decoder, Z, H = problem(6)
    G = decoder.A.T @ decoder.A
    R = (X - decoder.c) @ decoder.A + 3.0 * H
    z = relaxed(G, R, 3.0, Z)
    gradient = z @ (G + 3.0 * np.eye(6)) - R
    inside = np.abs(z) < 1
    assert np.abs(gradient[inside]).max() < 0.1
    assert (gradient[z == 1] < 0.1).all()
    assert (gradient[z == -1] > -0.1).all()


@pytest.mark.parametrize("n_bits", [5, 14])
def test_the_z_step_decouples_over_the_points(n_bits):
    """Sec. 5: N problems of b variables, so that it scales linearly with the data set."""
    X, decoder, Z, H = problem(n_bits)
    parts = [z_step(X[at], decoder, Z[at], H[at], 0.5) for at in (slice(0, 17), slice(17, None))]
    np.testing.assert_array_equal(np.concatenate(parts), z_step(X, decoder, Z, H, 0.5))


def test_a_large_mu_takes_the_codes_of_the_hash_function():
    X, decoder, Z, H = problem(12)
    np.testing.assert_array_equal(z_step(X, decoder, Z, H, 1e6), H)


def test_the_f_step_is_least_squares_even_where_bits_are_equal():
    X, _, Z, _ = problem(4)
    Z[:, 3] = Z[:, 2]
    decoder = f_step(X, Z)
    design = np.column_stack([Z, np.ones(len(Z))])
    residual = np.square(X - design @ np.linalg.lstsq(design, X, rcond=None)[0]).sum()
    assert decoder.error(X, Z) == pytest.approx(residual)


def test_a_kernel_hash_function_reconstructs_better():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    errors = [
        baselines.BinaryAutoencoder(4, hash_function=name, random_state=0).fit(X).error_
        for name in ("linear", "rbf")
    ]
    assert errors[1] < errors[0]


def test_it_reconstructs_better_than_itq_and_thresholded_pca():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 24)) @ (rng.standard_normal((24, 24)) / np.arange(1, 25)[:, None])
    hasher = baselines.BinaryAutoencoder(12, random_state=0).fit(X)
    scaled = Scaled().fit(X, rng)(X)
    H = hasher.transform(X)
    assert hasher.decoder_.error(scaled, H) == pytest.approx(hasher.error_)
    for other in (baselines.ITQ(12, random_state=0), baselines.TPCA(12)):
        codes = other.fit(X).transform(X)
        assert hasher.error_ < f_step(scaled, codes).error(scaled, codes)
