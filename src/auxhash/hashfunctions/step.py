"""The h step: train one classifier per bit, from X to the columns of Z."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from auxhash.checks import unknown
from auxhash.codes import Codes, sign
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.device import CPU, Device
from auxhash.compute.peers import peers
from auxhash.hashfunctions.classifiers import ClassifierHash, boosted_trees
from auxhash.hashfunctions.linear import linear, rbf
from auxhash.hashfunctions.network import network
from auxhash.hashfunctions.smooth import Smooth

CHUNK = 16384  # points encoded at a time
NAMES = ("linear", "rbf", "network", "trees")


class HashFunction(Protocol):
    """b one-bit classifiers of the same features. Immutable: fitting returns a new one."""

    def prepare(self, X: NDArray[Any], rng: np.random.Generator) -> Self:
        """Learn from raw X (n, D) how to compute features from it: scaling, centres."""

    def features(self, X: NDArray[Any], n_jobs: int | None = None) -> Array:
        """Features (n, F) of raw X; of a training set they are computed once."""

    def refit(
        self,
        F: Array,
        Z: Codes,
        bits: NDArray[np.int64],
        weight: Array | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Train the given bits on the columns of Z (n, b), points weighted by `weight` (n, b)."""

    def take(self, other: Self, bits: NDArray[np.int64]) -> Self:
        """This hash function with the given bits of another."""

    def decision(self, F: Array, n_jobs: int | None = None) -> Array:
        """Real-valued outputs (n, b); a bit is +1 where its output is not negative."""


class SmoothHashFunction(HashFunction, Protocol):
    """A hash function that refinement can improve: its outputs have gradients."""

    def smooth(self, F: Array, rng: np.random.Generator, device: Device = CPU) -> Smooth:
        """Its outputs for the training features F, as a function of its parameters."""

    def moved(self, weights: list[Array]) -> Self:
        """This hash function with other parameters, as `Smooth.weights` gives them."""


class StartedLinearly(SmoothHashFunction, Protocol):
    """A hash function that can be trained by gradients alone, from projections of its features."""

    def with_linear(self, W: Array) -> Self:
        """This hash function with the outputs F @ W, W (F, b), of its features, to start from."""


class Averageable(HashFunction, Protocol):
    """A hash function that can be averaged with another that was trained from it."""

    def average(self, other: Self, share: float, F: Array) -> Self:
        """This hash function moved towards another by `share` of the way; F scales the outputs."""


def is_averageable(h: HashFunction) -> TypeGuard[Averageable]:
    return hasattr(h, "average")


def is_started_linearly(h: HashFunction) -> TypeGuard[StartedLinearly]:
    return is_smooth(h) and hasattr(h, "with_linear")


def is_smooth(h: HashFunction) -> TypeGuard[SmoothHashFunction]:
    return hasattr(h, "smooth") and hasattr(h, "moved")


def get(hash_function: Any, C: float) -> HashFunction:
    """A hash function from its name or from a scikit-learn classifier, or the given one itself."""
    if isinstance(hash_function, str):
        if hash_function not in NAMES:
            raise unknown("hash_function", hash_function, NAMES, "a scikit-learn classifier")
        if hash_function == "trees":
            return boosted_trees()
        if hash_function == "network":
            return network(C)
        return linear(C) if hash_function == "linear" else rbf(C)
    if all(hasattr(hash_function, name) for name in ("prepare", "refit", "take", "decision")):
        made: HashFunction = hash_function
        return made
    if hasattr(hash_function, "fit") and hasattr(hash_function, "get_params"):
        return ClassifierHash(hash_function)
    raise TypeError(
        "hash_function must be a name or a scikit-learn classifier, "
        f"got {type(hash_function).__name__}"
    )


def renewed(learnt: Any, wanted: Any) -> Any:
    """A learnt hash function to go on from, with the cost C that is wanted now.

    Raises ValueError where another kind of hash function is wanted.
    """
    if _kind(learnt) != _kind(wanted):
        told = " and ".join(" of ".join(reversed(_kind(h))) for h in (learnt, wanted))
        raise ValueError(
            f"hash_function must stay what it was to go on with it (warm_start): {told} differ"
        )
    return replace(learnt, C=wanted.C) if hasattr(wanted, "C") else learnt


def _kind(h: Any) -> list[str]:
    parts = h, getattr(h, "map", None), getattr(h, "classifier", None)
    return [type(part).__name__ for part in parts if part is not None]


def outputs(h: HashFunction, X: NDArray[Any], n_jobs: int | None = None) -> Array:
    """Real-valued outputs (n, b) of a fitted hash function for raw X (n, D)."""
    return h.decision(h.features(X, n_jobs), n_jobs)


@threads.one_blas_thread()
def decided(of_chunk: Callable[[NDArray[Any]], Array], X: NDArray[Any]) -> Array:
    """Outputs (n, b) for raw X, from a function that gives them for a chunk of it.

    Raises ValueError where an output is NaN, which has no sign.
    """
    chunks = range(0, len(X), CHUNK)
    found: Array = np.concatenate([of_chunk(X[at : at + CHUNK]) for at in chunks])
    if np.isnan(found).any():
        row = int(np.flatnonzero(np.isnan(found).any(axis=1))[0])
        raise ValueError(
            f"X holds numbers too far from the training points: row {row} has outputs that "
            "are no numbers"
        )
    return found


def codes(h: HashFunction, F: Array, n_jobs: int | None = None) -> Codes:
    """h(X) (n, b) of a fitted hash function, from the features F of X."""
    return sign(h.decision(F, n_jobs))


def h_step(
    h: HashFunction,
    H: Codes | None,
    F: Array,
    Z: Codes,
    bits: NDArray[np.int64],
    weight: Array | None = None,
    n_jobs: int | None = None,
) -> tuple[HashFunction, Codes]:
    """Refit the given bits of h to Z; return the new hash function and its codes for features F.

    H holds the codes of the old h. The SVM minimises a surrogate of the number of misclassified
    points, and can misclassify more of them than the old classifier of the bit: then the bit keeps
    the old one, so that the h step never raises L_P, eq. (5).
    """
    if not len(bits) and H is not None:
        return h, H
    new = h.refit(F, Z, bits, weight, n_jobs)
    new_H = codes(new, F, n_jobs)
    if H is None:
        return new, new_H
    cost = 1.0 if weight is None else weight
    wrong = np.stack([(cost * (some != Z)).sum(0) for some in (new_H, H)])
    new_wrong, old_wrong = peers().sum(wrong)
    worse = np.flatnonzero(new_wrong > old_wrong)
    if len(worse):
        new = new.take(h, worse)
        new_H[:, worse] = H[:, worse]
    return new, new_H
