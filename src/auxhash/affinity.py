"""Affinities: which pairs of points are similar or dissimilar, and how much they count.

The paper draws, for each point n, kappa+ similar and kappa- dissimilar points m. We fold the draws
n -> m into unordered pairs i < j with a weight: how often the pair was drawn. Every point draws
equally often, so a point of a rare class has as much say as any other (as far as its class is
large enough to draw from), while dissimilar points come from the other classes in proportion to
their size. Nothing else corrects for class imbalance.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from auxhash import neighbors, threads

Kind = Literal["similarity", "distance"]
RandomState = int | np.random.Generator | np.random.RandomState | None

CHUNK = 1024  # points that draw together
MOST_PAIRS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Affinity:
    """Pairs i < j of `n_points` points with values y and weights.

    `kind` says how to read y: as similarities (+1 similar, -1 dissimilar, or any real number) or
    as distances in [0, 1]. A pair drawn with two different y stands twice. `groups`, where known,
    holds one class number a point; blocks of the cut solver start from it.
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    n_points: int
    kind: Kind = "similarity"
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.i)

    def __repr__(self) -> str:
        return f"Affinity({len(self)} pairs of {self.n_points} points, y is a {self.kind})"

    def subset(self, index: ArrayLike) -> "Affinity":
        """The pairs among the points `index`, renumbered in its order (for cross-validation)."""
        chosen = np.asarray(index)
        if chosen.dtype == bool:
            if chosen.shape != (self.n_points,):
                raise ValueError(
                    f"a boolean index must have one entry for each of {self.n_points} points, "
                    f"got shape {chosen.shape}"
                )
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
            raise ValueError("index must be a list of point numbers or a boolean mask")
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < self.n_points):
            raise ValueError(f"index must lie in 0..{self.n_points - 1}")
        if len(np.unique(chosen)) != len(chosen):
            raise ValueError("index must not name a point twice")
        place = np.full(self.n_points, -1, np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        i, j = place[self.i], place[self.j]
        kept = (i >= 0) & (j >= 0)
        i, j = i[kept], j[kept]
        groups = None if self.groups is None else self.groups[chosen]
        return Affinity(
            np.minimum(i, j),
            np.maximum(i, j),
            self.y[kept],
            self.weight[kept],
            len(chosen),
            self.kind,
            groups,
        )

    def read_as(self, kind: Kind) -> NDArray[np.float64]:
        """y as similarities or as distances: similarity = 1 - 2 distance, both ways."""
        if kind == self.kind:
            return self.y
        return 1 - 2 * self.y if kind == "similarity" else (1 - self.y) / 2


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
    labels = np.asarray(y)
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must be of shape (n,) or (n, n_labels), got shape {labels.shape}")
    n = len(labels)
    similar, dissimilar = (
        _wanted("n_similar", n_similar, n),
        _wanted("n_dissimilar", n_dissimilar, n),
    )
    seed = _seed(random_state)
    groups: NDArray[np.int64] | None = None
    if labels.ndim == 1:
        groups = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        order = np.argsort(groups, kind="stable").astype(np.int32)
        size = np.bincount(groups)
        widths = min(similar, size.max() - 1), min(dissimilar, n - size.min())
        tables = _draw(n, widths, n_jobs, _draw_by_class, order, groups, np.cumsum(size), seed)
    else:
        if not np.isin(labels, (0, 1)).all():
            raise ValueError("a label matrix must hold only 0 and 1 (one column a label)")
        bits = np.packbits(labels.astype(bool), axis=1)
        tables = _draw(n, (similar, dissimilar), n_jobs, _draw_by_shared_label, bits, seed)
    short = []
    for name, wanted, table in zip(
        ("similar", "dissimilar"), (n_similar, n_dissimilar), tables, strict=True
    ):
        had = (table >= 0).sum(axis=1)
        if not had.any():
            raise ValueError(
                f"y gives no {name} pairs: it needs at least two classes, and two points that "
                f"share one (n_samples={n}, n_classes={len(np.unique(labels, axis=0))})"
            )
        if wanted is not None and had.min() < wanted:
            short.append(f"{(had < wanted).sum()} points have fewer than n_{name}={wanted}")
    if short:
        message = f"of {n} points, {' and '.join(short)}; all they have are used"
        warnings.warn(message, stacklevel=2)
    return _from_signs(*tables, groups)


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

    Args:
        X: features (n, D).
        metric: "euclidean" or "cosine".
        values: "sign" gives y = +1 for neighbours and -1 for the others; "distance" gives the
            squared distance over the largest among the drawn pairs, as BRE takes it.
        random_state: seed or generator of the draws.
    """
    points = np.asarray(X, np.float64)
    if points.ndim != 2 or len(points) < 3:
        raise ValueError(f"X must be of shape (n, D) with n >= 3, got shape {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("X must not hold NaN or infinity")
    if values not in ("sign", "distance"):
        raise ValueError(f'values must be "sign" or "distance", got {values!r}')
    n = len(points)
    if n_similar is None:
        raise ValueError("n_similar must be a number: all points cannot be near neighbours")
    if n_similar >= n - 1:
        warnings.warn(f"n_similar={n_similar} is capped at {n - 2} for {n} points", stacklevel=2)
    similar = min(_wanted("n_similar", n_similar, n), n - 2)
    dissimilar = _wanted("n_dissimilar", n_dissimilar, n)
    near = neighbors.nearest(points, k=similar, metric=metric, n_jobs=n_jobs)[0]
    near = np.sort(near, axis=1).astype(np.int32)
    tables = _draw(n, (similar, dissimilar), n_jobs, _draw_by_rank, near, _seed(random_state))
    if values == "sign":
        return _from_signs(*tables, None)
    i, j = (np.concatenate(part) for part in zip(*map(_drawn, tables), strict=True))
    place = neighbors.normalized(points) if metric == "cosine" else points
    return from_pairs(i, j, _squared_distances(place, i, j), n, kind="distance")


def from_pairs(
    i: ArrayLike,
    j: ArrayLike,
    y: ArrayLike,
    n_points: int,
    kind: Kind = "similarity",
    weight: ArrayLike | None = None,
) -> Affinity:
    """Affinities the user gives: y[p] for points i[p] and j[p], in any order, repeats allowed.

    Distances (`kind="distance"`) must not be negative and are divided by the largest.
    """
    a, b = _points("i", i, n_points), _points("j", j, n_points)
    values = np.asarray(y, np.float64)
    count = np.ones(len(a)) if weight is None else np.asarray(weight, np.float64)
    if not len(a) == len(b) == len(values) == len(count):
        raise ValueError(
            "i, j, y and weight must have one length, got "
            f"{len(a)}, {len(b)}, {len(values)}, {len(count)}"
        )
    if not len(a):
        raise ValueError("at least one pair is needed")
    if (a == b).any():
        raise ValueError(f"pair {np.flatnonzero(a == b)[0]} joins a point with itself")
    if not np.isfinite(values).all():
        raise ValueError("y must not hold NaN or infinity")
    if not (np.isfinite(count).all() and (count > 0).all()):
        raise ValueError("weight must be positive and finite")
    if kind not in ("similarity", "distance"):
        raise ValueError(f'kind must be "similarity" or "distance", got {kind!r}')
    if kind == "distance":
        if (values < 0).any():
            raise ValueError("distances must not be negative")
        values = values / (values.max() or 1.0)
    levels, level = np.unique(values, return_inverse=True)
    return _fold(a, b, level, levels, n_points, kind, None, count)


# Drawing. A draw is made by a counter-based generator seeded for each point, so that chunks of
# points can be drawn on any thread.


@njit(cache=True, nogil=True, inline="always")
def _random_below(seed: int, counter: int, m: int) -> Any:
    """The counter-th random integer in 0..m-1 of this seed (splitmix64)."""
    x = np.uint64(seed) + np.uint64(counter) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = (x ^ (x >> np.uint64(31))) >> np.uint64(32)
    return np.int64((x * np.uint64(m)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def _sample(m: int, k: int, seed: int, stream: int, taken: Any, out: Any) -> int:
    """Put min(m, k) distinct integers of 0..m-1 into `out` (Floyd's method); return how many.

    `taken` is a scratch array of m or more False, and is left so.
    """
    k = min(m, k)
    start = np.uint64(stream) << np.uint64(32)
    for t in range(k):
        top = m - k + t
        pick = _random_below(seed, start + np.uint64(t), top + 1)
        if taken[pick]:
            pick = top
        taken[pick] = True
        out[t] = pick
    for t in range(k):
        taken[out[t]] = False
    return k


@njit(cache=True, nogil=True)
def _draw_by_class(
    first: int, similar: Any, dissimilar: Any, order: Any, groups: Any, stop: Any, seed: int
) -> None:
    """`order` lists the points class by class; class c ends at stop[c]."""
    n = len(order)
    taken = np.zeros(n, np.bool_)
    for row in range(len(similar)):
        point = first + row
        end = stop[groups[point]]
        begin = stop[groups[point] - 1] if groups[point] > 0 else 0
        # Drawn from all but the last of the class, which stands in where the point itself comes up.
        found = _sample(end - begin - 1, similar.shape[1], seed, 2 * point, taken, similar[row])
        for t in range(found):
            other = order[begin + similar[row, t]]
            similar[row, t] = order[end - 1] if other == point else other
        found = _sample(
            n - (end - begin), dissimilar.shape[1], seed, 2 * point + 1, taken, dissimilar[row]
        )
        for t in range(found):
            place = dissimilar[row, t]
            dissimilar[row, t] = order[place if place < begin else place + end - begin]


@njit(cache=True, nogil=True)
def _draw_by_shared_label(first: int, similar: Any, dissimilar: Any, bits: Any, seed: int) -> None:
    """`bits` holds each point's labels, packed."""
    n = len(bits)
    taken = np.zeros(n, np.bool_)
    sharing = np.empty(n, np.int32)
    others = np.empty(n, np.int32)
    for row in range(len(similar)):
        point = first + row
        n_sharing = n_others = 0
        for m in range(n):
            shared = False
            for w in range(bits.shape[1]):
                shared |= (bits[point, w] & bits[m, w]) != 0
            if shared and m != point:
                sharing[n_sharing] = m
                n_sharing += 1
            elif m != point:
                others[n_others] = m
                n_others += 1
        found = _sample(n_sharing, similar.shape[1], seed, 2 * point, taken, similar[row])
        for t in range(found):
            similar[row, t] = sharing[similar[row, t]]
        found = _sample(n_others, dissimilar.shape[1], seed, 2 * point + 1, taken, dissimilar[row])
        for t in range(found):
            dissimilar[row, t] = others[dissimilar[row, t]]


@njit(cache=True, nogil=True)
def _draw_by_rank(first: int, similar: Any, dissimilar: Any, near: Any, seed: int) -> None:
    """`near` lists each point's nearest neighbours in rising order of index."""
    n, k = near.shape
    taken = np.zeros(n, np.bool_)
    others = np.empty(n, np.int32)
    for row in range(len(similar)):
        point = first + row
        similar[row] = near[point]
        n_others = at = 0
        for m in range(n):
            if at < k and near[point, at] == m:
                at += 1
            elif m != point:
                others[n_others] = m
                n_others += 1
        found = _sample(n_others, dissimilar.shape[1], seed, 2 * point + 1, taken, dissimilar[row])
        for t in range(found):
            dissimilar[row, t] = others[dissimilar[row, t]]


Table = NDArray[np.int32]  # (n, k): the points that each point drew, padded with -1


def _draw(
    n: int, widths: tuple[int, int], n_jobs: int | None, kernel: Any, *args: Any
) -> tuple[Table, Table]:
    """Run a drawing kernel over all points: the similar table, then the dissimilar one."""
    if n * sum(widths) > MOST_PAIRS:
        raise ValueError(
            f"{n} points x {' + '.join(map(str, widths))} draws is more than {MOST_PAIRS} pairs; "
            "lower n_similar and n_dissimilar"
        )
    similar, dissimilar = (np.full((n, width), -1, np.int32) for width in widths)

    def draw(rows: slice) -> None:
        kernel(rows.start, similar[rows], dissimilar[rows], *args)

    with threads.pool(n_jobs) as run:
        run(draw, threads.chunks(n, CHUNK))
    return similar, dissimilar


def _drawn(table: Table) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The draws n -> m of a table."""
    n, k = table.shape
    source = np.repeat(np.arange(n, dtype=np.int32), k)
    target = table.ravel()
    full = target >= 0
    return (source, target) if full.all() else (source[full], target[full])


def _from_signs(similar: Table, dissimilar: Table, groups: NDArray[np.int64] | None) -> Affinity:
    i, j = (np.concatenate(p) for p in zip(_drawn(dissimilar), _drawn(similar), strict=True))
    level = np.ones(len(i), np.int8)
    level[: (dissimilar >= 0).sum()] = 0
    return _fold(i, j, level, np.array([-1.0, 1.0]), len(similar), "similarity", groups, None)


def _fold(
    i: NDArray[Any],
    j: NDArray[Any],
    level: NDArray[Any],
    levels: NDArray[np.float64],
    n: int,
    kind: Kind,
    groups: NDArray[np.int64] | None,
    weight: NDArray[np.float64] | None,
) -> Affinity:
    """Fold draws into unordered pairs with summed weights; y = levels[level]."""
    key = np.minimum(i, j).astype(np.int64)
    key *= n
    key += np.maximum(i, j)
    key *= len(levels)
    key += level
    if weight is None:
        key.sort()
    else:
        order = np.argsort(key, kind="stable")
        key, weight = key[order], weight[order]
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    if weight is None:
        total = np.diff(np.append(start, len(key))).astype(np.float64)
    else:
        total = np.add.reduceat(weight, start)
    pair, level = np.divmod(key[start], len(levels))
    low, high = np.divmod(pair, n)
    return Affinity(
        low.astype(np.int32), high.astype(np.int32), levels[level], total, n, kind, groups
    )


def _squared_distances(
    X: NDArray[np.float64], i: NDArray[np.int32], j: NDArray[np.int32]
) -> NDArray[np.float64]:
    """|x_i - x_j|^2 for each pair, without holding all differences at once."""
    parts = [
        np.square(X[i[rows]] - X[j[rows]]).sum(axis=1) for rows in threads.chunks(len(i), 1 << 16)
    ]
    return np.concatenate(parts)


def _seed(random_state: RandomState) -> np.uint64:
    return generator(random_state).integers(0, 2**63, dtype=np.uint64)


def generator(random_state: RandomState) -> np.random.Generator:
    """A Generator from a seed, a Generator, a RandomState or None (fresh entropy)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1))
    return np.random.default_rng(random_state)


def _wanted(name: str, k: int | None, n: int) -> int:
    """Number of draws a point: k, or all others for None."""
    if k is None:
        return max(0, n - 1)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"{name} must be a positive whole number or None (all), got {k!r}")
    return int(k)


def _points(name: str, index: ArrayLike, n: int) -> NDArray[np.int64]:
    array = np.asarray(index)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be a 1-D array of point numbers")
    if len(array) and not (array.min() >= 0 and array.max() < n):
        raise ValueError(f"{name} must lie in 0..{n - 1} for n_points={n}")
    return array.astype(np.int64)
