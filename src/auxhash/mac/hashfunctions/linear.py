"""Hash functions of one linear SVM per bit, of X itself or of radial basis functions of it."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from auxhash.codes import Codes
from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Matrix, Numbers
from auxhash.compute.checks import number, numbers
from auxhash.compute.parts import Chunks
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions import svm
from auxhash.mac.hashfunctions.features import FeatureMap, RadialBasis, Scaled, rows_of, with_one
from auxhash.mac.hashfunctions.protocol import BaseHash
from auxhash.mac.hashfunctions.signs import Hyperplanes
from auxhash.mac.hashfunctions.smooth import Principal, SmoothLinear

POINTS_PER_TASK = 4096  # points per task of a thread


@register("SVMHash")
@dataclass(frozen=True)
class SVMHash(BaseHash):
    """h(x) = sign(W'f(x)), f a feature map with a 1 appended for the bias.

    `C` is the cost of a margin violation in the h step, `decay` the weight decay in refinement.
    """

    map: FeatureMap
    C: float = 100.0
    W: Array | None = None  # (F + 1, b)
    decay: float = 0.0

    TRAINING_ONLY: ClassVar[tuple[str, ...]] = ("C", "decay")

    def check_read(self) -> None:
        number("C", self.C, 0, strict=True)
        number("decay", self.decay, 0)
        if self.W is not None:
            numbers("W", self.W, 2)

    def kind(self) -> list[str]:
        return [*super().kind(), type(self.map).__name__]

    def prepare(self, X: AnyArray, rng: np.random.Generator) -> "SVMHash":
        return replace(self, map=self.map.fit(X, rng))

    def features(self, X: AnyArray) -> Array:
        def compute(rows: slice) -> Array:
            return with_one(self.map(X[rows]))

        with threads.pool() as run:
            parts = Chunks(len(X), devices.of(X).rows(POINTS_PER_TASK, X.shape[1]), run)
            return parts.join(compute)

    def training_features(self, X: AnyArray) -> Matrix:
        computed = rows_of(self.map, X, X.shape[1] + 1)
        return self.features(X) if computed is None else computed

    def outputs(self, X: AnyArray) -> Array:
        """Return `decision` of the features of X, computed for one part of X at a time."""
        if self.W is None:
            raise ValueError("the hash function is not fitted")
        W = self.W
        with threads.pool() as run:
            parts = Chunks(len(X), devices.of(X).rows(POINTS_PER_TASK, X.shape[1]), run)
            return parts.join(lambda rows: with_one(self.map(X[rows])) @ W)

    def hyperplanes(self) -> Hyperplanes | None:
        """Return hyperplanes that give the signs of `outputs` faster; None unless linear in X."""
        if self.W is None or not isinstance(self.map, Scaled):
            return None
        return Hyperplanes.of(self.W, self.map.low, self.map.width)

    def refit(self, F: Matrix, Z: Codes, bits: Numbers, weight: Array | None = None) -> "SVMHash":
        return replace(self, W=svm.refit(self.W, F, Z, bits, self.C, weight))

    def take(self, other: "SVMHash", bits: Numbers) -> "SVMHash":
        return replace(self, W=svm.take(self.W, other.W, bits))

    def average(self, other: "SVMHash", share: float, F: Matrix) -> "SVMHash":
        return replace(self, W=svm.average(self.W, other.W, share, F))

    def go_on_from(self, learnt: "SVMHash") -> "SVMHash":
        return replace(learnt, C=self.C)

    def with_linear(self, W: Array) -> "SVMHash":
        """Return this hash function with the outputs F @ W, W (F + 1, b), to start from."""
        return replace(self, W=W)

    def smooth(
        self, F: Matrix, rng: np.random.Generator, principal: Principal | None = None
    ) -> SmoothLinear:
        if self.W is None:
            raise ValueError("the hash function is not fitted")
        return SmoothLinear(F, self.W, self.decay, rng, principal)

    def moved(self, weights: list[Array]) -> "SVMHash":
        return replace(self, W=weights[0])

    def decision(self, F: Matrix) -> Array:
        if self.W is None:
            raise ValueError("the hash function is not fitted")
        W = self.W
        with threads.pool() as run:
            parts = Chunks(len(F), devices.of(F).rows(POINTS_PER_TASK, F.shape[1]), run)
            return parts.join(lambda rows: F[rows] @ W)


def linear(C: float = 100.0) -> SVMHash:
    """One linear SVM per bit."""
    return SVMHash(Scaled(), C, decay=0.005)


def rbf(C: float = 100.0, n_centers: int = 500) -> SVMHash:
    """One kernel SVM per bit: a linear SVM of `n_centers` radial basis functions."""
    return SVMHash(RadialBasis(n_centers), C)
