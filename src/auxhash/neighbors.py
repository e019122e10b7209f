"""Exact nearest neighbours in feature space, a chunk of queries at a time."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auxhash import threads

Metric = Literal["euclidean", "cosine"]
METRICS = ("euclidean", "cosine")
CHUNK = 256  # rows of the distance matrix held at once


def normalized(X: NDArray[Any]) -> NDArray[np.float64]:
    """Rows of X scaled to unit length; a zero row stays zero."""
    X = np.asarray(X, np.float64)
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(X, norm, out=np.zeros_like(X), where=norm > 0)
    return unit


def nearest(
    X: NDArray[Any],
    queries: NDArray[Any] | None = None,
    k: int = 10,
    metric: Metric = "euclidean",
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The k nearest rows of X to each query: indices (q, k) and squared distances (q, k).

    Without `queries` the rows of X query each other, each leaving itself out. Cosine distance is
    the squared Euclidean distance of the normalised rows, halved: 1 - cos. Equal distances are
    ordered by index.
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}")
    itself = queries is None
    available = len(X) - itself
    if not 1 <= k <= available:
        raise ValueError(f"k must be between 1 and {available}, the points to choose from; got {k}")
    base = normalized(X) if metric == "cosine" else np.asarray(X, np.float64)
    if queries is None:
        Q = base
    else:
        Q = normalized(queries) if metric == "cosine" else np.asarray(queries, np.float64)
    squares = np.einsum("nd,nd->n", base, base)

    def search(rows: slice) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        q = Q[rows]
        distance = squares - 2.0 * (q @ base.T) + np.einsum("nd,nd->n", q, q)[:, None]
        np.maximum(distance, 0.0, out=distance)  # rounding can take a tiny distance below zero
        if itself:
            distance[np.arange(len(q)), np.arange(rows.start, rows.stop)] = np.inf
        return _smallest(distance, k)

    with threads.pool(n_jobs) as run:
        found = run(search, threads.chunks(len(Q), CHUNK))
    if not found:
        return np.empty((0, k), np.int64), np.empty((0, k))
    index, distance = (np.concatenate(part) for part in zip(*found, strict=True))
    return index, distance / 2 if metric == "cosine" else distance


def _smallest(
    distance: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Indices and values of the k smallest of each row, ties by index."""
    n = distance.shape[1]
    if k < n:
        # Everything up to the k-th value, ties included, so that ties are broken by index.
        threshold = np.partition(distance, k - 1, axis=1)[:, k - 1]
    index = np.empty((len(distance), k), np.int64)
    for row, values in enumerate(distance):
        candidates = np.flatnonzero(values <= threshold[row]) if k < n else np.arange(n)
        order = np.argsort(values[candidates], kind="stable")[:k]
        index[row] = candidates[order]
    return index, np.take_along_axis(distance, index, axis=1)
