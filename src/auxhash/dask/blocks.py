"""Dask collections as partitions, checked before anything is trained."""

import hashlib
import warnings
from typing import Any, NamedTuple

import dask
import numpy as np
from numpy.typing import NDArray

from auxhash.compute.checks import ArgumentError
from auxhash.compute.cluster import Cluster
from auxhash.compute.words import count
from auxhash.dask.learning import Described, describe

SAID = 5  # partitions that a message names
KINDS = {"U": "text", "M": "dates"}  # of labels that are no numbers, by NumPy's letter


class Blocks(NamedTuple):
    """The partitions that hold points: lazy values of dask, X and y of each."""

    X: list[Any]
    y: list[Any]
    n_features: int
    names: NDArray[Any] | None  # of the features of a dataframe


def is_lazy(X: Any) -> bool:
    """Whether X is a collection of dask: an array, a dataframe, a series."""
    return bool(dask.is_dask_collection(X))


def rows_of(X: Any, name: str) -> list[Any]:
    """The partitions of a dask array (chunks along its rows) or dataframe, as lazy values."""
    if not hasattr(X, "chunks"):
        return list(X.to_delayed())
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    if X.ndim not in (1, 2):
        raise ArgumentError(f"{name} must have one or two axes, got shape {X.shape}")
    return list(X.to_delayed().ravel())


def columns_of(X: Any) -> tuple[int, NDArray[Any] | None]:
    """The number of features, and their names where a dataframe has any."""
    if hasattr(X, "chunks"):
        if X.ndim != 2 or np.isnan(X.shape[1]):
            raise ArgumentError(f"X must be of shape (n, D) with a known D, got shape {X.shape}")
        return int(X.shape[1]), None
    names = list(X.columns)
    if all(isinstance(name, str) for name in names):
        return len(names), np.array(names, object)
    return len(names), None


def check(X: Any, y: Any) -> Blocks:
    """The partitions of X and y, which are cut alike; ArgumentError if they are not."""
    for name, given in (("X", X), ("y", y)):
        if given is None or not is_lazy(given) or not hasattr(given, "to_delayed"):
            kind = "None" if given is None else type(given).__name__
            raise ArgumentError(
                f"{name} must be a dask array or dataframe, got {kind}: use "
                "dask.array.from_array, or MACHash for data on one machine"
            )
    sizes = [given.chunks[0] if hasattr(given, "chunks") else (np.nan,) for given in (X, y)]
    if not any(np.isnan(some).any() for some in sizes) and sizes[0] != sizes[1]:
        if sum(sizes[0]) != sum(sizes[1]):
            raise ArgumentError(f"X has {sum(sizes[0])} rows, but y has {sum(sizes[1])}")
        y = y.rechunk({0: sizes[0]})
    blocks, labels = rows_of(X, "X"), rows_of(y, "y")
    if len(blocks) != len(labels):
        raise ArgumentError(
            f"X and y must be cut alike: {count(len(blocks), 'partition')} and {len(labels)}"
        )
    return Blocks(blocks, labels, *columns_of(X))


def check_points(X: Any) -> Blocks:
    """The partitions of X alone; ArgumentError if it is no collection of dask."""
    if X is None or not is_lazy(X) or not hasattr(X, "to_delayed"):
        kind = "None" if X is None else type(X).__name__
        raise ArgumentError(
            f"X must be a dask array or dataframe, got {kind}: use dask.array.from_array, or "
            "NeighborHash for data on one machine"
        )
    return Blocks(rows_of(X, "X"), [], *columns_of(X))


class Loaded(NamedTuple):
    """The partitions that hold points, in the memory of the workers."""

    data: list[tuple[Any, Any]]  # futures, X and y of each
    places: list[int]  # their numbers, among all partitions
    found: list[Described]

    @property
    def fingerprint(self) -> str:
        """What tells this training set from others; of one partition, as on one machine."""
        marks = [one.fingerprint for one in self.found]
        return marks[0] if len(marks) == 1 else hashlib.sha256("".join(marks).encode()).hexdigest()


def load(cluster: Cluster, blocks: Blocks) -> Loaded:
    """Load the data into the workers' memory, and look at it there."""
    client, n = cluster.client, len(blocks.X)
    futures = client.compute([*blocks.X, *blocks.y])
    data = list(zip(futures[:n], futures[n:], strict=True))
    looks = [client.submit(describe, *both, pure=False) for both in data]
    found = [cluster.result(look, place) for place, look in enumerate(looks)]
    filled = [place for place, one in enumerate(found) if one.n]
    _check_alike({place: found[place] for place in filled}, blocks.n_features)
    return Loaded([data[place] for place in filled], filled, [found[place] for place in filled])


def _check_alike(found: dict[int, Described], n_features: int) -> None:
    """Raise, or warn, where partitions do not fit together, or not each by itself."""
    if not found:
        raise ArgumentError("X holds no points: all its partitions are empty")
    first = next(iter(found))
    for place, one in found.items():
        if one.n_features != n_features:
            raise ArgumentError(
                f"partition {place} has {one.n_features} features, and X is said to have "
                f"{n_features}"
            )
        if _kind(one) != _kind(found[first]):
            raise ArgumentError(
                f"y must be of one kind: that of partition {place} is {_kind(one)}, that of "
                f"partition {first} is {_kind(found[first])}"
            )
        if one.n < 2 or len(one.labels) < 2:
            raise ArgumentError(
                f"partition {place} holds {count(one.n, 'point')} and "
                f"{count(len(one.labels), 'label')}, and pairs are drawn inside partitions: each "
                "needs two classes or more. Shuffle the rows, or cut them into fewer partitions"
            )
    every = np.unique(np.concatenate([one.labels for one in found.values()]))
    short = [place for place, one in found.items() if len(one.labels) < len(every)]
    if short:
        told = ", ".join(map(str, short[:SAID])) + (", ..." if len(short) > SAID else "")
        warnings.warn(
            f"{count(len(short), 'partition')} of {len(found)} lack some of the {len(every)} "
            f"classes ({told}): pairs are drawn inside partitions, so that classes that never meet "
            "are not told apart. Shuffle the rows first",
            stacklevel=5,
        )


def _kind(one: Described) -> str:
    """The kind of a partition's labels, in words."""
    if one.several:
        return "a matrix of 0 and 1"
    return "numbers" if one.labels.dtype.kind in "biuf" else KINDS[one.labels.dtype.kind]
