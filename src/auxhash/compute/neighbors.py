"""Exact nearest neighbours in feature space, a chunk of queries and a block of points at a time.

A matrix product with a bound on its rounding errors finds the points that may be among the nearest;
their distances are then summed from the differences themselves. So the result is right even for
points that lie far from the origin, or in clusters far apart.
"""

from typing import Literal

import numpy as np

from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Numbers
from auxhash.compute.device import Device
from auxhash.compute.kernels import kernel

SINGLE = np.dtype(np.float32)
Metric = Literal["euclidean", "cosine"]
METRICS = ("euclidean", "cosine")
QUERIES_PER_TASK = 512  # queries per task of a thread
POINTS_PER_BLOCK = 1 << 14  # points whose distances from these queries are computed at once
EXACT_DISTANCES_PER_STEP = 1 << 13  # distances summed from the differences at once
MAX_PREPARED_BYTES = 1 << 29  # of points prepared at once; of more, a block at a time
MAX_OPEN_PER_NEIGHBOR = 16  # times k points per query that may be left open by single precision
SINGLE_RANGE = 1e-30, 1e30  # sizes of squared lengths that single precision can compute with
QUERIES_PER_DEVICE_STEP = 256  # points per step on another device: some hundred MB for 10^5 points
MAX_EXPONENT = 480  # numbers below 2^MAX_EXPONENT have squares far from the end of the double range
SAFE_MIN, SAFE_MAX = 2.0**-330, 2.0**MAX_EXPONENT
MIN_SQUARABLE = 2.0**-480  # a number whose square is held with all its digits


def normalized(X: AnyArray) -> Array:
    """Rows of X scaled to unit length; a zero row stays zero."""
    X = X.astype(np.float64, order="C", copy=False)  # rows are summed in one order in any layout
    if not X.shape[1]:
        return X
    # By the largest entry first: squares of very large or small numbers leave the double range.
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norm > 0, norm, 1.0)


def nearest(
    X: AnyArray, queries: AnyArray | None = None, k: int = 10, metric: Metric = "euclidean"
) -> tuple[Numbers, Array]:
    """Return the k nearest rows of X to each query: indices and squared distances, each (q, k).

    Without `queries` the rows of X query each other, each leaving itself out. Cosine distance is
    the squared Euclidean distance of the normalised rows, halved: 1 - cos, and 1 from a row of
    zeros, which has no direction, up to rounding. Equal distances are ordered by index. A squared
    distance beyond the double range is given as infinity.
    """
    checks.one_of("metric", metric, METRICS)
    X, Q = _points(X, queries)
    available = len(X) - (queries is None)
    if available < 1:
        raise ValueError(f"X must hold at least {1 + (queries is None)} points, got {len(X)}")
    k = checks.integer("k", k, 1, available)
    parts = [X] if queries is None else [X, Q]
    zeros = [zero_rows(part) for part in parts] if metric == "cosine" else []
    unit = 1.0 if metric == "cosine" else scale(*parts)

    def prepared(rows: AnyArray) -> Array:
        if metric == "cosine":
            return directions(rows, with_zeros=zeros[0].size > 0)
        return np.asarray(rows, np.float64) / unit

    size = max(POINTS_PER_BLOCK, 2 * k)
    blocks = threads.chunks(len(X), size)
    few = 8 * X.size <= MAX_PREPARED_BYTES
    prepared_blocks = [prepared(X[block]) for block in blocks] if few else None

    def search(rows: slice) -> tuple[Numbers, Array]:
        q = prepared(Q[rows])
        if metric == "cosine":
            q[~q.any(axis=1)] = 1.0  # rows of zeros, which get their neighbours below
        index = np.full((len(q), k), -1, np.int64)
        best = np.full((len(q), k), np.inf)
        room = np.empty((len(q), min(len(X), size)), SINGLE)
        for number, block in enumerate(blocks):
            base = prepared(X[block]) if prepared_blocks is None else prepared_blocks[number]
            same = np.arange(max(rows.start, block.start), min(rows.stop, block.stop))
            own = (same - rows.start, same - block.start) if queries is None else None
            if not _merge(q, base, own, block.start, index, best, room):
                _merge(q, base, own, block.start, index, best, np.empty(room.shape))
        return index, best

    with threads.pool() as run:
        results = run(search, threads.chunks(len(Q), QUERIES_PER_TASK))
    if not results:
        return np.empty((0, k), np.int64), np.empty((0, k))
    index, distance = (np.concatenate(part) for part in zip(*results, strict=True))
    if metric == "cosine":
        distance /= 2
        index[zeros[-1]], distance[zeros[-1]] = firsts(zeros[-1], k, queries is None), 1.0
        return index, distance
    with np.errstate(over="ignore"):
        return index, distance * unit * unit


