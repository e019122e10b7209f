"""Hash functions of the baselines: arrays, and how outputs are computed from them.

None of them can be trained again: each has `decision` alone. Most are `WeightedHash`, one weight
per bit and feature, over a feature map of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from auxhash.codes import Codes
from auxhash.compute import neighbors
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.checks import integer, number, numbers
from auxhash.compute.distances import squared_distances
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions.protocol import BaseHash

MIN_PROBABILITY = 1e-12  # smaller probabilities are raised to it, since log(0) is infinite


class FixedHash(BaseHash):
    """A hash function that is not trained any further: its features are the points."""

    def prepare(self, X: AnyArray, rng: np.random.Generator) -> Self:
        return self

    def features(self, X: AnyArray) -> AnyArray:
        return X

    def refit(self, *training: object) -> Self:
        raise TypeError(f"{type(self).__name__} is learnt by a baseline, and cannot be trained")

    def take(self, *other: object) -> Self:
        return self.refit()


@register("Centred")
@dataclass(frozen=True)
class Centred:
    """X - mean."""

    mean: Array  # (D,)

    def check_read(self) -> None:
        numbers("mean", self.mean, 1)

    def __call__(self, X: AnyArray) -> Array:
        return np.asarray(X - self.mean, np.float64)


@register("KernelMap")
@dataclass(frozen=True)
class KernelMap:
    """Kernels between X - mean and points, less their own mean: exp(-d^2 / (2 width)), or x'p."""

    points: Array  # (m, D)
    width: float | None = None  # None: inner products
    mean: Array | None = None  # (D,)
    kernel_mean: Array | None = None  # (m,)

    def check_read(self) -> None:
        numbers("points", self.points, 2)
        if self.width is not None:
            number("width", self.width, 0, strict=True)
        for name in ("mean", "kernel_mean"):
            if getattr(self, name) is not None:
                numbers(name, getattr(self, name), 1)

    def __call__(self, X: AnyArray) -> Array:
        X = np.asarray(X, np.float64)
        centred = X if self.mean is None else X - self.mean
        if self.width is None:
            kernels = centred @ self.points.T
        else:
            kernels = np.exp(squared_distances(centred, self.points) / (-2 * self.width))
        return kernels if self.kernel_mean is None else kernels - self.kernel_mean


@register("LogProbabilities")
@dataclass(frozen=True)
class LogProbabilities:
    """Log-probabilities of the classes, by a scikit-learn classifier, less their mean."""

    classifier: Any
    mean: Array | None = None  # (n_classes,)

    def check_read(self) -> None:
        if self.mean is not None:
            numbers("mean", self.mean, 1)

    def __call__(self, X: AnyArray) -> Array:
        probability = self.classifier.predict_proba(np.asarray(X, np.float64))
        logarithms = np.asarray(np.log(np.maximum(probability, MIN_PROBABILITY)), np.float64)
        return logarithms if self.mean is None else logarithms - self.mean


@register("WeightedHash")
@dataclass(frozen=True)
class WeightedHash(FixedHash):
    """h(x) = sign(W'f(x)), f a feature map; no bias."""

    map: Callable[[AnyArray], Array]  # features
    W: Array  # (F, b)

    def check_read(self) -> None:
        numbers("W", self.W, 2)

    def decision(self, F: Any) -> Array:
        return np.asarray(self.map(F) @ self.W, np.float64)


@register("Eigenfunctions")
@dataclass(frozen=True)
class Eigenfunctions(FixedHash):
    """h(x) = sign(cos(omega (a'(x - mean) - low))): those of the Laplacian on a box."""

    mean: Array  # (D,)
    axes: Array  # (D, b)
    low: Array  # (b,)
    omega: Array  # (b,)

    def check_read(self) -> None:
        numbers("axes", self.axes, 2)
        for name in ("mean", "low", "omega"):
            numbers(name, getattr(self, name), 1)

    def decision(self, F: Any) -> Array:
        place = (F - self.mean) @ self.axes - self.low
        return np.asarray(np.cos(self.omega * place), np.float64)


@register("Spheres")
@dataclass(frozen=True)
class Spheres(FixedHash):
    """h(x) = +1 inside a sphere: its squared radius is at least |x - pivot|^2."""

    pivots: Array  # (b, D)
    radii: Array  # (b,), squared

    def check_read(self) -> None:
        numbers("pivots", self.pivots, 2)
        numbers("radii", self.radii, 1)

    def decision(self, F: Any) -> Array:
        return self.radii - squared_distances(np.asarray(F, np.float64), self.pivots)


@register("AnchorGraph")
@dataclass(frozen=True)
class AnchorGraph(FixedHash):
    """Eigenvectors of a graph in which points are tied to their nearest anchors."""

    anchors: Array  # (m, D)
    width: float  # of the kernel exp(-d^2 / width^2)
    n_nearest: int  # anchors that a point is tied to
    weights: Array  # (m, number of eigenvectors)
    thresholds: Array | None = None  # (2, number of eigenvectors), of a second layer
    n_bits: int = 0  # of both layers together, if there are two

    def check_read(self) -> None:
        numbers("anchors", self.anchors, 2)
        number("width", self.width, 0, strict=True)
        integer("n_nearest", self.n_nearest, 1, len(self.anchors))
        numbers("weights", self.weights, 2)
        if self.thresholds is not None:
            numbers("thresholds", self.thresholds, 2)
            integer("n_bits", self.n_bits, 1)

    def ties(self, X: AnyArray) -> Array:
        """Return Z (n, m), with `n_nearest` entries per row, which sum to 1."""
        near, distance = neighbors.nearest(self.anchors, X, self.n_nearest)
        # Relative to the nearest anchor, so that a point far from all anchors is tied to some.
        kernel = np.exp((distance[:, :1] - distance) / self.width**2)
        Z = np.zeros((len(X), len(self.anchors)))
        np.put_along_axis(Z, near, kernel / kernel.sum(axis=1, keepdims=True), axis=1)
        return Z

    def decision(self, F: Any) -> Array:
        Y = self.ties(F) @ self.weights
        if self.thresholds is None:
            return Y
        positive, negative = self.thresholds
        second = np.where(Y >= 0, Y - positive, negative - Y)
        return np.hstack([Y, second])[:, : self.n_bits]


@register("Codewords")
@dataclass(frozen=True)
class Codewords(FixedHash):
    """The codeword of the class that a scikit-learn classifier predicts."""

    classifier: Any
    codewords: Codes  # (n_classes, b)

    def decision(self, F: Any) -> Array:
        predicted = self.classifier.predict(np.asarray(F, np.float64))
        number = np.searchsorted(self.classifier.classes_, predicted)
        return np.asarray(self.codewords[number], np.float64)
