"""The skeleton of a compared method: check, learn, encode the training points."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from auxhash import checks
from auxhash.affinity import Affinity
from auxhash.affinity.draws import RandomState, generator
from auxhash.codes import pack, sign
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.hasher import FLOATS, Hasher, check_pairs, fingerprint
from auxhash.storage.fitted import check_stored

SMALLEST = 1e-100  # size of the largest feature; its square is far from the end of the range


class Method(Hasher):
    """A hasher whose training codes are its outputs on the training points."""

    random_state: RandomState = None

    def _check_parameters(self) -> None:
        check_stored(self)
        checks.whole("n_bits", self.n_bits, 1)

    def _finish(self, points: NDArray[Any], labels: NDArray[Any] | None) -> Self:
        self.labels_ = labels
        self.fingerprint_ = fingerprint(points, labels)
        self.codes_ = pack(sign(self._decide(points)))
        return self


class Unsupervised(Method):
    """Learns from X alone, in `_learn`."""

    @threads.one_blas_thread()
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from features X (n, D); y plays no part, and is only kept for `score`."""
        self._check_parameters()
        checks.unmasked("X", X)
        points = validate_data(self, X, dtype=FLOATS, ensure_min_samples=2)
        labels = kept_labels(points, y)
        self._learn(doubles(points), generator(self.random_state))
        return self._finish(points, labels)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        raise NotImplementedError


class Supervised(Method):
    """Learns from X and the labels y (n,), in `_learn`."""

    @threads.one_blas_thread()
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from features X (n, D) and labels y (n,)."""
        self._check_parameters()
        checks.unmasked("X", X)
        y = checks.unmixed("y", y)
        points, labels = validate_data(self, X, y, dtype=FLOATS, ensure_min_samples=2)
        check_classification_targets(labels)
        self._learn(doubles(points), labels, generator(self.random_state))
        return self._finish(points, labels)

    def _learn(self, X: Array, y: NDArray[Any], rng: np.random.Generator) -> None:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class Pairwise(Method):
    """Learns from X and labels, or an affinity in their place, in `_learn`."""

    @threads.one_blas_thread()
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, affinity: Affinity | None = None
    ) -> Self:
        """Learn from features X (n, D) and labels y, or from an affinity of the n points.

        With both, the affinity is learnt from and y only serves `score`.
        """
        self._check_parameters()
        points, labels = check_pairs(self, X, y, affinity)
        rng = generator(self.random_state)
        self._learn(doubles(points), labels, affinity, rng)
        return self._finish(points, labels)

    def _learn(
        self,
        X: Array,
        y: NDArray[Any] | None,
        affinity: Affinity | None,
        rng: np.random.Generator,
    ) -> None:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def doubles(X: NDArray[Any]) -> Array:
    """X in double precision, if squares of its numbers stay well within the double range."""
    points = np.asarray(X, np.float64)
    largest = max(points.max(), -points.min())
    if not (largest == 0 or SMALLEST < largest < 1 / SMALLEST):
        raise ValueError(
            f"the largest number of X is {largest:.3g} in size, and must lie between {SMALLEST:g} "
            f"and {1 / SMALLEST:g}: scale X first"
        )
    return points


def kept_labels(points: NDArray[Any], y: ArrayLike | None) -> NDArray[Any] | None:
    """Labels that are not learnt from, for `score`; there must be one a point."""
    if y is None:
        return None
    check_consistent_length(points, y)
    return np.asarray(y.toarray() if hasattr(y, "toarray") else y)


def middle(values: Array) -> Array:
    """The median of each column, halfway between two points: no point sits on the threshold."""
    ordered = np.sort(values, axis=0)
    half = len(values) // 2
    between: Array = (ordered[half - 1] + ordered[half]) / 2
    return between