def _points(X: ArrayLike, queries: ArrayLike | None) -> tuple[AnyArray, AnyArray]:
    """Check X and the queries, and return both as arrays (n, D); queries default to X."""
    X = np.asarray(X)
    Q = X if queries is None else np.asarray(queries)
    if X.ndim != 2 or Q.ndim != 2 or X.shape[1] != Q.shape[1]:
        raise ValueError(
            f"X and queries must be (n, D) with the same D, got shapes {X.shape} and {Q.shape}"
        )
    if np.iscomplexobj(X) or np.iscomplexobj(Q):
        raise ValueError("X and queries must hold real numbers, not complex ones")
    return X, Q


def firsts(rows: Numbers, k: int, among_themselves: bool = True) -> Numbers:
    """Return the first k points, the query itself left out, for queries as far from every point."""
    first = np.tile(np.arange(k), (len(rows), 1))
    return first + (first >= rows[:, None]) if among_themselves else first


def zero_rows(X: AnyArray) -> Numbers:
    """Return the indices of the rows of X that are all zero. Raises for NaN and infinity."""
    zeros = [np.empty(0, np.int64)]
    for rows in threads.chunks(len(X), POINTS_PER_BLOCK):
        zeros.append(np.flatnonzero(_sizes(X[rows]) == 0) + rows.start)
    return np.concatenate(zeros)


def directions(X: AnyArray, with_zeros: bool) -> Array:
    """Scale rows to unit length; zero rows, if any, point along an axis of their own."""
    unit = normalized(X)
    return np.hstack([unit, ~unit.any(axis=1, keepdims=True)]) if with_zeros else unit


def nearest_on(
    device: Device, X: AnyArray, k: int, metric: Metric, queries: AnyArray | None = None
) -> Numbers:
    """Return the k nearest rows of X to each query, (q, k), by a matrix product on another device.

    It works in double precision, as `nearest`, whose queries it takes.
    Its rounding errors are relative to the distance of the farthest points: where points differ by
    less than these, as in clusters very far apart, they may change places.
    """
    X, Q = _points(X, queries)
    k = checks.integer("k", k, 1, len(X) - (queries is None))
    zeros = zero_rows(Q) if metric == "cosine" else np.empty(0, np.int64)
    if metric == "cosine":
        with_zeros = zero_rows(X).size > 0
        points, asking = directions(X, with_zeros), directions(Q, with_zeros)
    else:
        unit = scale(X, Q)
        points, asking = np.asarray(X, np.float64) / unit, np.asarray(Q, np.float64) / unit
    centre = points.mean(axis=0)
    on = device.put(points - centre)
    squares = (on * on).sum(axis=1)
    indices = np.empty((len(Q), k), np.int64)
    for rows in threads.chunks(len(Q), QUERIES_PER_DEVICE_STEP):
        distance = squares - 2 * (device.put(asking[rows] - centre) @ on.T)
        if queries is None:
            own = device.put(np.arange(len(distance)))
            distance[own, own + rows.start] = np.inf
        near = np.argpartition(distance, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(distance, near, axis=1), axis=1)
        indices[rows] = device.fetch(np.take_along_axis(near, order, axis=1))
    indices[zeros] = firsts(zeros, k, queries is None)
    return indices


def scale(*parts: AnyArray) -> float:
    """Return the power of two to divide all numbers by, which changes no digit.

    1 where their squares stay well within the double range; of numbers below 1e-150 beside others
    of usual size, squares are 0, as they are in any sum of squares. Very large numbers are not
    divided by more than they must be: among them may be small ones. Raises for NaN and infinity,
    and where numbers would be lost beside very large ones.
    """
    blocks = [
        (part, rows) for part in parts for rows in threads.chunks(len(part), POINTS_PER_BLOCK)
    ]
    largest = max((float(_sizes(part[rows]).max(initial=0.0)) for part, rows in blocks), default=0)
    if largest == 0 or SAFE_MIN < largest < SAFE_MAX:
        return 1.0
    exponent = int(np.frexp(largest)[1])
    if largest < 1:
        return 2.0 ** max(exponent, -1000)
    unit = 2.0 ** (exponent - MAX_EXPONENT)
    sizes = (np.abs(np.asarray(part[rows], np.float64)) for part, rows in blocks)
    smallest = min(float(size[size > 0].min(initial=np.inf)) for size in sizes)
    if smallest / unit < MIN_SQUARABLE:
        raise ValueError(
            f"there are numbers of size {largest:.2g} and of size {smallest:.2g}: no squared "
            "distances hold both. Do the large ones mark what is missing?"
        )
    return unit


