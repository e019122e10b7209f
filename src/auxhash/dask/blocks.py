"""Dask collections as partitions, checked before anything is trained."""

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from dask.typing import DaskCollection
from distributed import Future

from auxhash.compute.arrays import AnyArray
from auxhash.compute.checks import ArgumentError
from auxhash.compute.cluster import Cluster
from auxhash.compute.words import count
from auxhash.dask.learning import PartitionSummary, summarize

MAX_NAMED = 5  # partitions in a message
KINDS = {"U": "text", "M": "dates"}  # of labels that are no numbers, by NumPy's letter


class Blocks(NamedTuple):
    """Partitions as lazy values of dask, X and y of each."""

    X: list[Delayed]
    y: list[Delayed]
    n_features: int
    names: AnyArray | None  # of the features of a dataframe


def is_lazy(X: object) -> bool:
    """Return True if X is a collection of dask: an array, a dataframe, a series."""
    return bool(dask.is_dask_collection(X))


def rows_of(X: DaskCollection, name: str) -> list[Delayed]:
    """Return the partitions of a dask array (chunks of rows) or dataframe, as lazy values."""
    if not hasattr(X, "chunks"):
        return list(X.to_delayed())
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    if X.ndim not in (1, 2):
        raise ArgumentError(f"{name} must have one or two axes, got shape {X.shape}")
    return list(X.to_delayed().ravel())


def columns_of(X: DaskCollection) -> tuple[int, AnyArray | None]:
    """Return the number of features, and their names where a dataframe has any."""
    if hasattr(X, "chunks"):
        if X.ndim != 2 or np.isnan(X.shape[1]):
            raise ArgumentError(f"X must be of shape (n, D) with a known D, got shape {X.shape}")
        return int(X.shape[1]), None
    names = list(X.columns)
    if all(isinstance(name, str) for name in names):
        return len(names), np.array(names, object)
    return len(names), None


def check(X: DaskCollection, y: Any) -> Blocks:
    """Return the partitions of X and y; ArgumentError if they are not cut alike."""
    _check_collection("X", X, "MACHash")
    _check_collection("y", y, "MACHash")
    sizes = [data.chunks[0] if hasattr(data, "chunks") else (np.nan,) for data in (X, y)]
    if not any(np.isnan(each).any() for each in sizes) and sizes[0] != sizes[1]:
        if sum(sizes[0]) != sum(sizes[1]):
            raise ArgumentError(f"X has {sum(sizes[0])} rows, but y has {sum(sizes[1])}")
        y = y.rechunk({0: sizes[0]})
    blocks, labels = rows_of(X, "X"), rows_of(y, "y")
    if len(blocks) != len(labels):
        raise ArgumentError(
            f"X and y must be cut alike: {count(len(blocks), 'partition')} and {len(labels)}"
        )
    return Blocks(blocks, labels, *columns_of(X))


def check_points(X: DaskCollection) -> Blocks:
    """Return the partitions of X alone; ArgumentError if it is no collection of dask."""
    _check_collection("X", X, "NeighborHash")
    return Blocks(rows_of(X, "X"), [], *columns_of(X))


def _check_collection(name: str, data: object, local: str) -> None:
    if not is_lazy(data) or not hasattr(data, "to_delayed"):
        kind = "None" if data is None else type(data).__name__
        raise ArgumentError(
            f"{name} must be a dask array or dataframe, got {kind}: use dask.array.from_array, or "
            f"{local} for data on one machine"
        )


class Loaded(NamedTuple):
    """Partitions with points, in the memory of the workers."""

    data: list[tuple[Future, Future]]  # X and y of each
    places: list[int]  # their numbers, among all partitions
    summaries: list[PartitionSummary]

    @property
    def fingerprint(self) -> str:
        return joint_fingerprint([one.fingerprint for one in self.summaries])


def joint_fingerprint(marks: Sequence[str]) -> str:
    """Return the digest of a training set, of its partitions'; of one, that of one machine."""
    return marks[0] if len(marks) == 1 else hashlib.sha256("".join(marks).encode()).hexdigest()


def load(cluster: Cluster, blocks: Blocks) -> Loaded:
    """Load the data into the workers' memory, and check it there."""
    client, n = cluster.client, len(blocks.X)
    futures = client.compute([*blocks.X, *blocks.y])
    data = list(zip(futures[:n], futures[n:], strict=True))
    pending = [client.submit(summarize, *both, pure=False) for both in data]
    results = [cluster.result(future, place) for place, future in enumerate(pending)]
    summaries = {place: one for place, one in enumerate(results) if one.n}
    _check_alike(summaries, blocks.n_features)
    return Loaded([data[place] for place in summaries], list(summaries), list(summaries.values()))


def _check_alike(summaries: dict[int, PartitionSummary], n_features: int) -> None:
    """Raise, or warn, where partitions do not fit together, or cannot be learnt from."""
    if not summaries:
        raise ArgumentError("X holds no points: all its partitions are empty")
    first = next(iter(summaries))
    for place, one in summaries.items():
        if one.n_features != n_features:
            raise ArgumentError(
                f"partition {place} has {one.n_features} features, and X is said to have "
                f"{n_features}"
            )
        if _kind(one) != _kind(summaries[first]):
            raise ArgumentError(
                f"y must be of one kind: that of partition {place} is {_kind(one)}, that of "
                f"partition {first} is {_kind(summaries[first])}"
            )
        if one.n < 2 or len(one.labels) < 2:
            raise ArgumentError(
                f"partition {place} holds {count(one.n, 'point')} and "
                f"{count(len(one.labels), 'label')}, and pairs are drawn inside partitions: each "
                "needs two classes or more. Shuffle the rows, or cut them into fewer partitions"
            )
    every = np.unique(np.concatenate([one.labels for one in summaries.values()]))
    short = [place for place, one in summaries.items() if len(one.labels) < len(every)]
    if short:
        more = ", ..." if len(short) > MAX_NAMED else ""
        listed = ", ".join(map(str, short[:MAX_NAMED])) + more
        warnings.warn(
            f"{count(len(short), 'partition')} of {len(summaries)} lack some of the {len(every)} "
            f"classes ({listed}): pairs are drawn inside partitions, so that classes that never "
            "meet are not told apart. Shuffle the rows first",
            stacklevel=5,
        )


def _kind(one: PartitionSummary) -> str:
    """Describe the kind of a partition's labels."""
    if one.several:
        return "a matrix of 0 and 1"
    return "numbers" if one.labels.dtype.kind in "biuf" else KINDS[one.labels.dtype.kind]
