"""The features that a hash function computes from X: X scaled, or radial basis functions of it.

Every map takes raw X. Scaling by one global range keeps the relative sizes of the features, and
gives the SVM's C and the bias the same meaning for any data.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import DTypeLike

from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import (
    AnyArray,
    Array,
    Computed,
    Matrix,
    Numbers,
    Resident,
    Single,
    fits_single,
)
from auxhash.compute.checks import integer, number, numbers
from auxhash.compute.distances import squared_distances
from auxhash.compute.neighbors import normalized
from auxhash.compute.peers import peers, share
from auxhash.compute.registry import register

FREE_MEMORY_SHARE = 0.2  # of a GPU's free memory, that features in both precisions may take
SINGLE_MEMORY_SHARE = 0.4  # that those in single precision alone may take
TINY = float(np.finfo(np.float32).tiny)
MAX_FEATURE_BYTES = 1 << 28  # of all parts; of more, rows are computed when needed
MIN_POINTS_PER_FEATURE = 8  # of features that are computed when needed
POINTS_PER_CHUNK = 4096  # points whose features are computed at once
N_WIDTH_POINTS = 300  # points whose mean distance is the width of radial basis functions


class FeatureMap(Protocol):
    """A map from raw X (n, D) to features (n, F)."""

    def fit(self, X: AnyArray, rng: np.random.Generator) -> "FeatureMap":
        """Return a new map, learnt from the training points."""

    def __call__(self, X: AnyArray) -> Array: ...


def rows_of(features: FeatureMap, X: AnyArray, width: int) -> Matrix | None:
    """Return features (n, width) of X, a 1 appended, as a `Computed` matrix; None if needless.

    Those of large sets are computed when needed, if the map costs less than what is done with the
    features; on a GPU they come in both precisions, on the processor they are those of the array,
    to the last bit.
    """
    n, device = len(X), devices.of(X)
    if not isinstance(features, Scaled | Unit):
        return None

    def make(rows: Numbers | slice, dtype: DTypeLike = np.float64) -> AnyArray:
        chosen = X[rows]
        out: AnyArray = device.empty((len(chosen), width), dtype)
        features.into(chosen, out[:, :-1])
        out[:, -1] = 1
        return out

    direct = isinstance(features, Unit) or (fits_single(X) and TINY < features.width < 1 / TINY)

    def single(rows: Numbers | slice) -> Single:
        return make(rows, np.float32) if direct else make(rows).astype(np.float32)

    if device is devices.CPU:
        if not are_too_large(n, width, device):
            return None
        return Computed((n, width), make, X, single if direct and fits_single(X) else None)
    if n * width * 12 <= FREE_MEMORY_SHARE * device.free():
        F = make(slice(None))
        return Resident(F, F.astype(np.float32))
    if n * width * 4 <= SINGLE_MEMORY_SHARE * device.free():
        kept: Single = device.empty((n, width), np.float32)
        for rows in threads.chunks(n, device.rows(POINTS_PER_CHUNK, width)):
            kept[rows] = single(rows)
        return Computed((n, width), make, X, kept.__getitem__)
    return Computed((n, width), make, X, single)


def are_too_large(n: int, width: int, device: devices.Device) -> bool:
    """Return True if features (n, width) are to be computed when needed, not kept in memory.

    One process may hold all parts, if there are several. How many it does hold must not matter:
    what is learnt depends, in its last digits, on what is held.
    """
    if device is devices.CPU:
        return n * width * 8 > MAX_FEATURE_BYTES / peers().n and n >= MIN_POINTS_PER_FEATURE * width
    return n * width * 8 > FREE_MEMORY_SHARE * device.free()


def largest(X: AnyArray) -> float:
    """Return the bytes that features of a training set may take on the device of X."""
    device = devices.of(X)
    if device is devices.CPU:
        return MAX_FEATURE_BYTES / peers().n
    return FREE_MEMORY_SHARE * device.free()


def with_one(F: Array) -> Array:
    """Return F with a column of 1 appended."""
    extended: Array = devices.of(F).empty((len(F), F.shape[1] + 1))
    extended[:, :-1], extended[:, -1] = F, 1.0
    return extended


def moments(features: FeatureMap, X: AnyArray) -> tuple[Array, Array]:
    """Return mean and variance of each feature of X, over the points of all parts."""
    n = peers().sum(len(X))
    if not isinstance(X, Computed) and X.size * 8 <= largest(X):
        F = features(X)
        mean = peers().sum(F.sum(axis=0)) / n
        return mean, peers().sum(np.square(F - mean).sum(axis=0)) / n
    chunks = threads.chunks(len(X), devices.of(X).rows(POINTS_PER_CHUNK, X.shape[1]))
    total, squares = devices.of(X).zeros((2, features(X[:0]).shape[1]))
    for rows in chunks:
        total += features(X[rows]).sum(axis=0)
    mean = peers().sum(total) / n
    for rows in chunks:
        squares += np.square(features(X[rows]) - mean).sum(axis=0)
    return mean, peers().sum(squares) / n


@register("Scaled")
@dataclass(frozen=True)
class Scaled:
    """X scaled by one range for all features, that of the training set, to [0, 1]."""

    low: float = 0.0
    width: float = 1.0

    def check_read(self) -> None:
        number("low", self.low, -np.inf)
        number("width", self.width, 0, strict=True)

    def fit(self, X: AnyArray, rng: np.random.Generator) -> "Scaled":
        low, high = peers().least(float(X.min())), peers().most(float(X.max()))
        if not np.isfinite(high - low):
            raise ValueError(
                f"X reaches from {low:.3g} to {high:.3g}, more than double precision can span: "
                "scale it first"
            )
        return Scaled(low, high - low if high > low else 1.0)

    def __call__(self, X: AnyArray) -> Array:
        F: Array = devices.of(X).empty(X.shape)
        self.into(X, F)
        return F

    def into(self, X: AnyArray, F: AnyArray) -> None:
        """Write the features into F, in its precision."""
        np.subtract(X, self.low, out=F, dtype=F.dtype)
        F /= self.width


@register("Unit")
@dataclass(frozen=True)
class Unit:
    """X scaled row by row to unit length, for cosine similarity; a row of zeros stays as it is."""

    def fit(self, X: AnyArray, rng: np.random.Generator) -> "Unit":
        return self

    def __call__(self, X: AnyArray) -> Array:
        return normalized(X)

    def into(self, X: AnyArray, F: AnyArray) -> None:
        """Write the features into F, in its precision."""
        F[:] = normalized(X)


@register("RadialBasis")
@dataclass(frozen=True)
class RadialBasis:
    """exp(-|x-c|^2 / (2 sigma^2)) for centres c drawn from the training set.

    sigma is the mean distance among the first 300 training points, as in the paper; of points in
    several parts, each gives its share of the centres and of these points.
    """

    n_centers: int = 500
    scaled: Scaled | Unit = field(default_factory=Scaled)
    centers: Array | None = None  # (n_centers, D), scaled
    sigma: float = 1.0

    TRAINING_ONLY: ClassVar[tuple[str, ...]] = ("n_centers",)

    def check_read(self) -> None:
        integer("n_centers", self.n_centers, 1)
        number("sigma", self.sigma, 0, strict=True)
        if self.centers is not None:
            numbers("centers", self.centers, 2)
        if not isinstance(self.scaled, Scaled | Unit):
            raise ValueError("scaled must be a Scaled or a Unit")

    def fit(self, X: AnyArray, rng: np.random.Generator) -> "RadialBasis":
        scaled = self.scaled.fit(X, rng)
        drawn = np.sort(rng.permutation(len(X))[: share(self.n_centers, len(X))])
        chosen = devices.of(X).put(drawn)
        first = peers().join(scaled(X[: share(N_WIDTH_POINTS, len(X))]))
        distance = np.sqrt(squared_distances(first, first))
        pairs = len(first) * (len(first) - 1)
        sigma = float(distance.sum() / pairs) if distance.any() else 1.0
        return replace(self, scaled=scaled, centers=peers().join(scaled(X[chosen])), sigma=sigma)

    def __call__(self, X: AnyArray) -> Array:
        if self.centers is None:
            raise ValueError("the feature map is not fitted")
        return np.exp(squared_distances(self.scaled(X), self.centers) / (-2 * self.sigma**2))
