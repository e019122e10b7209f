"""The h step: train one classifier per bit, from X to the columns of Z."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from auxhash.codes import Codes, Packed, pack_bits, sign
from auxhash.compute import device as devices
from auxhash.compute import kernels, lapack, threads
from auxhash.compute.arrays import AnyArray, Array, Matrix, Numbers
from auxhash.compute.checks import one_of
from auxhash.compute.parts import Chunks
from auxhash.compute.peers import peers
from auxhash.mac.hashfunctions.classifiers import ClassifierHash, boosted_trees
from auxhash.mac.hashfunctions.linear import linear, rbf
from auxhash.mac.hashfunctions.network import network
from auxhash.mac.hashfunctions.protocol import (
    HashFunction,
    SmoothHashFunction,
    is_hash_function,
    is_shared,
    is_started_linearly,
    with_defaults,
)
from auxhash.mac.hashfunctions.rotation import projections
from auxhash.mac.hashfunctions.signs import Hyperplanes

POINTS_PER_CHUNK = 16384  # points encoded at a time
POINTS_PER_TASK = 8192  # points that a thread makes quick products of at a time
MIN_QUICK_POINTS = 512  # points for which it pays to get ready for quick products
MIN_QUICK_POINTS_COLD = 1 << 15  # and for which it pays even where Numba has to be imported first
FLOATS = (np.float64, np.float32)  # other numbers are converted to the first
NAMES = ("linear", "rbf", "network", "trees")


class NotFiniteError(ValueError):
    """X holds NaN or infinity."""


OfChunk = Callable[[AnyArray], Array]  # outputs (rows, b) of some rows of X


def alternatives(h: SmoothHashFunction, original: HashFunction) -> list[SmoothHashFunction]:
    """Return h and its other forms to choose among on held-out points.

    They differ in what `original`, h before it was prepared, leaves open.
    """
    return [h, *cast("list[SmoothHashFunction]", with_defaults(h).alternatives(original))]


def check_started(h: HashFunction) -> None:
    """Raise TypeError unless h has a start for gradient steps alone."""
    if not (is_shared(h) or is_started_linearly(h)):
        raise TypeError(
            f"{type(h).__name__} cannot be trained by gradients alone: it must have them, and a "
            'linear start, as "linear", "rbf" and "network" have, or be a PyTorch module'
        )


def started(
    h: HashFunction, F: Matrix, n_bits: int, rng: np.random.Generator
) -> SmoothHashFunction:
    """Return a prepared hash function to begin gradient steps with.

    A module has weights of its own; others start from projections of the features.
    """
    check_started(h)
    if is_started_linearly(h):
        device = devices.of(F)
        return h.with_linear(device.put(projections(F, n_bits, rng)))
    return cast("SmoothHashFunction", h)


def get(hash_function: object, C: float) -> HashFunction:
    """Return a hash function from its name, a scikit-learn classifier or a hash function."""
    if isinstance(hash_function, str):
        one_of("hash_function", hash_function, NAMES, "a scikit-learn classifier")
        if hash_function == "trees":
            return boosted_trees()
        if hash_function == "network":
            return network(C)
        return linear(C) if hash_function == "linear" else rbf(C)
    if is_hash_function(hash_function):
        return hash_function
    if hasattr(hash_function, "fit") and hasattr(hash_function, "get_params"):
        from sklearn.base import clone  # imported for training alone

        return ClassifierHash(clone(hash_function))  # without what it has learnt elsewhere
    if hasattr(hash_function, "state_dict"):
        raise TypeError(
            "hash_function must say how a PyTorch module is to be trained: give "
            "auxhash.torch.ModuleHash(module)"
        )
    raise TypeError(
        "hash_function must be a name or a scikit-learn classifier, "
        f"got {type(hash_function).__name__}"
    )


def renewed(learnt: Any, wanted: HashFunction) -> HashFunction:
    """Return a learnt hash function to go on from, with the cost C that is wanted now.

    Raises ValueError where another kind of hash function is wanted.
    """
    kinds = [with_defaults(h).kind() for h in (learnt, wanted)]
    if kinds[0] != kinds[1]:
        both = " and ".join(" of ".join(reversed(kind)) for kind in kinds)
        raise ValueError(
            f"hash_function must stay what it was to go on with it (warm_start): {both} differ"
        )
    return with_defaults(wanted).go_on_from(learnt)


def training_features(h: HashFunction, X: AnyArray) -> Matrix:
    """Return the features of a training set: an array or, if large, computed when needed.

    Either way they are the same, to the last bit.
    """
    return with_defaults(h).training_features(X)


def outputs(h: HashFunction, X: AnyArray) -> Array:
    """Return the real-valued outputs (n, b) of a fitted hash function for raw X (n, D)."""
    return with_defaults(h).outputs(X)


def decided(of_chunk: OfChunk, X: AnyArray) -> Array:
    """Return outputs (n, b) for raw X, from a function that computes them for a chunk.

    Raises ValueError where an output is NaN, which has no sign.
    """
    return np.concatenate([*_decided(of_chunk, X)])


def packed(of_chunk: OfChunk, X: AnyArray, finite: bool = True) -> Packed:
    """Return packed codes (n, n_bytes), computed chunk by chunk to save memory.

    If X is not known to be `finite`, NotFiniteError is raised where it is not.
    """
    return np.concatenate([pack_bits(values >= 0) for values in _decided(of_chunk, X, finite)])


def encoded(h: HashFunction, X: AnyArray, finite: bool = True) -> Packed:
    """Return packed codes (n, n_bytes) of a fitted hash function for raw X (n, D).

    They are those of `packed`, to the last bit; those of many points and linear functions come in
    about the time of a product, which shows numbers that are not finite as well: X need not be
    read once more.
    """

    def of_chunk(chunk: AnyArray) -> Array:
        return outputs(h, chunk)

    many = len(X) >= (MIN_QUICK_POINTS if kernels.loaded() else MIN_QUICK_POINTS_COLD)
    hyperplanes = with_defaults(h).hyperplanes() if many else None
    if hyperplanes is None:
        return packed(of_chunk, X, finite)
    lapack.load()  # kernels multiply with its library
    own = threading.local()

    def of_part(rows: slice, hyperplanes: Hyperplanes = hyperplanes) -> Packed:
        part_codes = hyperplanes.codes(X[rows], own.__dict__)  # which is the thread's own
        if part_codes is None:
            return pack_bits(_outputs(of_chunk, X, rows, finite) >= 0)
        return part_codes

    with threads.pool() as run:
        return Chunks(len(X), POINTS_PER_TASK, run).join(of_part)


def _decided(of_chunk: OfChunk, X: AnyArray, finite: bool = True) -> Iterator[Array]:
    """Yield the outputs of each chunk."""
    size = POINTS_PER_CHUNK if devices.of(X) is devices.CPU else devices.ROWS_PER_TASK
    for rows in threads.chunks(len(X), size):
        yield _outputs(of_chunk, X, rows, finite)


def _outputs(of_chunk: OfChunk, X: AnyArray, rows: slice, finite: bool = True) -> Array:
    """Return the outputs of these rows; integers and half precision are converted first.

    Pictures, which have more axes, are the hash function's own matter.
    """
    chunk = X[rows]
    if not finite and not np.isfinite(chunk).all():
        raise NotFiniteError("X must not hold NaN or infinity")
    with threads.one_blas_thread():
        plain = chunk.dtype in FLOATS or chunk.ndim > 2
        values = of_chunk(chunk if plain else chunk.astype(np.float64))
    if np.isnan(values).any():
        row = rows.start + int(np.isnan(values).any(axis=1).argmax())
        raise ValueError(
            f"X holds numbers too far from the training points: row {row} has outputs that "
            "are no numbers"
        )
    return values


def codes(h: HashFunction, F: Matrix) -> Codes:
    """Return the codes h(X) (n, b) of a fitted hash function, from the features F of X."""
    return sign(h.decision(F))


def h_step(
    h: HashFunction,
    H: Codes | None,
    F: Matrix,
    Z: Codes,
    bits: Numbers,
    weight: Array | None = None,
    monotone: bool = True,
) -> tuple[HashFunction, Codes]:
    """Refit the given bits of h to Z (sec. 3.2); return the new h and its codes for features F.

    H holds the codes of the old h. The SVM minimises a surrogate of the number of misclassified
    points, and can misclassify more of them than the old classifier of the bit: if `monotone`, the
    bit then keeps the old one, so that the h step never raises L_P, eq. (5). Where bits share
    layers, no single bit can keep its old classifier: all do, if the new ones misclassify more
    entries of Z in sum, which is what L_P counts. Fig. 1 fits every bit without this condition.
    """
    if not len(bits) and H is not None:
        return h, H
    new = h.refit(F, Z, bits, weight)
    new_H = codes(new, F)
    if H is None or not monotone:
        return new, new_H
    cost = 1.0 if weight is None else weight
    both = np.stack([(cost * (predicted != Z)).sum(0) for predicted in (new_H, H)])
    wrong, was_wrong = devices.of(both).fetch(peers().sum(both))
    if is_shared(h):
        return (new, new_H) if wrong.sum() <= was_wrong.sum() else (h, H)
    worse = np.flatnonzero(wrong > was_wrong)
    if len(worse):
        new = new.take(h, worse)
        at = devices.of(H).put(worse)
        new_H[:, at] = H[:, at]
    return new, new_H
