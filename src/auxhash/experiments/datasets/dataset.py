"""Data sets: training points, a base to search, queries, and the protocol in words."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import neighbors, threads
from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.experiments.datasets.fetch import cache

ROWS_PER_CHUNK = 8192
MIN_KEPT_DISTANCES = 10**8  # ground truth that takes more is kept on disk
QUERIES_PER_CHUNK = 1024  # whose neighbours are found at once: up to 20,000 of each
MAX_NUMBERS_IN_MEMORY = 10**8  # what is derived from a larger array on disk goes to disk, too
MaybeArray = AnyArray | Any  # None where there is none; who knows better need not check it
OPTIONAL = ("y", "images", "neighbors", "texts", "names")  # parts of Points, in their order


@dataclass(frozen=True, eq=False)
class Points:
    """Features X (n, D), and what else is known of each point.

    `y` holds labels (n,), `images` uint8 (n, height, width) or (n, height, width, 3), and
    `neighbors` (n, k) the indices of the nearest base points, nearest first (only for queries).
    `texts` (n,) are what the vectors were computed from, `names` (n,) what to show for them.
    """

    X: AnyArray
    y: MaybeArray = None
    images: MaybeArray = None
    neighbors: MaybeArray = None
    texts: MaybeArray = None
    names: MaybeArray = None

    def __post_init__(self) -> None:
        for name in OPTIONAL:
            part = getattr(self, name)
            if part is not None and len(part) != len(self.X):
                raise ValueError(f"{name} has {len(part)} rows, X has {len(self.X)}")

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        extra = [name for name in OPTIONAL if getattr(self, name) is not None]
        n, d = self.X.shape
        return f"Points({n} x {d} {self.X.dtype}{''.join(', ' + name for name in extra)})"

    def take(self, rows: AnyArray) -> "Points":
        """The points of these rows, in this order."""
        parts = (getattr(self, name) for name in OPTIONAL)
        return Points(self.X[rows], *(None if part is None else part[rows] for part in parts))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set under its protocol: hash functions learn from train, queries search base.

    `pairs` are queries of another kind, such as titles: the `neighbors` of each are the one base
    point that belongs to it, near or not.
    """

    name: str
    train: Points
    base: Points
    query: Points
    protocol: str
    pairs: Points | None = None

    def __str__(self) -> str:
        return self.protocol

    def cosine(self) -> "Dataset":
        """All points minus the mean of the training points, then scaled to length 1, in float32.

        Euclidean distance is then cosine distance, so the ground truth, if any, is found anew.
        """
        mean: NDArray[np.float64] = np.mean(self.train.X, axis=0, dtype=np.float64)
        train, base, query = (
            replace(part, X=_directions(part.X, mean), neighbors=None)
            for part in (self.train, self.base, self.query)
        )
        protocol = f"{self.protocol} Cosine: minus the mean of the training points, length 1."
        if self.query.neighbors is not None:
            k = self.query.neighbors.shape[1]
            query = replace(query, neighbors=ground_truth(base.X, query.X, k))
            protocol += f" The {k} nearest neighbours are those of the cosine."
        pairs = self.pairs and replace(self.pairs, X=_directions(self.pairs.X, mean))
        return Dataset(f"{self.name}-cosine", train, base, query, protocol, pairs)


def stream(seed: int, name: str) -> np.random.Generator:
    """A generator for one part of a split, so that no part's draws depend on another's."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be a whole number of 0 or more, got {seed!r}")
    return np.random.default_rng([seed, *name.encode()])


def draw(n: int, size: int | None, seed: int, name: str) -> Numbers:
    """`size` of n row numbers, in rising order; None takes all. `name` is the argument's name.

    A smaller draw of the same seed is part of a larger one.
    """
    if size is None:
        return np.arange(n)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= n:
        raise ValueError(f"{name} must be a whole number from 1 to {n}, got {size!r}")
    return np.sort(stream(seed, name).permutation(n)[:size])


def split(
    n: int, n_train: int | None, n_base: int | None, n_query: int, seed: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Row numbers of train, base and query: queries first, base from the rest, train from base."""
    query = draw(n, n_query, seed, "n_query")
    rest = np.setdiff1d(np.arange(n), query, assume_unique=True)
    if not len(rest):
        raise ValueError(f"n_query={n_query} of {n} points leaves nothing to search")
    base = rest[draw(len(rest), n_base, seed, "n_base")]
    train = base[draw(len(base), n_train, seed, "n_train")]
    return train, base, query


def describe(
    name: str,
    about: str,
    train: Points,
    base: Points,
    query: Points,
    overlap: str,
    seed: int | None,
    queries: str = "none of them in the base",
) -> str:
    """The protocol in words: sizes, how the split was made, overlap, ground truth, seed."""
    text = (
        f"{name}: {about}. {len(base)} base points, {len(train)} training points ({overlap}), "
        f"{len(query)} queries ({queries}), {base.X.shape[1]} features."
    )
    if query.neighbors is not None:
        text += f" Ground truth: the {query.neighbors.shape[1]} nearest base points."
    elif query.y is not None:
        text += " Ground truth: same label."
    return text + (" Nothing random." if seed is None else f" Seed {seed}.")


def within(train: Points, base: Points) -> str:
    """Describe how training points that were drawn from the base overlap with it."""
    return "the whole base" if len(train) == len(base) else "a random part of the base"


def ground_truth(base: AnyArray, query: AnyArray, k: int) -> AnyArray:
    """The k nearest base points (q, k), ties by index; where it takes long, kept on disk.

    What is on disk, 800 MB for SIFT1M's 10,000 queries with 20,000 neighbours each, is mapped into
    memory, never read as a whole.
    """
    k = min(k, len(base))
    if len(base) * len(query) < MIN_KEPT_DISTANCES:
        return neighbors.nearest(base, query, k)[0]

    def make(path: Path) -> None:
        out = np.lib.format.open_memmap(path, "w+", np.int32, (len(query), k))
        for rows in threads.chunks(len(query), QUERIES_PER_CHUNK):
            out[rows] = neighbors.nearest(base, query[rows], k)[0]
        out.flush()

    path = cache.folder() / "ground-truth" / f"{_fingerprint(base, query)}-{k}.npy"
    return cache.obtain(path, make)


def _directions(X: AnyArray, mean: NDArray[np.float64]) -> AnyArray:
    """X minus mean, rows scaled to length 1, float32; on disk if X is on disk and large."""

    def fill(out: AnyArray) -> None:
        for rows in threads.chunks(len(X), ROWS_PER_CHUNK):
            out[rows] = neighbors.normalized(X[rows] - mean)

    def make(path: Path) -> None:
        out = np.lib.format.open_memmap(path, "w+", np.float32, X.shape)
        fill(out)
        out.flush()

    if isinstance(X, np.memmap) and X.size > MAX_NUMBERS_IN_MEMORY:
        return cache.obtain(cache.folder() / "cosine" / f"{_fingerprint(X, mean)}.npy", make)
    unit = np.empty(X.shape, np.float32)
    fill(unit)
    return unit


def _fingerprint(*arrays: AnyArray) -> str:
    """A digest of the arrays' contents, by which what was computed from them is found again."""
    total = hashlib.md5(usedforsecurity=False)
    for array in arrays:
        total.update(f"{array.dtype} {array.shape}".encode())
        for rows in threads.chunks(len(array), ROWS_PER_CHUNK):
            total.update(np.ascontiguousarray(array[rows]).data)
    return total.hexdigest()
