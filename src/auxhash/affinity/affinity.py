"""An affinity: pairs of points with values y and weights, and the folding of draws into pairs."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Kind = Literal["similarity", "distance"]

MOST_KEYS = 2**63


@dataclass(frozen=True, eq=False)
class Affinity:
    """Pairs i < j of `n_points` points with values y and weights.

    `kind` says how to read y: as similarities (+1 similar, -1 dissimilar, or any real number) or
    as distances in [0, 1]. A pair drawn with two different y is listed twice. `groups`, if known,
    holds one class number per point; the blocks of the cut solver start from it.
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    n_points: int
    kind: Kind = "similarity"
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Check the arrays: kernels read them without checks of their own."""
        i, j = _whole("i", self.i), _whole("j", self.j)
        y, weight = _finite("y", self.y), _finite("weight", self.weight)
        if not len(i) == len(j) == len(y) == len(weight):
            raise ValueError("i, j, y and weight must have one length")
        fine = i.min(initial=0) >= 0 and j.max(initial=0) < self.n_points
        if not fine or not (i < j).all():
            raise ValueError(f"pairs must be 0 <= i < j < n_points={self.n_points}")
        if not (weight > 0).all():
            raise ValueError("weight must be above 0")
        if self.kind not in ("similarity", "distance"):
            raise ValueError(f'kind must be "similarity" or "distance", got {self.kind!r}')
        groups = None if self.groups is None else _whole("groups", self.groups).astype(np.int64)
        if groups is not None and len(groups) != self.n_points:
            raise ValueError(f"groups must hold one number for each of {self.n_points} points")
        i, j = i.astype(np.int32, copy=False), j.astype(np.int32, copy=False)
        plain = {"i": i, "j": j, "y": y, "weight": weight, "groups": groups}
        for name, array in plain.items():
            object.__setattr__(self, name, array)

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
        """y as similarities or as distances."""
        return convert(self.y, self.kind, kind)


def _whole(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be an array (n,) of whole numbers")
    return array


def _finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be an array (n,) of finite numbers")
    return array


def convert(y: NDArray[np.float64], given: Kind, wanted: Kind) -> NDArray[np.float64]:
    """Values y of the kind `given` as the kind `wanted`: similarity = 1 - 2 distance."""
    if given == wanted:
        return y
    return 1 - 2 * y if wanted == "similarity" else (1 - y) / 2


def fold(
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
    pairs = None  # or the distinct keys of pairs, of which `key` then holds the indices
    if n * n * len(levels) > MOST_KEYS:
        pairs, key = np.unique(key, return_inverse=True)
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
    low, high = np.divmod(pair if pairs is None else pairs[pair], n)
    return Affinity(
        low.astype(np.int32), high.astype(np.int32), levels[level], total, n, kind, groups
    )
