"""The regression step of continuous maps: least squares on features, or a network.

A mapping is a hash function without the sign: its outputs are F(x). Each step goes on from the last
weights, by a ridge regression of what they leave over, Z - F(X): it never raises |Z - F(X)|^2, and
no step shrinks F once more, as a ridge regression of Z itself would. Of a network, gradient steps
move both layers first; where that is no better in the end, the old first layer stays.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Matrix, Numbers, Single
from auxhash.compute.parts import Chunks
from auxhash.learn.smooth.gradient import GradientDescent, Outputs, Shuffled
from auxhash.mac.hashfunctions import HashFunction, NetworkHash, RadialBasis, Scaled, SVMHash
from auxhash.mac.hashfunctions.smooth import N_POOLED_NUMBERS, SmoothNetwork

MAPPINGS = ("linear", "rbf", "network")
RIDGE = 1e-6  # relative to the mean square of the features
POINTS_PER_TASK = 2048  # points per task of a thread
N_HIDDEN, DECAY, NOISE = 256, 1e-4, 0.5  # of a network; noise in units of the features' deviation
BATCH_SIZE, RATE = 500, 0.01  # of its gradient steps
N_FIRST_STEPS, N_STEPS = 2000, 200  # gradient steps, of the direct regression and of the others


class RidgeRegression:
    """Regression on fixed features, by a linear or a kernel mapping."""

    def __init__(self, h: SVMHash, X: AnyArray) -> None:
        self.h, self.F = h, h.training_features(X)
        self.ridge = Ridge(self.F)

    def __call__(self, Z: Array) -> tuple[HashFunction, Array]:
        self.h = replace(self.h, W=self.ridge.fitted(self.h.W, Z))
        return self.h, self.h.decision(self.F)


class NetworkRegression:
    """Regression by a network."""

    def __init__(self, h: NetworkHash, X: AnyArray, rng: np.random.Generator) -> None:
        self.h, self.F, self.rng = h, h.training_features(X), rng

    def __call__(self, Z: Array) -> tuple[HashFunction, Array]:
        n_steps = N_FIRST_STEPS if self.h.W is None else N_STEPS
        start = self._fitted(self.h, Z)
        moved = self._fitted(self._moved(start[0], Z, n_steps), Z)
        self.h, F = min(start, moved, key=lambda fit: float(np.square(Z - fit[1]).sum()))
        return self.h, F

    def _moved(self, h: NetworkHash, Z: Array, n_steps: int) -> NetworkHash:
        """Return the network after gradient steps for Z, at unit deviation and without its mean."""
        assert h.V is not None
        assert h.W is not None
        middle, spread = Z.mean(axis=0), float(Z.std()) or 1.0
        W = h.W / spread
        W[-1] -= middle / spread
        smooth = _Unscaled(self.F, h.V, W, h.decay, 0.0, h.noise or 0.0, self.rng)
        error = SquaredError(((Z - middle) / spread).astype(np.float32))
        descent = GradientDescent(smooth, error, n_steps, (1.0, 1.0), RATE, self.rng)
        with threads.pool() as run:
            for t in range(n_steps):
                descent.move(t, run)
        V, W = smooth.weights()
        W *= spread
        W[-1] += middle
        return h.moved([V, W])

    def _fitted(self, h: NetworkHash, Z: Array) -> tuple[NetworkHash, Array]:
        h = replace(h, W=Ridge(h.layer(self.F)).fitted(h.W, Z))
        return h, h.decision(self.F)


def regression(
    mapping: str, X: AnyArray, rng: np.random.Generator
) -> RidgeRegression | NetworkRegression:
    """Return the regression on the points X (n, D) by a mapping of that name."""
    if mapping == "network":
        network = NetworkHash(N_HIDDEN, decay=DECAY, noise=NOISE)
        return NetworkRegression(network.prepare(X, rng), X, rng)
    h = SVMHash(Scaled() if mapping == "linear" else RadialBasis())
    return RidgeRegression(h.prepare(X, rng), X)


class Ridge:
    """Ridge regression on features F (n, k), whose last is the constant 1, which is free."""

    def __init__(self, F: Matrix) -> None:
        self.F = F
        squares = self._products(F)
        k = len(squares) - 1
        penalty = np.full(k + 1, RIDGE * (np.trace(squares[:k, :k]) / max(1, k) or 1.0))
        penalty[k] = 0
        self.factor = cho_factor(squares + np.diag(penalty), lower=True)

    def fitted(self, W: Array | None, Z: Array) -> Array:
        """Return W (k, m), 0 if None, plus the ridge regression of Z - F W."""
        if W is None:
            W = np.zeros((self.F.shape[1], Z.shape[1]))
        change: Array = cho_solve(self.factor, self._products(Z, W))
        return W + change

    def _products(self, Z: Matrix, W: Array | None = None) -> Array:
        """Return F'(Z - F W)."""

        def part(rows: slice) -> Array:
            F = self.F[rows]
            return F.T @ (Z[rows] if W is None else Z[rows] - F @ W)

        with threads.pool() as run:
            return Chunks(len(self.F), POINTS_PER_TASK, run).sum_here(part)


class SquaredError:
    """The objective |a(x) - t|^2 of targets t, for gradient steps."""

    def __init__(self, targets: Single) -> None:
        self.targets = targets

    def batches(self, rng: np.random.Generator) -> Shuffled:
        return Shuffled(len(self.targets), BATCH_SIZE, rng)

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        difference: Single = outputs(rows) - self.targets[rows]
        difference *= 2
        return difference

    def scale(self, rows: Numbers) -> float:
        return 1 / len(rows)


class _Unscaled(SmoothNetwork):
    """A network whose outputs keep their scale: it is what they are to learn."""

    def begin(self, rng: np.random.Generator) -> None:
        self.random: Any = _NoisePool(rng)

    def normalize(self) -> None:
        pass


class _NoisePool:
    """Normal numbers, drawn once and read from any place on: to draw all takes half of a step."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.normal = rng.standard_normal(N_POOLED_NUMBERS, np.float32)

    def standard_normal(self, shape: tuple[int, ...], dtype: type[np.float32]) -> Single:
        size = math.prod(shape)
        if 2 * size > len(self.normal):
            self.normal = self.rng.standard_normal(2 * size, dtype)
        first = int(self.rng.integers(len(self.normal) - size))
        return self.normal[first : first + size].reshape(shape)
