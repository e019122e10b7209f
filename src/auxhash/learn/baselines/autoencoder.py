"""The binary autoencoder, eq. (11), trained with MAC (Carreira-Perpinan, Raziperchikolaei 2015).

    min over h, f  sum_n |x_n - f(h(x_n))|^2,   f(z) = A z + c a linear decoder, h a hash function

With auxiliary coordinates z_n in the place of h(x_n) and a quadratic penalty mu |z_n - h(x_n)|^2,
the Z step separates into one small binary problem per point,

    min z'Gz - 2 z'r,   G = A'A,   r = A'(x - c) + mu h(x)

the h step into one classifier per bit, and the f step is a linear regression. mu grows until
Z = h(X).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from auxhash.codes import Codes, sign
from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.checks import numbers
from auxhash.compute.random import RandomState
from auxhash.compute.registry import register
from auxhash.learn.baselines.method import Unsupervised
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import HashFunction, Scaled, h_step
from auxhash.mac.hashfunctions.rotation import principal_axes, quantize, random_rotation

MAX_BITS_ENUMERATED = 10  # bits up to which the Z step tries every code
POINTS_PER_TASK = 1024  # of a thread, in the Z step
MAX_PASSES = 50  # over the bits, relaxed or not, at most
MAX_SETTLED_CHANGE = 1e-3  # largest change of a relaxed bit at which the descent stops
FIRST_FIXED_SHARE = 0.005  # share of the bits that the first mu holds at h(X)
N_ITQ_ITERATIONS = 50  # iterations of ITQ for the first codes
ENERGY_TOLERANCE = 1e-12  # a relative change in the objective that is smaller counts as none


@register("BinaryAutoencoder.Step")
class AutoencoderStep(NamedTuple):
    """One iteration: the penalised objective at its start and after each step; then E(h, f)."""

    mu: float
    start: float
    z_step: float
    h_step: float
    f_step: float
    error: float


@register("BinaryAutoencoder.Decoder")
class Decoder(NamedTuple):
    """f(z) = A z + c."""

    A: Array  # (D, b)
    c: Array  # (D,)

    def check_read(self) -> None:
        numbers("A", self.A, 2)
        numbers("c", self.c, 1)

    def error(self, X: Array, Z: Codes) -> float:
        """sum_n |x_n - f(z_n)|^2."""
        return float(np.square(X - self.c - Z @ self.A.T).sum())


def f_step(X: Array, Z: Codes) -> Decoder:
    """The linear decoder of least error."""
    bias = np.column_stack([Z, np.ones(len(Z))]).astype(np.float64)
    gram = bias.T @ bias
    # Where bits are equal, many decoders are equally good: take the smallest.
    A = np.linalg.pinv(gram, hermitian=True) @ (bias.T @ X)
    return Decoder(A[:-1].T, A[-1])


def z_step(X: Array, decoder: Decoder, Z: Codes, H: Codes, mu: float) -> Codes:
    """Codes whose penalised objective is no higher than Z's; for few bits, the lowest of all."""
    G = decoder.A.T @ decoder.A
    solve = enumerate_codes if Z.shape[1] <= MAX_BITS_ENUMERATED else alternate

    def chunk(rows: slice) -> Codes:
        pull = (X[rows] - decoder.c) @ decoder.A
        new = solve(G, pull + mu * H[rows], mu, Z[rows])
        old = energy(G, pull + mu * H[rows], Z[rows])
        lower = energy(G, pull + mu * H[rows], new) < old - ENERGY_TOLERANCE * np.abs(old)
        return np.where(lower[:, None], new, Z[rows])

    with threads.pool() as run:
        return np.concatenate(run(chunk, threads.chunks(len(X), POINTS_PER_TASK)))


def energy(G: Array, R: Array, Z: AnyArray) -> Array:
    """z'Gz - 2 z'r per point, (n,)."""
    Z = Z.astype(np.float64)
    value: Array = ((Z @ G - 2 * R) * Z).sum(axis=1)
    return value


def enumerate_codes(G: Array, R: Array, mu: float, Z: Codes) -> Codes:
    """The best of all 2^b codes for each point."""
    b = len(G)
    number = np.arange(2**b)[:, None] >> np.arange(b)
    every = (2 * (number & 1) - 1).astype(np.int8)
    value = ((every @ G) * every).sum(axis=1) - 2 * R @ every.T  # (n, 2^b)
    best: Codes = every[value.argmin(axis=1)]
    return best


def alternate(G: Array, R: Array, mu: float, Z: Codes) -> Codes:
    """The better of two local optima: from the rounded relaxed solution, and from Z."""
    optima = [flip_bits(G, R, start) for start in (sign(relaxed(G, R, mu, Z)), Z)]
    first_better = energy(G, R, optima[0]) < energy(G, R, optima[1])
    return np.where(first_better[:, None], *optima)


def relaxed(G: Array, R: Array, mu: float, Z: Codes) -> Array:
    """Minimise z'(G + mu I)z - 2 z'r over the box [-1, 1]^b: convex, by coordinate descent."""
    z = Z.astype(np.float64)
    for _ in range(MAX_PASSES):
        change = 0.0
        for k in range(len(G)):
            rest = R[:, k] - z @ G[:, k] + z[:, k] * G[k, k]
            new = np.clip(rest / max(G[k, k] + mu, np.finfo(float).tiny), -1.0, 1.0)
            change = max(change, float(np.abs(new - z[:, k]).max()))
            z[:, k] = new
        if change < MAX_SETTLED_CHANGE:
            break
    return z