def _sizes(X: AnyArray) -> Array:
    """Return the largest absolute value of each row. Raises for NaN and infinity."""
    sizes: Array = np.abs(np.asarray(X, np.float64)).max(axis=1, initial=0.0)
    if not np.isfinite(sizes).all():
        raise ValueError("X and queries must hold finite numbers, not NaN or infinity")
    return sizes


def _roughly(q: Array, base: Array, room: AnyArray) -> tuple[AnyArray, Array, Array] | None:
    """Squared distances (q, n) less the squared lengths (q,) of the queries, by a matrix product in
    the precision of `room`; these; and bounds (q,) on the rounding errors of the distances.

    None where single precision has no room for them.
    """
    origin, dtype = base.mean(axis=0), room.dtype
    q, base = q - origin, base - origin
    squares, lengths = (np.einsum("nd,nd->n", part, part) for part in (base, q))
    longest = max(squares.max(), lengths.max())
    if dtype == SINGLE and not SINGLE_RANGE[0] < longest < SINGLE_RANGE[1]:
        return None
    known, n_roundings = np.finfo(dtype), 8 * (q.shape[1] + 8)
    # Relative errors, and those of products that are too small to be relative.
    margin: Array = n_roundings * (float(known.eps) * (squares.max() + lengths) + float(known.tiny))
    beyond = np.matmul((-2 * q).astype(dtype), base.astype(dtype).T, out=room[:, : len(base)])
    beyond += squares.astype(dtype)
    return beyond, lengths, margin


def _merge(
    q: Array,
    base: Array,
    own: tuple[Numbers, Numbers] | None,
    start: int,
    index: Numbers,
    best: Array,
    room: AnyArray,
) -> bool:
    """Update the k nearest so far, in place, with these base points, which are numbered from
    `start`. Points come in rising order, so a later one loses every tie. `own` are the places of
    the queries themselves. False, and nothing done, where single precision leaves too many open.
    """
    rough = _roughly(q, base, room)
    if rough is None:
        return False
    beyond, lengths, margin = rough
    if own is not None:
        beyond[own] = np.inf
    k, dtype = index.shape[1], room.dtype
    bound = best[:, -1] - lengths + margin
    if start == 0 and k < beyond.shape[1]:
        bound = np.partition(beyond, k - 1, axis=1)[:, k - 1] + 2 * margin
    # A point whose approximate distance exceeds the bound cannot be among the nearest.
    with np.errstate(over="ignore"):  # infinite in single precision, as it should be
        most = np.nextafter(bound.astype(dtype), dtype.type(np.inf))
    flat = np.flatnonzero(beyond <= most[:, None])
    if dtype == SINGLE and len(flat) > MAX_OPEN_PER_NEIGHBOR * k * len(q):
        return False
    row, near = np.divmod(flat, len(base))
    exact = np.empty(len(row))
    for part in threads.chunks(len(row), EXACT_DISTANCES_PER_STEP):
        exact[part] = np.square(base[near[part]] - q[row[part]]).sum(axis=1)
    exact[beyond[row, near] == np.inf] = np.inf  # the query itself
    starts = np.searchsorted(row, np.arange(len(q) + 1))
    order = np.lexsort((exact, row))  # stable; in the kernel it would take seconds to compile
    _keep_nearest(starts, near[order] + start, exact[order], index, best)
    return True


@kernel
def _keep_nearest(
    starts: AnyArray, numbers: AnyArray, exact: AnyArray, index: AnyArray, best: AnyArray
) -> None:
    """Merge the new points of each query, in rising order from its start, into its k nearest."""
    k = index.shape[1]
    merged, distances = np.empty(k, np.int64), np.empty(k)
    for row in range(len(index)):
        first, count = starts[row], starts[row + 1] - starts[row]
        old = new = 0
        for t in range(k):
            at = first + new
            if new == count or best[row, old] <= exact[at]:
                merged[t], distances[t] = index[row, old], best[row, old]
                old += 1
            else:
                merged[t], distances[t] = numbers[at], exact[at]
                new += 1
        for t in range(k):  # whole rows would take numba seconds more to compile
            index[row, t], best[row, t] = merged[t], distances[t]
