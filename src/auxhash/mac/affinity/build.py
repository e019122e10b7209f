"""Affinities from labels, from nearest neighbours, and from pairs that the user gives.

The paper draws, for each point n, kappa+ similar and kappa- dissimilar points m. Every point draws
equally often, so a point of a rare class counts as much as any other (if its class is large enough
to draw from), while dissimilar points come from the other classes in proportion to their size.
Nothing else corrects for class imbalance.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import approximate, checks, context, neighbors, random, threads
from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Numbers
from auxhash.compute.random import RandomState
from auxhash.mac.affinity import draws
from auxhash.mac.affinity.affinity import Affinity, Kind
from auxhash.mac.affinity.folding import fold_pairs, fold_signs

MAX_POINTS = 2**31 - 1  # their numbers are int32
ROWS_PER_CHUNK = 1 << 16  # points or pairs looked at together


def from_labels(
    y: ArrayLike,
    n_similar: int | None = 100,
    n_dissimilar: int | None = 500,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Affinity:
    """Draw `n_similar` points with the same label and `n_dissimilar` others for each point.

    Args:
        y: labels (n,), or a binary indicator matrix (n, n_labels) for multi-label data, where
            two points are similar if they share at least one label.
        n_similar, n_dissimilar: kappa+ and kappa-; None takes all there are. Points that have
            fewer use what they have, and one warning says so.
        random_state: seed or generator of the draws.
    """
    labels = checks.labels("y", y)
    n = len(labels)
    if n < 2:
        raise ValueError(f"y must hold the labels of at least two points, got {n}")
    _wanted("n_similar", n_similar, n)
    _wanted("n_dissimilar", n_dissimilar, n)
    with context.using(n_jobs=n_jobs):
        return drawn_from_labels(labels, n_similar, n_dissimilar, random.seed(random_state))


def drawn_from_labels(
    labels: AnyArray, n_similar: int | None, n_dissimilar: int | None, seed: np.uint64
) -> Affinity:
    """Draw pairs as `from_labels`, from checked labels and the seed of the draws."""
    n = len(labels)
    similar, dissimilar = (
        _wanted("n_similar", n_similar, n),
        _wanted("n_dissimilar", n_dissimilar, n),
    )
    groups: Numbers | None = None
    if labels.ndim == 1:
        groups = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        order = np.argsort(groups, kind="stable").astype(np.int32)
        size = np.bincount(groups)
        widths = min(similar, int(size.max()) - 1), min(dissimilar, n - int(size.min()))
        tables = draws.draw(n, widths, draws.by_class, order, groups, np.cumsum(size), seed)
    else:
        bits = np.packbits(labels.astype(bool), axis=1)
        sets = np.unique(bits, axis=0, return_inverse=True)[1].reshape(n)
        args = bits, np.argsort(sets, kind="stable"), sets, seed
        tables = draws.draw(n, (similar, dissimilar), draws.by_shared_label, *args)
    had = [(table >= 0).sum(axis=1) for table in tables]
    warn_of_few(had, (n_similar, n_dissimilar), labels)
    pairs = fold_signs(*tables, groups)
    pairs.by_class = groups is not None
    return pairs


def warn_of_few(
    drawn: Sequence[Numbers], wanted: tuple[int | None, int | None], labels: AnyArray
) -> None:
    """Warn where points have fewer similar or dissimilar points than wanted; raise if none has any.

    `drawn` are the numbers (n,) of similar and of dissimilar points that each has drawn.
    """
    n, short = len(labels), []
    for name, most, had in zip(("similar", "dissimilar"), wanted, drawn, strict=True):
        if not had.any():
            raise ValueError(
                f"y gives no {name} pairs: it needs at least two classes, and two points that "
                f"share one (n_samples={n}, n_classes={len(np.unique(labels, axis=0))})"
            )
        if most is not None and had.min() < most:
            short.append(f"{(had < most).sum()} points have fewer than n_{name}={most}")
    if short:
        message = f"of {n} points, {' and '.join(short)}; all they have are used"
        warnings.warn(message, stacklevel=4)


def from_neighbors(
    X: ArrayLike,
    n_similar: int | None = 100,
    n_dissimilar: int | None = 500,
    metric: neighbors.Metric = "euclidean",
    values: Literal["sign", "distance"] = "sign",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Affinity:
    """Pair each point with its `n_similar` nearest neighbours and `n_dissimilar` random others.

    Exact neighbours take a time that grows with the square of the number of points. Beyond 300,000
    points, or 50,000 of more than 512 features, they are approximate: most of them are the nearest.

    Args:
        X: features (n, D), of any kind of numbers; a memory map will do.
        metric: "euclidean" or "cosine".
        values: "sign" gives y = +1 for neighbours and -1 for the others; "distance" gives the
            squared distance over the largest among the drawn pairs, as BRE takes it.
        random_state: seed or generator of the draws.
    """
    points = _numbers(X)
    if points.ndim != 2 or len(points) < 3:
        raise ValueError(f"X must be of shape (n, D) with n >= 3, got shape {points.shape}")
    if not all(
        np.isfinite(points[rows]).all() for rows in threads.chunks(len(points), ROWS_PER_CHUNK)
    ):
        raise ValueError("X must not hold NaN or infinity")
    checks.one_of("values", values, ("sign", "distance"))
    n = len(points)
    if n_similar is None:
        raise ValueError("n_similar must be a number: all points cannot be near neighbours")
    similar = _wanted("n_similar", n_similar, n)
    if similar >= n - 1:
        warnings.warn(f"n_similar={similar} is capped at {n - 2} for {n} points", stacklevel=2)
        similar = n - 2
    dissimilar = _wanted("n_dissimilar", n_dissimilar, n)
    with context.using(n_jobs=n_jobs):
        near = approximate.near(points, similar, metric).astype(np.int32)
        near.sort(axis=1)
        seed = random.seed(random_state)
        tables = draws.draw(n, (similar, dissimilar), draws.by_rank, near, seed)
        if values == "sign":
            return fold_signs(*tables, None)
    i, j = (np.concatenate(part) for part in zip(*map(draws.drawn, tables), strict=True))
    # from_pairs divides by the largest anyway.
    unit = neighbors.scale(points) if metric == "euclidean" else 1.0

    def place(rows: NDArray[np.int32]) -> Array:
        chosen = points[rows].astype(np.float64, copy=False)
        return neighbors.normalized(chosen) if metric == "cosine" else chosen / unit

    return from_pairs(i, j, _squared_distances(place, i, j), n, kind="distance")


def from_pairs(
    i: ArrayLike,
    j: ArrayLike,
    y: ArrayLike,
    n_points: int,
    kind: Kind = "similarity",
    weight: ArrayLike | None = None,
) -> Affinity:
    """Make an affinity from pairs: y[p] for points i[p] and j[p], in any order, repeats allowed.

    Similarities are 1 for similar and -1 for dissimilar points, or anything between them. Distances
    (`kind="distance"`) must not be negative and are divided by the largest.
    """
    if not np.size(i):
        raise ValueError("at least one pair is needed")
    n_points = checks.integer("n_points", n_points, 1, MAX_POINTS)
    a, b = _points("i", i, n_points), _points("j", j, n_points)
    values = _column("y", y)
    count = None if weight is None else _column("weight", weight)
    lengths = [len(part) for part in (a, b, values, count) if part is not None]
    if len(set(lengths)) > 1:
        names = "i, j and y" if count is None else "i, j, y and weight"
        raise ValueError(f"{names} must have one length, got {', '.join(map(str, lengths))}")
    if (a == b).any():
        raise ValueError(f"pair {np.flatnonzero(a == b)[0]} joins a point with itself")
    if not np.isfinite(values).all():
        raise ValueError("y must not hold NaN or infinity")
    if count is not None and not (np.isfinite(count).all() and (count > 0).all()):
        raise ValueError("weight must be positive and finite")
    checks.one_of("kind", kind, ("similarity", "distance"))
    if kind == "similarity":
        _warn_of_values(values)
    if kind == "distance":
        if (values < 0).any():
            raise ValueError("distances must not be negative")
        values = values / (values.max() or 1.0)
    return fold_pairs(a, b, values, count, n_points, kind)


def _warn_of_values(y: Array) -> None:
    """Warn of similarities that are likely not meant."""
    if np.isin(y, (0, 1)).all() and (y == 0).any():
        warnings.warn(
            "y holds 0 and 1 only: 0 is halfway between similar (1) and dissimilar (-1) points; "
            "where it is to say dissimilar, give -1",
            stacklevel=3,
        )


def _numbers(X: ArrayLike) -> AnyArray:
    """Return X as it is, if it holds real numbers; else converted to float64."""
    points = np.asarray(checks.unmasked("X", X))
    if points.dtype.kind == "c":
        raise ValueError("X must hold real numbers, not complex ones")
    return points if points.dtype.kind in "fiu" else points.astype(np.float64)


def _squared_distances(
    place: Callable[[NDArray[np.int32]], Array], i: NDArray[np.int32], j: NDArray[np.int32]
) -> Array:
    """Return |x_i - x_j|^2 for each pair, without holding all differences at once."""
    distances = np.empty(len(i))
    for rows in threads.chunks(len(i), ROWS_PER_CHUNK):
        distances[rows] = np.square(place(i[rows]) - place(j[rows])).sum(axis=1)
    return distances


def _wanted(name: str, k: int | None, n: int) -> int:
    """Return the number of draws per point: k, or all others for None."""
    if k is None:
        return max(0, n - 1)
    return checks.integer(name, k, 1, instead=" or None (all)")


def _column(name: str, values: ArrayLike) -> Array:
    array = np.asarray(checks.unmasked(name, values), np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array, got shape {array.shape}")
    return array


def _points(name: str, index: ArrayLike, n: int) -> NDArray[np.int32]:
    array = np.asarray(checks.unmasked(name, index))
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be a 1-D array of point numbers")
    if len(array) and not (array.min() >= 0 and array.max() < n):
        raise ValueError(f"{name} must lie in 0..{n - 1} for n_points={n}")
    return array.astype(np.int32, copy=False)
