"""The methods of a hash function: five that it must have, and others that training makes use of.

A class of your own needs the methods of `HashFunction`, and no base class; with those of
`SmoothHashFunction` it can be refined, with those of `StartedLinearly` trained by gradients alone.
All else is in `BaseHash`, with the defaults: derive from it to override some of them.
"""

import os
from typing import ClassVar, Protocol, Self, TypeGuard

import numpy as np

from auxhash.codes import Codes
from auxhash.compute.arrays import AnyArray, Array, Matrix, Numbers
from auxhash.mac.hashfunctions.signs import Hyperplanes
from auxhash.mac.hashfunctions.smooth import SelfMoving, Smooth


class HashFunction(Protocol):
    """b one-bit classifiers of the same features. Immutable: fitting returns a new one.

    What it computes on several threads takes their number from `auxhash.compute.context`.
    """

    def prepare(self, X: AnyArray, rng: np.random.Generator) -> Self:
        """Learn from raw X (n, D) how to compute features from it: scaling, centres."""

    def features(self, X: AnyArray) -> Array:
        """Compute features (n, F) of raw X; of a training set they are computed once."""

    def refit(self, F: Matrix, Z: Codes, bits: Numbers, weight: Array | None = None) -> Self:
        """Train the given bits on the columns of Z (n, b), points weighted by `weight` (n, b)."""

    def take(self, other: Self, bits: Numbers) -> Self:
        """Return this hash function with the given bits of another."""

    def decision(self, F: Matrix) -> Array:
        """Return real-valued outputs (n, b); a bit is +1 where its output is not negative."""


class SmoothHashFunction(HashFunction, Protocol):
    """A hash function that refinement can improve: its outputs have gradients."""

    def smooth(self, F: Matrix, rng: np.random.Generator) -> Smooth | SelfMoving:
        """Return its outputs for training features F as a function of its parameters."""

    def moved(self, weights: list[Array]) -> Self:
        """Return this hash function with other parameters, as `Smooth.weights` returns them."""


class StartedLinearly(SmoothHashFunction, Protocol):
    """A hash function that can be trained by gradients alone, from projections of its features."""

    def with_linear(self, W: Array) -> Self:
        """Return this hash function with outputs F @ W, W (F, b), to start from."""


class BaseHash(HashFunction):
    """Base class with defaults for all that a hash function need not have.

    `TRAINING_ONLY`, `UNSTORED` and `check_read` are hooks of `compute.registry.register`, which
    other classes in files have as well.
    """

    shared = False  # whether bits share all layers: all are trained together, and `take` never used
    TRAINING_ONLY: ClassVar[tuple[str, ...]] = ()  # stored fields that no fingerprint counts
    UNSTORED: ClassVar[tuple[str, ...]] = ()  # fields that no file stores: code

    def kind(self) -> list[str]:
        """Return the names of its class and of its parts' classes, fixed in a warm start."""
        return [type(self).__name__]

    def training_features(self, X: AnyArray) -> Matrix:
        """Compute features of a training set; large ones may be computed when needed."""
        return self.features(X)

    def check_bits(self, F: Matrix, n_bits: int) -> None:
        """Raise ValueError unless it can have n_bits outputs for points like F."""

    def outputs(self, X: AnyArray) -> Array:
        """Return `decision` of the features of raw X, to the last bit."""
        return self.decision(self.features(X))

    def hyperplanes(self) -> Hyperplanes | None:
        """Return hyperplanes that give the signs of `outputs` faster; None if there are none."""
        return None

    def average(self, other: Self, share: float, F: Matrix) -> Self | None:
        """Move towards another hash function, trained from this one, by `share` of the way.

        F scales the outputs. None where no average can be taken.
        """
        return None

    def go_on_from(self, learnt: Self) -> Self:
        """Return `learnt`, of the same kind, with the settings of this one, for a warm start."""
        return learnt

    def alternatives(self, original: HashFunction) -> list[Self]:
        """Return other forms to choose among on held-out points, as far as `original` leaves open.

        `original` is the hash function as it was before it was prepared.
        """
        return []

    def blank(self, n: int) -> AnyArray | None:
        """Return n zero points of the shape and type it was prepared for; None for plain rows."""
        return None

    def unstored(self) -> dict[str, object]:
        """Return the fields that no file stores, by name; loading takes them from the user."""
        return {name: getattr(self, name) for name in self.UNSTORED}

    def check_read(self) -> None:
        """Raise ValueError if a field has a value that no fit gives: a file may hold anything."""

    def identity_parts(self) -> list[object] | None:
        """Return what a training that starts with it depends on; None stands for all its fields.

        Checkpoints and kept runs are found again by these parts (`model.identity`).
        """
        return None

    def export_onnx(self, path: str | os.PathLike[str], n_bits: int, dtype: str) -> bool:
        """Write its ONNX graph, from raw points to packed codes; return False if it has none."""
        return False


class PlainHash(BaseHash):
    """A hash function that does not derive from `BaseHash`, with the defaults."""

    def __init__(self, h: HashFunction) -> None:
        self.h = h

    def kind(self) -> list[str]:
        return [type(self.h).__name__]

    def prepare(self, X: AnyArray, rng: np.random.Generator) -> "PlainHash":
        return PlainHash(self.h.prepare(X, rng))

    def features(self, X: AnyArray) -> Array:
        return self.h.features(X)

    def refit(self, F: Matrix, Z: Codes, bits: Numbers, weight: Array | None = None) -> "PlainHash":
        return PlainHash(self.h.refit(F, Z, bits, weight))

    def take(self, other: "PlainHash", bits: Numbers) -> "PlainHash":
        return PlainHash(self.h.take(other.h, bits))

    def decision(self, F: Matrix) -> Array:
        return self.h.decision(F)


def with_defaults(h: HashFunction) -> BaseHash:
    """Return h itself, if it derives from `BaseHash`; else h with the defaults added."""
    return h if isinstance(h, BaseHash) else PlainHash(h)


def is_hash_function(candidate: object) -> TypeGuard[HashFunction]:
    return _has(candidate, "prepare", "features", "refit", "take", "decision")


def is_smooth(h: object) -> TypeGuard[SmoothHashFunction]:
    return _has(h, "smooth", "moved")


def is_started_linearly(h: object) -> TypeGuard[StartedLinearly]:
    return is_smooth(h) and _has(h, "with_linear")


def is_shared(h: object) -> bool:
    return isinstance(h, BaseHash) and h.shared


def _has(candidate: object, *methods: str) -> bool:
    """Return True if it has these methods; isinstance would not see those of a `__getattr__`."""
    return all(callable(getattr(candidate, name, None)) for name in methods)
