"""The outputs of a hash function as a smooth function of its parameters, for refinement.

Parameters are weights of the principal coordinates of the features, scaled to unit mean variance:
so the same step length suits any data, and Adam, which scales each coordinate by itself, works on
coordinates that are hardly correlated. Weight decay acts on these parameters, in units of the
steepest slope of the loss, so that it suits any loss and number of bits. Single precision is
enough: the gradients of a batch are far less exact.
"""

from typing import Protocol

import numpy as np

from auxhash.compute import threads
from auxhash.compute.arrays import Array, Numbers, Single
from auxhash.compute.parts import Chunks

CHUNK = 2048  # points per task of a thread


class Smooth(Protocol):
    """Outputs, and parameters to be changed in place; each bit's outputs have unit deviation."""

    parameters: list[Single]

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        """Outputs a (rows, b) of these training points."""

    def gradients(self, rows: Numbers | slice, pull: Single) -> list[Single]:
        """Gradients of sum(a * pull) plus the weight decay term, for each parameter."""

    def normalize(self) -> None:
        """Scale each bit's outputs to unit deviation again."""

    def weights(self) -> list[Array]:
        """The parameters as weights of the features themselves."""


class Principal:
    """Principal coordinates of features F (n, D + 1); the last feature, a constant 1, is kept."""

    def __init__(self, F: Array) -> None:
        body = F[:, :-1]
        self.mean = body.mean(axis=0)
        centred = body - self.mean
        variance, self.axes = np.linalg.eigh(centred.T @ centred / len(F))
        variance = np.maximum(variance, 0)
        self.scale = float(np.sqrt(variance.mean())) or 1.0
        self.variance = (variance / self.scale**2).astype(np.float32)
        X = centred @ (self.axes / self.scale)
        self.X = np.hstack([X, np.ones((len(X), 1))]).astype(np.float32)

    def enter(self, W: Array) -> Single:
        """Weights of the coordinates that give the outputs of W (D + 1, any) on the features."""
        bias = W[-1] + self.mean @ W[:-1]
        return np.vstack([self.scale * (self.axes.T @ W[:-1]), bias]).astype(np.float32)

    def leave(self, V: Single) -> Array:
        """The reverse of `enter`."""
        W = self.axes @ V[:-1].astype(np.float64) / self.scale
        return np.vstack([W, V[-1].astype(np.float64) - self.mean @ W])


class SmoothLinear:
    """a = W'x, with decay/2 |W|^2, biases left out, added to the loss."""

    def __init__(self, F: Array, W: Array, decay: float, rng: np.random.Generator) -> None:
        self.decay = np.float32(decay)
        self.principal = Principal(F)
        self.W = self.principal.enter(W)
        self.parameters = [self.W]
        # A bit that is the same for all points starts anew, in a random direction.
        dead = ~(self._deviation() > 1e-6 * np.abs(self.W[-1]))
        self.W[:-1, dead] = rng.standard_normal((len(self.W) - 1, int(dead.sum())))
        self.W[-1, dead] = 0
        self.normalize()

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        X = self.principal.X[rows]
        outputs: Single = Chunks(len(X), CHUNK, run).join(lambda part: X[part] @ self.W)
        return outputs

    def gradients(self, rows: Numbers | slice, pull: Single) -> list[Single]:
        slope: Single = self.principal.X[rows].T @ pull
        slope[:-1] += self.decay * self.W[:-1]
        return [slope]

    def normalize(self) -> None:
        deviation = self._deviation()
        self.W /= np.where(deviation > 0, deviation, np.float32(1))

    def weights(self) -> list[Array]:
        return [self.principal.leave(self.W)]

    def _deviation(self) -> Single:
        deviation: Single = np.sqrt(self.principal.variance @ np.square(self.W[:-1]))
        return deviation


class SmoothNetwork:
    """a = W'[relu(V'x), 1], with decay/2 (|V|^2 + |W|^2), biases left out, added to the loss."""

    def __init__(self, F: Array, V: Array, W: Array, decay: float) -> None:
        self.decay = np.float32(decay)
        self.principal = Principal(F)
        self.V = self.principal.enter(V)
        self.W = W.astype(np.float32)
        self.parameters = [self.V, self.W]
        self.normalize()

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        X = self.principal.X[rows]
        parts = Chunks(len(X), CHUNK // 16, run)
        outputs: Single = parts.join(lambda part: self._hidden(X[part]) @ self.W)
        return outputs

    def gradients(self, rows: Numbers | slice, pull: Single) -> list[Single]:
        X = self.principal.X[rows]
        hidden = self._hidden(X)
        back = pull @ self.W[:-1].T
        back *= hidden[:, :-1] > 0
        slopes: list[Single] = [X.T @ back, hidden.T @ pull]
        for slope, weights in zip(slopes, self.parameters, strict=True):
            slope[:-1] += self.decay * weights[:-1]
        return slopes

    def normalize(self) -> None:
        sample = self.principal.X[:: max(1, len(self.principal.X) // 500)]
        deviation = (self._hidden(sample) @ self.W).std(axis=0)
        self.W /= np.where(deviation > 0, deviation, np.float32(1))

    def weights(self) -> list[Array]:
        return [self.principal.leave(self.V), self.W.astype(np.float64)]

    def _hidden(self, X: Single) -> Single:
        hidden: Single = np.maximum(X @ self.V, 0)
        return np.hstack([hidden, np.ones((len(X), 1), np.float32)])
