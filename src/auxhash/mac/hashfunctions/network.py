"""A hash function with one hidden layer that all bits share."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from auxhash.codes import Codes
from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Computed, Matrix, Numbers, in_memory
from auxhash.compute.checks import flag, integer, number, numbers
from auxhash.compute.parts import Chunks
from auxhash.compute.peers import peers
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions import svm
from auxhash.mac.hashfunctions.features import Scaled, Unit, are_too_large, moments
from auxhash.mac.hashfunctions.linear import POINTS_PER_TASK, linear
from auxhash.mac.hashfunctions.protocol import BaseHash
from auxhash.mac.hashfunctions.smooth import Principal, SmoothNetwork, ThinnedNetwork

H_STEP_UNITS = 256  # hidden units in the h step: SVMs over all of a wide layer take too long
POINTS_FOR_1024, POINTS_FOR_2048 = 2000, 8000  # training points for as many units
CHOICES = ((0.5, 0.1), (0.5, 0.5), (0.7, 0.3), (0.7, 0.5))  # dropout and noise, on validation


class Suited(NamedTuple):
    """The settings of a hidden layer."""

    n_hidden: int
    dropout: float
    noise: float

    @classmethod
    def to(cls, n: int) -> "Suited":
        """Return the defaults for n training points: the more points, the wider the layer."""
        if n < POINTS_FOR_1024:
            return cls(512, 0.5, 0.5)
        return cls(1024, 0.5, 0.5) if n < POINTS_FOR_2048 else cls(2048, 0.7, 0.3)


@register("NetworkHash")
@dataclass(frozen=True)
class NetworkHash(BaseHash):
    """h(x) = sign(W'[relu(V'f(x)), f(x)]), f(x) the scaled features with a 1 appended.

    The h step trains W alone, as one SVM per bit over the features and the first 256 units of a
    random hidden layer; refinement trains both layers, with weight decay, dropout of hidden units
    and noise added to the features, in units of their deviation.

    What is None of n_hidden, dropout and noise is set as suits the number of training points. With
    `thinned`, many points of a refinement step leave out the same units, to save time. With
    `n_coordinates`, the hidden layer learns from so many principal coordinates of the features at
    most; the outputs have all of them.
    """

    n_hidden: int | None = 256
    decay: float = 8e-4
    C: float = 100.0
    map: Scaled | Unit = field(default_factory=Scaled)
    V: Array | None = None  # (D + 1, n_hidden)
    W: Array | None = None  # (n_hidden + D + 1, b)
    dropout: float | None = 0.0
    noise: float | None = 0.0
    thinned: bool = False
    n_coordinates: int | None = None

    TRAINING_ONLY: ClassVar[tuple[str, ...]] = (
        *("n_hidden", "decay", "C", "dropout", "noise", "thinned", "n_coordinates"),
    )

    def check_read(self) -> None:
        _check_layer(self.n_hidden, self.dropout, self.noise)
        flag("thinned", self.thinned)
        if self.n_coordinates is not None:
            integer("n_coordinates", self.n_coordinates, 1, instead=" or None")
        number("C", self.C, 0, strict=True)
        number("decay", self.decay, 0)
        for name, layer in (("V", self.V), ("W", self.W)):
            if layer is not None:
                numbers(name, layer, 2)
        if not isinstance(self.map, Scaled | Unit):
            raise ValueError("map must be a Scaled or a Unit")
        if self.V is not None and self.W is not None:
            wanted = self.V.shape[1] + self.V.shape[0]
            if len(self.W) != wanted:
                raise ValueError(
                    f"W must have {wanted} rows, one per hidden unit and feature, got {len(self.W)}"
                )

    def kind(self) -> list[str]:
        return [*super().kind(), type(self.map).__name__]

    def prepare(self, X: AnyArray, rng: np.random.Generator) -> "NetworkHash":
        scaled, layer = self.map.fit(X, rng), self._layer_for(peers().sum(len(X)))
        mean, variance = moments(scaled, X)
        # Each unit's input has mean 0 and a standard deviation of about 1 on the training set.
        random = peers().by(0, lambda: rng.standard_normal((len(mean), layer.n_hidden)))
        V = devices.of(X).put(random)
        V = V / (np.sqrt(variance.sum()) or 1.0)
        return replace(self, map=scaled, V=np.vstack([V, -mean @ V]), **layer._asdict())

    def _layer_for(self, n: int) -> Suited:
        """Return the settings of the layer for n points, defaults in place of None."""
        settings = {name: getattr(self, name) for name in Suited._fields}
        return Suited.to(n)._replace(**{k: v for k, v in settings.items() if v is not None})

    def features(self, X: AnyArray) -> Array:
        return replace(linear(), map=self.map).features(X)

    def training_features(self, X: AnyArray) -> Matrix:
        return replace(linear(), map=self.map).training_features(X)

    def refit(
        self, F: Matrix, Z: Codes, bits: Numbers, weight: Array | None = None
    ) -> "NetworkHash":
        seen = self._narrow()
        new = svm.refit(seen.W, seen.layer(F), Z, bits, self.C, weight)
        if self.V is None or new.shape[0] == sum(self.V.shape):
            return replace(self, W=new)
        device, shape = devices.of(new), (sum(self.V.shape), Z.shape[1])
        W: Array = device.zeros(shape) if self.W is None else self.W.copy()
        chosen = device.put(bits)
        W[:, chosen] = 0
        W[:H_STEP_UNITS, chosen] = new[:H_STEP_UNITS, chosen]
        W[self.V.shape[1] :, chosen] = new[H_STEP_UNITS:, chosen]
        return replace(self, W=W)

    def take(self, other: "NetworkHash", bits: Numbers) -> "NetworkHash":
        return replace(self, W=svm.take(self.W, other.W, bits))

    def decision(self, F: Matrix) -> Array:
        if self.W is None:
            raise ValueError("the hash function is not fitted")
        n_hidden = len(self.W) - F.shape[1]
        if n_hidden > H_STEP_UNITS and not self.W[H_STEP_UNITS:n_hidden].any():  # before refinement
            return self._narrow().decision(F)
        return self._hidden(F, self.W)

    def average(self, other: "NetworkHash", share: float, F: Matrix) -> "NetworkHash":
        if self.V is None or other.V is None:
            raise ValueError("both hash functions must be fitted")
        V = (1 - share) * self.V + share * other.V
        W = svm.average(self.W, other.W, share, replace(self, V=V).layer(F))
        return replace(self, V=V, W=W)

    def go_on_from(self, learnt: "NetworkHash") -> "NetworkHash":
        return replace(learnt, C=self.C)

    def with_linear(self, W: Array) -> "NetworkHash":
        """Return this hash function with the outputs F @ W, W (D + 1, b): no unit counts yet."""
        if self.V is None:
            raise ValueError("the hash function is not prepared")
        none = devices.of(W).zeros((self.V.shape[1], W.shape[1]))
        return replace(self, W=np.vstack([none, W]))

    def smooth(
        self, F: Matrix, rng: np.random.Generator, principal: Principal | None = None
    ) -> SmoothNetwork:
        if self.V is None or self.W is None:
            raise ValueError("the hash function is not fitted")
        layer = self._layer_for(peers().sum(len(F)))
        # A GPU computes all units of all points sooner than some of them group by group.
        thinned = self.thinned and layer.dropout and devices.of(F) is devices.CPU
        kind = ThinnedNetwork if thinned else SmoothNetwork
        settings = self.decay, layer.dropout, layer.noise, rng, self.n_coordinates, principal
        return kind(F, self.V, self.W, *settings)

    def alternatives(self, original: Any) -> "list[NetworkHash]":
        """Return this network with other dropout and noise, where `original` leaves both open."""
        if original.dropout is not None or original.noise is not None:
            return []
        others = [pair for pair in CHOICES if pair != (self.dropout, self.noise)]
        return [replace(self, dropout=d, noise=n) for d, n in others]

    def moved(self, weights: list[Array]) -> "NetworkHash":
        V, W = weights
        return replace(self, V=V, W=W)

    def _narrow(self) -> "NetworkHash":
        """Return this network with the units that the h step looks at, and no others."""
        if self.V is None or self.V.shape[1] <= H_STEP_UNITS:
            return self
        n_hidden = self.V.shape[1]
        W = None if self.W is None else np.vstack([self.W[:H_STEP_UNITS], self.W[n_hidden:]])
        return replace(self, V=self.V[:, :H_STEP_UNITS], W=W)

    def layer(self, F: Matrix) -> Matrix:
        """Return the hidden layer with the features appended.

        It is computed when needed if the features are, or if it is too large.
        """
        if self.V is None:
            return self._hidden(F)
        V, width = self.V, self.V.shape[1] + F.shape[1]
        if in_memory(F) is not None and not are_too_large(len(F), width, devices.of(V)):
            return self._hidden(F)

        def make(rows: Numbers | slice) -> Array:
            part = F[rows]
            return np.hstack([np.maximum(part @ V, 0), part])

        return Computed((len(F), width), make, V)

    def _hidden(self, F: Matrix, W: Array | None = None) -> Array:
        """Return the hidden layer with the features appended, times W unless None."""
        if self.V is None:
            raise ValueError("the hash function is not prepared")
        V = self.V

        def compute(rows: slice) -> Array:
            part = F[rows]
            hidden = np.hstack([np.maximum(part @ V, 0), part])
            return hidden if W is None else hidden @ W

        with threads.pool() as run:
            parts = Chunks(
                len(F), devices.of(F).rows(POINTS_PER_TASK, V.shape[1] + F.shape[1]), run
            )
            return parts.join(compute)


def _check_layer(n_hidden: object, dropout: object, noise: object) -> None:
    if n_hidden is not None:
        integer("n_hidden", n_hidden, 1, instead=" or None")
    if noise is not None:
        number("noise", noise, 0, instead=" or None")
    if dropout is not None and number("dropout", dropout, 0, instead=" or None") >= 1:
        raise ValueError(f"dropout must be below 1, got {dropout}")


def network(
    C: float = 100.0,
    n_hidden: int | None = None,
    dropout: float | None = None,
    noise: float | None = None,
) -> NetworkHash:
    """A neural network: one layer of `n_hidden` rectified linear units, shared by all bits.

    Args:
        dropout: share of the hidden units that are left out in each step of refinement.
        noise: added to the features in each step, in units of their deviation.

    What is None is set as suits the number of training points.
    """
    _check_layer(n_hidden, dropout, noise)
    return NetworkHash(n_hidden, C=C, dropout=dropout, noise=noise, thinned=True)
