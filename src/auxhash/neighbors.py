"""Exact nearest neighbours in feature space, a chunk of queries and a block of points at a time."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auxhash import threads

Metric = Literal["euclidean", "cosine"]
METRICS = ("euclidean", "cosine")
CHUNK = 256  # queries, and
BLOCK = 1 << 15  # points whose distances are held at once


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
    X = np.asarray(X)
    Q = X if queries is None else np.asarray(queries)
    prepared = normalized if metric == "cosine" else _doubles
    blocks = threads.chunks(len(X), max(BLOCK, 2 * k))

    def search(rows: slice) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        q = prepared(Q[rows])
        index = np.full((len(q), k), -1, np.int64)
        best = np.full((len(q), k), np.inf)
        for block in blocks:
            distance = _squared_distances(q, prepared(X[block]))
            if itself:
                same = np.arange(max(rows.start, block.start), min(rows.stop, block.stop))
                distance[same - rows.start, same - block.start] = np.inf
            _merge(distance, block.start, index, best)
        return index, best

    with threads.pool(n_jobs) as run:
        found = run(search, threads.chunks(len(Q), CHUNK))
    if not found:
        return np.empty((0, k), np.int64), np.empty((0, k))
    index, distance = (np.concatenate(part) for part in zip(*found, strict=True))
    if (index < 0).any():
        raise ValueError("X and queries must hold finite numbers, not NaN or infinity")
    return index, distance / 2 if metric == "cosine" else distance


def _doubles(X: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(X, np.float64)


def _squared_distances(q: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
    """|q - x|^2 for each query and base point, exact where all numbers are small integers."""
    distance: NDArray[np.float64] = q @ base.T
    distance *= -2.0
    distance += np.einsum("nd,nd->n", base, base)
    distance += np.einsum("nd,nd->n", q, q)[:, None]
    return np.maximum(distance, 0.0, out=distance)  # rounding can take it below zero


def _merge(
    distance: NDArray[np.float64],
    start: int,
    index: NDArray[np.int64],
    best: NDArray[np.float64],
) -> None:
    """Put what is nearer among these base points, the first of them number `start`, into the
    k nearest so far. Points come in rising order, so a later one loses every tie."""
    k = index.shape[1]
    for row, values in enumerate(distance):
        if np.isinf(best[row, -1]):  # the first block
            near = _up_to_kth(values, k)
        else:
            near = np.flatnonzero(values < best[row, -1])
        if not len(near):
            continue
        merged = np.concatenate([best[row], values[near]])
        numbers = np.concatenate([index[row], near + start])
        kept = _up_to_kth(merged, k)
        order = kept[np.argsort(merged[kept], kind="stable")[:k]]
        index[row], best[row] = numbers[order], merged[order]


def _up_to_kth(values: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Where values are no larger than the k-th smallest, ties included, in rising order."""
    if k >= len(values):
        return np.arange(len(values))
    return np.flatnonzero(values <= np.partition(values, k - 1)[k - 1])
