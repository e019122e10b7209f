"""A hash function with one hidden layer that all bits share."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.checks import number, numbers, whole
from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import Array, Computed, Matrix, Numbers
from auxhash.compute.parts import Chunks
from auxhash.compute.peers import peers
from auxhash.hashfunctions import svm
from auxhash.hashfunctions.features import Scaled, Unit, moments
from auxhash.hashfunctions.linear import CHUNK, linear
from auxhash.hashfunctions.smooth import SmoothNetwork
from auxhash.storage.encoding import register


@register("NetworkHash")
@dataclass(frozen=True)
class NetworkHash:
    """h(x) = sign(W'[relu(V'f(x)), f(x)]), f(x) the scaled features with a 1 appended.

    The h step trains W alone, as one SVM per bit over the features and a random hidden layer;
    refinement trains both layers, with weight decay, dropout of hidden units and noise added to the
    features, in units of their deviation.
    """

    n_hidden: int = 256
    decay: float = 8e-4
    C: float = 100.0
    map: Scaled | Unit = field(default_factory=Scaled)
    V: Array | None = None  # (D + 1, n_hidden)
    W: Array | None = None  # (n_hidden + D + 1, b)
    dropout: float = 0.0
    noise: float = 0.0

    def check_read(self) -> None:
        whole("n_hidden", self.n_hidden, 1)
        number("C", self.C, 0, strict=True)
        number("decay", self.decay, 0)
        for name, layer in (("V", self.V), ("W", self.W)):
            if layer is not None:
                numbers(name, layer, 2)
        number("noise", self.noise, 0)
        number("dropout", self.dropout, 0)
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, got {self.dropout}")
        if not isinstance(self.map, Scaled | Unit):
            raise ValueError("map must be a Scaled or a Unit")
        if self.V is not None and self.W is not None:
            wanted = self.V.shape[1] + self.V.shape[0]
            if len(self.W) != wanted:
                raise ValueError(
                    f"W must have {wanted} rows, one per hidden unit and feature, got {len(self.W)}"
                )

    def prepare(self, X: NDArray[Any], rng: np.random.Generator) -> "NetworkHash":
        scaled = self.map.fit(X, rng)
        mean, variance = moments(scaled, X)
        # Each unit's input has mean 0 and a standard deviation of about 1 on the training set.
        random = peers().by(0, lambda: rng.standard_normal((len(mean), self.n_hidden)))
        V = devices.of(X).put(random)
        V = V / (np.sqrt(variance.sum()) or 1.0)
        return replace(self, map=scaled, V=np.vstack([V, -mean @ V]))

    def features(self, X: NDArray[Any], n_jobs: int | None = None) -> Array:
        return replace(linear(), map=self.map).features(X, n_jobs)

    def training_features(self, X: NDArray[Any], n_jobs: int | None = None) -> Matrix:
        return replace(linear(), map=self.map).training_features(X, n_jobs)

    def refit(
        self,
        F: Matrix,
        Z: NDArray[np.int8],
        bits: NDArray[np.int64],
        weight: Array | None = None,
        n_jobs: int | None = None,
    ) -> "NetworkHash":
        hidden = self._layer(F, n_jobs)
        return replace(self, W=svm.refit(self.W, hidden, Z, bits, self.C, weight, n_jobs))

    def take(self, other: "NetworkHash", bits: NDArray[np.int64]) -> "NetworkHash":
        return replace(self, W=svm.take(self.W, other.W, bits))

    def decision(self, F: Matrix, n_jobs: int | None = None) -> Array:
        if self.W is None:
            raise ValueError("the hash function is not fitted")
        return self._hidden(F, n_jobs, self.W)

    def average(self, other: "NetworkHash", share: float, F: Matrix) -> "NetworkHash":
        if self.V is None or other.V is None:
            raise ValueError("both hash functions must be fitted")
        V = (1 - share) * self.V + share * other.V
        W = svm.average(self.W, other.W, share, replace(self, V=V)._layer(F, 1))
        return replace(self, V=V, W=W)

    def with_linear(self, W: Array) -> "NetworkHash":
        """This hash function with the outputs F @ W, W (D + 1, b): no unit counts yet."""
        none = devices.of(W).zeros((self.n_hidden, W.shape[1]))
        return replace(self, W=np.vstack([none, W]))

    def smooth(self, F: Matrix, rng: np.random.Generator) -> SmoothNetwork:
        if self.V is None or self.W is None:
            raise ValueError("the hash function is not fitted")
        return SmoothNetwork(F, self.V, self.W, self.decay, self.dropout, self.noise, rng)

    def moved(self, weights: list[Array]) -> "NetworkHash":
        V, W = weights
        return replace(self, V=V, W=W)

    def _layer(self, F: Matrix, n_jobs: int | None) -> Matrix:
        """The hidden layer with the features appended; computed when needed if the features are."""
        if self.V is None or not isinstance(F, Computed):
            return self._hidden(F, n_jobs)
        V = self.V

        def make(rows: Numbers | slice) -> Array:
            part = F[rows]
            return np.hstack([np.maximum(part @ V, 0), part])

        return Computed((len(F), V.shape[1] + F.shape[1]), make, V)

    def _hidden(self, F: Matrix, n_jobs: int | None, W: Array | None = None) -> Array:
        """The hidden layer with the features appended, times W if given."""
        if self.V is None:
            raise ValueError("the hash function is not prepared")
        V = self.V

        def compute(rows: slice) -> Array:
            part = F[rows]
            hidden = np.hstack([np.maximum(part @ V, 0), part])
            return hidden if W is None else hidden @ W

        with threads.pool(n_jobs) as run:
            parts = Chunks(len(F), devices.of(F).rows(CHUNK, F), run)
            layer: Array = parts.join(compute)
        return layer


def network(C: float = 100.0, n_hidden: int = 256) -> NetworkHash:
    """A small neural network: `n_hidden` rectified linear units, shared by all bits."""
    return NetworkHash(n_hidden, C=C)
