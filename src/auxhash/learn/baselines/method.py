"""Base classes of the baselines, whose `fit` checks, learns and encodes the training points."""

from typing import Self

import numpy as np

from auxhash.codes import MAX_BITS
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array, ArrayLike
from auxhash.compute.random import RandomState, generator
from auxhash.learn.hasher import (
    Hasher,
    check_labelled,
    check_pairs,
    check_points,
    fingerprint,
    kept_labels,
    learning,
)
from auxhash.mac.affinity import Affinity
from auxhash.mac.hashfunctions import encoded
from auxhash.model.fitted import check_stored

SMALLEST = 1e-100  # the largest number of X lies between this and 1 / this: squares stay in range


class Method(Hasher):
    """A hasher whose training codes are its outputs on the training points."""

    random_state: RandomState = None

    def _check_parameters(self) -> None:
        check_stored(self)
        checks.integer("n_bits", self.n_bits, 1, MAX_BITS)

    def _finish(self, points: AnyArray, labels: AnyArray | None) -> Self:
        self.labels_ = labels
        self.data_fingerprint_ = fingerprint(points, labels)
        self.codes_ = encoded(self._learnt_function(), points)
        return self


class Unsupervised(Method):
    """Learns from X alone, in `_learn`."""

    @learning
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from features X (n, D); y is not learnt from, only kept for `score`."""
        self._check_parameters()
        points = check_points(self, X)
        labels = kept_labels(points, y)
        self._learn(doubles(points), generator(self.random_state))
        return self._finish(points, labels)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        raise NotImplementedError


class Supervised(Method):
    """Learns from X and the labels y (n,), in `_learn`."""

    _needs_labels = True

    @learning
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from features X (n, D) and labels y (n,)."""
        self._check_parameters()
        points, labels = check_labelled(self, X, y)
        check_single(labels)
        self._learn(doubles(points), labels, generator(self.random_state))
        return self._finish(points, labels)

    def _learn(self, X: Array, y: AnyArray, rng: np.random.Generator) -> None:
        raise NotImplementedError


class Pairwise(Method):
    """Learns from X and labels, or an affinity in their place, in `_learn`."""

    _needs_labels = _takes_several_labels = True

    @learning
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, affinity: Affinity | None = None
    ) -> Self:
        """Learn from features X (n, D) and labels y, or from an affinity of the n points.

        With both, the affinity is learnt from and y is only kept for `score`.
        """
        self._check_parameters()
        points, labels = check_pairs(self, X, y, affinity)
        rng = generator(self.random_state)
        self._learn(doubles(points), labels, affinity, rng)
        return self._finish(points, labels)

    def _learn(
        self, X: Array, y: AnyArray | None, affinity: Affinity | None, rng: np.random.Generator
    ) -> None:
        raise NotImplementedError


def doubles(X: AnyArray) -> Array:
    """X in double precision; ValueError unless squares of its numbers are well within range."""
    points = np.asarray(X, np.float64)
    largest = max(points.max(), -points.min())
    if not (largest == 0 or SMALLEST < largest < 1 / SMALLEST):
        raise ValueError(
            f"the largest number of X is {largest:.3g} in size, and must lie between {SMALLEST:g} "
            f"and {1 / SMALLEST:g}: scale X first"
        )
    return points


def check_single(labels: AnyArray) -> None:
    """Raise unless each point has one label."""
    if labels.ndim != 1:
        raise ValueError(
            f"y must be of shape (n,), one label per point, for this method; got {labels.shape}"
        )


def middle(values: Array) -> Array:
    """A median per column, halfway between two values so that no point lies on the threshold."""
    ordered = np.sort(values, axis=0)
    half = len(values) // 2
    between: Array = (ordered[half - 1] + ordered[half]) / 2
    return between