def flip_bits(G: Array, R: Array, Z: Codes) -> Codes:
    """Set one bit after the other to its best value, until none changes."""
    z = Z.astype(np.float64)
    for _ in range(MAX_PASSES):
        changed = False
        for k in range(len(G)):
            rest = R[:, k] - z @ G[:, k] + z[:, k] * G[k, k]
            new = np.where(rest == 0, z[:, k], np.sign(rest))
            changed = changed or bool((new != z[:, k]).any())
            z[:, k] = new
        if not changed:
            break
    return z.astype(np.int8)


@dataclass(eq=False, repr=False)
class BinaryAutoencoder(Unsupervised):
    """The binary autoencoder. Any number of bits.

    Args:
        n_bits: length of the codes.
        hash_function: "linear", "rbf", "network", "trees" or a scikit-learn classifier, cloned for
            every bit.
        mu: the first mu, or "auto": so small that the codes are nearly free.
        alpha: factor from one mu to the next.
        max_iter: maximum number of iterations.
        C: the SVM's cost of a margin violation.
        random_state: seed of the first codes.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        hash_function_: the hash function of the lowest E(h, f).
        decoder_: its decoder, for features scaled to [0, 1].
        error_: its E(h, f), the error of reconstruction on the training points.
        history_: list of `AutoencoderStep`, one per iteration.
        n_iter_: number of iterations made.
    """

    n_bits: int = 32
    hash_function: object = "linear"
    mu: float | Literal["auto"] = "auto"
    alpha: float = 1.4
    max_iter: int = 50
    C: float = 100.0
    random_state: RandomState = None
    n_jobs: int | None = None

    hash_function_: HashFunction = field(init=False)
    decoder_: Decoder = field(init=False)
    error_: float = field(init=False)
    history_: list[AutoencoderStep] = field(init=False)
    n_iter_: int = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.mu != "auto":
            checks.number("mu", self.mu, 0, strict=True, instead=' or "auto"')
        checks.number("alpha", self.alpha, 1, strict=True)
        checks.integer("max_iter", self.max_iter, 1)
        checks.number("C", self.C, 0, strict=True)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        start, centres = rng.spawn(2)
        scaled = Scaled().fit(X, start)(X)
        Z = first_codes(scaled, self.n_bits, start)
        h = hashfunctions.get(self.hash_function, self.C).prepare(X, centres)
        F = h.features(X)
        self.history_ = []
        self.error_ = np.inf
        for step, new, decoder in self._steps(scaled, F, h, Z):
            self.history_.append(step)
            if step.error < self.error_:
                self.error_, self.hash_function_, self.decoder_ = step.error, new, decoder
        self.n_iter_ = len(self.history_)

    def _steps(
        self, X: Array, F: Array, h: HashFunction, Z: Codes
    ) -> Iterator[tuple[AutoencoderStep, HashFunction, Decoder]]:
        bits = np.arange(self.n_bits)
        h, H = h_step(h, None, F, Z, bits)
        decoder = f_step(X, Z)
        mu = first_mu(X, decoder, Z) if self.mu == "auto" else float(self.mu)
        for _ in range(self.max_iter):
            start = penalized(X, decoder, Z, H, mu)
            trained, Z = Z, z_step(X, decoder, Z, H, mu)
            after_z = penalized(X, decoder, Z, H, mu)
            bits = np.flatnonzero((trained != Z).any(axis=0))
            h, H = h_step(h, H, F, Z, bits)
            after_h = penalized(X, decoder, Z, H, mu)
            decoder = f_step(X, Z)
            after_f = penalized(X, decoder, Z, H, mu)
            nested = f_step(X, H)
            yield (
                AutoencoderStep(mu, start, after_z, after_h, after_f, nested.error(X, H)),
                h,
                nested,
            )
            if np.array_equal(Z, H):
                break
            mu *= self.alpha


def first_codes(X: Array, n_bits: int, rng: np.random.Generator) -> Codes:
    """ITQ's codes, a good if suboptimal start; bits beyond n_features are random projections."""
    n = min(n_bits, X.shape[1])
    mean, axes = principal_axes(X, n, "BinaryAutoencoder")
    V = (X - mean) @ axes
    rotation, _ = quantize(V, random_rotation(n, rng), N_ITQ_ITERATIONS)
    more = (X - mean) @ rng.standard_normal((X.shape[1], n_bits - n))
    return sign(np.hstack([V @ rotation, more]))


def penalized(X: Array, decoder: Decoder, Z: Codes, H: Codes, mu: float) -> float:
    """sum_n |x_n - f(z_n)|^2 + mu |z_n - h(x_n)|^2."""
    return decoder.error(X, Z) + 4 * mu * int((Z != H).sum())


def first_mu(X: Array, decoder: Decoder, Z: Codes) -> float:
    """The mu from which on a share FIRST_FIXED_SHARE of the bits stays at h(X), whatever it costs.

    A bit that differs from h(X) flips to it once mu is above the cost of the flip, and a bit that
    equals h(X) flips away while mu is below the gain of that: `size` is both cost and gain.
    """
    G = decoder.A.T @ decoder.A
    z = Z.astype(np.float64)
    size = np.abs((X - decoder.c) @ decoder.A - z @ G + z * np.diag(G))
    size = size[size > 0]
    return float(np.quantile(size, FIRST_FIXED_SHARE)) if len(size) else 1.0
