"""Exact nearest neighbours in feature space, a chunk of queries and a block of points at a time.

A matrix product with a bound on its rounding errors finds the points that may be among the nearest;
their distances are then summed from the differences themselves. So the result is right even for
points that lie far from the origin, or in clusters far apart.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auxhash import checks
from auxhash.affinity.distances import expanded
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.device import Device
from auxhash.compute.kernels import kernel

Metric = Literal["euclidean", "cosine"]
METRICS = ("euclidean", "cosine")
CHUNK = 512  # queries per task of a thread
BLOCK = 1 << 14  # points whose distances from these queries are held at once
EXACT = 1 << 13  # distances summed from the differences at once
DEVICE_CHUNK = 256  # points per step on another device: some hundred MB for 10^5 points
EPSILON = np.finfo(np.float64).eps
MOST = 1e100  # size of a number whose square is far from the end of the double range


def normalized(X: NDArray[Any]) -> Array:
    """Rows of X scaled to unit length; a zero row stays zero."""
    X = X.astype(np.float64, copy=False)
    if not X.shape[1]:
        return X
    # By the largest entry first: squares of very large or small numbers leave the double range.
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    unit: Array = X / np.where(norm > 0, norm, 1.0)
    return unit


def nearest(
    X: NDArray[Any],
    queries: NDArray[Any] | None = None,
    k: int = 10,
    metric: Metric = "euclidean",
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int64], Array]:
    """The k nearest rows of X to each query: indices (q, k) and squared distances (q, k).

    Without `queries` the rows of X query each other, each leaving itself out. Cosine distance is
    the squared Euclidean distance of the normalised rows, halved: 1 - cos. Equal distances are
    ordered by index. A squared distance beyond the double range is given as infinity.
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}")
    X = np.asarray(X)
    Q = X if queries is None else np.asarray(queries)
    available = len(X) - (queries is None)
    if available < 1:
        raise ValueError(f"X must hold at least {1 + (queries is None)} points, got {len(X)}")
    k = checks.whole("k", k, 1, available)
    unit = 1.0 if metric == "cosine" else scale(X, Q)

    def prepared(rows: NDArray[Any]) -> Array:
        if metric == "cosine":
            return normalized(rows)
        return np.asarray(rows, np.float64) / unit

    blocks = threads.chunks(len(X), max(BLOCK, 2 * k))

    def search(rows: slice) -> tuple[NDArray[np.int64], Array]:
        q = prepared(Q[rows])
        index = np.full((len(q), k), -1, np.int64)
        best = np.full((len(q), k), np.inf)
        for block in blocks:
            base = prepared(X[block])
            distance, margin = _roughly(q, base)
            if queries is None:
                same = np.arange(max(rows.start, block.start), min(rows.stop, block.stop))
                distance[same - rows.start, same - block.start] = np.inf
            _merge(q, base, distance, margin, block.start, index, best)
        return index, best

    with threads.pool(n_jobs) as run:
        found = run(search, threads.chunks(len(Q), CHUNK))
    if not found:
        return np.empty((0, k), np.int64), np.empty((0, k))
    index, distance = (np.concatenate(part) for part in zip(*found, strict=True))
    with np.errstate(over="ignore"):
        return index, distance / 2 if metric == "cosine" else distance * unit * unit


def nearest_on(device: Device, X: NDArray[Any], k: int, metric: Metric) -> NDArray[np.int64]:
    """As `nearest` without queries, by a matrix product in double precision on another device.

    Points whose distances differ by less than its rounding errors may change places.
    """
    points = normalized(X) if metric == "cosine" else np.asarray(X, np.float64) / scale(X)
    on = device.put(points - points.mean(axis=0))
    squares = (on * on).sum(axis=1)
    found = []
    for start in range(0, len(on), DEVICE_CHUNK):
        rows = on[start : start + DEVICE_CHUNK]
        distance = squares - 2 * (rows @ on.T)
        own = device.put(np.arange(len(rows)))
        distance[own, own + start] = np.inf
        near = np.argpartition(distance, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(distance, near, axis=1), axis=1)
        found.append(device.fetch(np.take_along_axis(near, order, axis=1)))
    return np.concatenate(found).astype(np.int64)


def scale(*parts: NDArray[Any]) -> float:
    """The power of two to divide all numbers by, which changes no digit.

    1 where their squares stay well within the double range. Very large numbers are not divided by
    more than they must be: among them may be small ones. Raises for NaN and infinity.
    """
    largest = 0.0
    for part in parts:
        for rows in threads.chunks(len(part), BLOCK):
            block = np.asarray(part[rows], np.float64)
            largest = max(largest, block.max(initial=0.0), -block.min(initial=0.0))
            if not np.isfinite(largest) or np.isnan(block).any():
                raise ValueError("X and queries must hold finite numbers, not NaN or infinity")
    if largest == 0 or 1 / MOST < largest < MOST:
        return 1.0
    left = int(np.log2(MOST)) if largest > 1 else 0
    return float(2.0 ** np.clip(np.frexp(largest)[1] - left, -1000, 1000))


def _roughly(q: Array, base: Array) -> tuple[Array, Array]:
    """Squared distances (q, n) by a matrix product, and bounds (q,) on their rounding errors."""
    origin = base.mean(axis=0)
    q, base = q - origin, base - origin
    distance, squares, lengths = expanded(q, base)
    margin: Array = 8 * (q.shape[1] + 8) * EPSILON * (squares.max() + lengths)
    return distance, margin


def _merge(
    q: Array,
    base: Array,
    distance: Array,
    margin: Array,
    start: int,
    index: NDArray[np.int64],
    best: Array,
) -> None:
    """Update the k nearest so far, in place, with these base points, which are numbered from
    `start`. Points come in rising order, so a later one loses every tie."""
    k = index.shape[1]
    bound = best[:, -1] + margin
    if start == 0 and k < distance.shape[1]:
        bound = np.partition(distance, k - 1, axis=1)[:, k - 1] + 2 * margin
    # A point whose approximate distance exceeds the bound cannot be among the nearest.
    row, near = np.nonzero(distance <= bound[:, None])
    if not len(row):
        return
    exact = np.empty(len(row))
    for part in threads.chunks(len(row), EXACT):
        exact[part] = np.square(base[near[part]] - q[row[part]]).sum(axis=1)
    exact[distance[row, near] == np.inf] = np.inf  # the query itself
    starts = np.searchsorted(row, np.arange(len(q) + 1))
    _keep_nearest(starts, near + start, exact, index, best)


@kernel
def _keep_nearest(starts: Any, numbers: Any, exact: Any, index: Any, best: Any) -> None:
    """Merge the new points of each query, from its start, into its k nearest so far, in place."""
    k = index.shape[1]
    merged, distances = np.empty(k, np.int64), np.empty(k)
    for row in range(len(index)):
        first, count = starts[row], starts[row + 1] - starts[row]
        order = np.argsort(exact[first : first + count], kind="mergesort")  # stable
        old = new = 0
        for t in range(k):
            at = first + (order[new] if new < count else 0)
            if new == count or best[row, old] <= exact[at]:
                merged[t], distances[t] = index[row, old], best[row, old]
                old += 1
            else:
                merged[t], distances[t] = numbers[at], exact[at]
                new += 1
        for t in range(k):  # whole rows would take numba seconds more to compile
            index[row, t], best[row, t] = merged[t], distances[t]
