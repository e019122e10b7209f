"""An affinity: pairs of points with values y and weights.

A million points have hundreds of millions of pairs, so little is held of each: j, and one byte for
y and weight. The other columns are made from these when they are asked for.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Numbers
from auxhash.compute.kernels import kernel

Kind = Literal["similarity", "distance"]

MAX_ROWS = 256  # distinct (y, weight) whose number is one byte
PAIRS_PER_PART = 1 << 20  # pairs processed together
MAX_KEPT_PAIRS = 1 << 23  # pairs whose columns are kept once they were asked for


class Affinity:
    """Pairs i < j of `n_points` points with values y and weights.

    `kind` says how to read y: as similarities (+1 similar, -1 dissimilar, or any real number) or
    as distances in [0, 1]. A pair drawn with two different y is listed twice. `groups`, if known,
    holds one class number per point; the blocks of the cut solver start from it.

    The columns `i`, `j`, `y` and `weight` are arrays (pairs,). All but j may be made at each
    request, if there are more than 8 million pairs: `ends` and `values` give a part of them.

    Attributes:
        row, rows: where there are at most 256 distinct (y, weight), the number of each pair's
            among them, uint8 (pairs,), and the (y, weight) themselves (rows, 2); else None.
    """

    by_class = False  # whether it is known that y is +1 within the groups and -1 between them

    def __init__(
        self,
        i: ArrayLike,
        j: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike,
        n_points: int,
        kind: Kind = "similarity",
        groups: ArrayLike | None = None,
    ) -> None:
        """Check the arrays, since kernels read them without checks of their own."""
        first, second = _integers("i", i), _integers("j", j)
        lengths = {len(first), len(second), np.size(y), np.size(weight)}
        if len(lengths) > 1:
            raise ValueError("i, j, y and weight must have one length")
        fine = first.min(initial=0) >= 0 and second.max(initial=0) < n_points
        if not fine or not (first < second).all():
            raise ValueError(f"pairs must be 0 <= i < j < n_points={n_points}")
        checks.one_of("kind", kind, ("similarity", "distance"))
        self.n_points, self.kind = n_points, kind
        self.groups: Numbers | None = None
        if groups is not None:
            self.groups = _integers("groups", groups).astype(np.int64)
            if len(self.groups) != n_points:
                raise ValueError(f"groups must hold one number for each of {n_points} points")
        self.j = second.astype(np.int32, copy=False)
        self._i: AnyArray | None = first.astype(np.int32, copy=False)
        self._starts: Numbers | None = None  # where the pairs of each i start, if they are sorted
        if n_points <= len(first) and (first[1:] >= first[:-1]).all():
            self._starts = np.append(0, np.cumsum(np.bincount(first, minlength=n_points)))
            self._i = None
        self._set_values(y, weight)

    @classmethod
    def sorted_pairs(
        cls,
        starts: Numbers,
        j: NDArray[np.int32],
        y: AnyArray,
        weight: AnyArray,
        kind: Kind,
        groups: Numbers | None,
    ) -> "Affinity":
        """Make an affinity from pairs i < j sorted by i, those of each i from its start."""
        new = cls.__new__(cls)
        new.n_points, new.kind, new.groups = len(starts) - 1, kind, groups
        new.j, new._i, new._starts = j, None, starts
        new._set_values(y, weight)
        return new

    @classmethod
    def sorted_rows(
        cls,
        starts: Numbers,
        j: NDArray[np.int32],
        row: NDArray[np.uint8],
        rows: Array,
        groups: Numbers | None,
    ) -> "Affinity":
        """Make an affinity of similarities from sorted pairs and their rows of (y, weight)."""
        new = cls.__new__(cls)
        new.n_points, new.kind, new.groups = len(starts) - 1, "similarity", groups
        new.j, new._i, new._starts = j, None, starts
        new.row, new.rows, new._kept = row, rows, {}
        new._y = new._weight = None
        return new

    def _set_values(self, y: ArrayLike, weight: ArrayLike) -> None:
        values, weights = _finite("y", y), np.asarray(weight)
        if weights.dtype.kind != "u":  # counts stay as they are: they are short, and finite
            weights = _finite("weight", weights)
        if not (weights > 0).all():
            raise ValueError("weight must be above 0")
        rows, row = _distinct(values, weights, MAX_ROWS)
        few = bool(len(rows)) or not len(values)
        self.row: NDArray[np.uint8] | None = row if few else None
        self.rows: Array | None = rows if few else None
        self._y: Array | None = None if few else values
        self._weight: AnyArray | None = None if few else _short(weights)
        self._kept: dict[str, AnyArray] = {}

    def on_processor(self) -> "Affinity":
        """Return the affinity in the processor's memory, where it is already."""
        return self

    def __len__(self) -> int:
        return len(self.j)

    def __repr__(self) -> str:
        return f"Affinity({len(self)} pairs of {self.n_points} points, y is a {self.kind})"

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the cached columns: they are computed again when asked for."""
        return {**vars(self), "_kept": {}}

    @property
    def i(self) -> NDArray[np.int32]:
        return self._column("i", lambda: self.ends(slice(0, len(self)))[0])

    @property
    def y(self) -> Array:
        return self._column("y", lambda: self.values(slice(0, len(self)))[0])

    @property
    def weight(self) -> Array:
        return self._column("weight", lambda: self.values(slice(0, len(self)))[1])

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory."""
        parts = self.j, self._i, self._starts, self.row, self.rows, self._y, self._weight
        kept = *self._kept.values(), self.groups
        return sum(part.nbytes for part in (*parts, *kept) if part is not None)

    def _column(self, name: str, make: Callable[[], AnyArray]) -> AnyArray:
        if name in self._kept:
            return self._kept[name]
        column = make()
        if len(self) <= MAX_KEPT_PAIRS:
            column.flags.writeable = False  # it would change this copy alone
            self._kept[name] = column
        return column

    def ends(self, pairs: slice) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return i and j of these pairs; the slice has a start and a stop within the pairs."""
        j = self.j[pairs]
        if "i" in self._kept or self._i is not None:
            i = self._kept["i"] if self._i is None else self._i
            return i[pairs], j
        assert self._starts is not None
        first = int(np.searchsorted(self._starts, pairs.start, "right")) - 1
        last = int(np.searchsorted(self._starts, pairs.stop, "left"))
        size = np.diff(self._starts[first : last + 1].clip(pairs.start, pairs.stop))
        return np.repeat(np.arange(first, last, dtype=np.int32), size), j

    def by_first(self) -> tuple[Numbers, NDArray[np.int32], Numbers | None]:
        """Sort the pairs by i, then by j: return where those of each i start, and j.

        Also their numbers, in that order; None if they are in it already.
        """
        if self._starts is not None and _rise(self._starts, self.j):
            return self._starts, self.j, None
        i, j = self.ends(slice(0, len(self)))
        order = np.lexsort((j, i))
        starts = np.append(0, np.cumsum(np.bincount(i, minlength=self.n_points)))
        return starts, j[order], order

    def values(self, pairs: slice) -> tuple[Array, Array]:
        """Return y and weight of these pairs."""
        if self.row is None or self.rows is None:
            assert self._y is not None
            assert self._weight is not None
            return self._y[pairs], self._weight[pairs].astype(np.float64, copy=False)
        y, weight = self.rows.T
        row = self.row[pairs]
        return y[row], weight[row]

    def distinct_y(self) -> Array:
        """Return the distinct y, in rising order."""
        if self.row is None or self.rows is None:
            return np.unique(self.y)
        return np.unique(self.rows[self._times() > 0, 0])

    def _times(self) -> Numbers:
        """Count how often each of `rows` occurs."""
        assert self.row is not None
        assert self.rows is not None
        times = np.zeros(len(self.rows), np.int64)
        for start in range(0, len(self), PAIRS_PER_PART):  # bincount makes an int64 of every byte
            times += np.bincount(self.row[start : start + PAIRS_PER_PART], minlength=len(times))
        return times

    def total_weight(self) -> float:
        """Return the sum of the weights."""
        if self.row is not None and self.rows is not None:
            weight = self.rows[:, 1]
            if (weight == np.rint(weight)).all():  # so that the sum is exact in any order
                return float(self._times() @ weight)
        return float(self.weight.sum())

    def class_weights(self, classes: Numbers) -> Array:
        """Sum the weights (classes, classes) of the pairs of each two classes.

        Every pair counts twice: in both orders.
        """
        short = classes.astype(np.int32)  # fewer of them miss the caches

        def part(pairs: slice) -> Array:
            weight = np.zeros((int(classes.max()) + 1,) * 2)
            _add_weights(short, *self.ends(pairs), self.values(pairs)[1], weight)
            return weight

        parts = threads.chunks(len(self), PAIRS_PER_PART) or [slice(0, 0)]
        weight: Array = np.sum(threads.run_kernels(part, parts), axis=0)
        return weight + weight.T

    def grouped(self, groups: ArrayLike) -> "Affinity":
        """Return an affinity of these pairs with the points in other groups."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self), groups=_integers("groups", groups).astype(np.int64))
        new.by_class = False
        if new.groups is None or len(new.groups) != self.n_points:
            raise ValueError(f"groups must hold one number for each of {self.n_points} points")
        return new

    def subset(self, index: ArrayLike) -> "Affinity":
        """Return the pairs among the points `index`, renumbered in its order."""
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

    def read_as(self, kind: Kind) -> Array:
        """Return y as similarities or as distances."""
        return convert(self.y, self.kind, kind)


def _integers(name: str, values: ArrayLike) -> AnyArray:
    array = np.asarray(values)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be an array (n,) of whole numbers")
    return array


def _finite(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be an array (n,) of finite numbers")
    return array


def _short(weight: AnyArray) -> AnyArray:
    """Convert weights to bytes, if they are small whole numbers, as of draws."""
    small: NDArray[np.uint8] = np.clip(weight, 0, 255).astype(np.uint8)
    return small if (small == weight).all() else weight.astype(np.float64, copy=False)


def convert(y: Array, current: Kind, wanted: Kind) -> Array:
    """Convert values y of the kind `current` to the kind `wanted`: similarity = 1 - 2 distance."""
    if current == wanted:
        return y
    return 1 - 2 * y if wanted == "similarity" else (1 - y) / 2


@kernel
def _add_weights(
    classes: AnyArray, i: AnyArray, j: AnyArray, weight: AnyArray, out: AnyArray
) -> None:
    """Add the weights of these pairs to the cells of their classes."""
    for p in range(len(i)):
        out[classes[i[p]], classes[j[p]]] += weight[p]


@kernel
def _rise(starts: AnyArray, j: AnyArray) -> bool:
    """Return True if the j of each i are in rising order."""
    for i in range(len(starts) - 1):
        for p in range(starts[i] + 1, starts[i + 1]):
            if j[p] < j[p - 1]:
                return False
    return True


@kernel
def _distinct(y: AnyArray, weight: AnyArray, most: int) -> tuple[Array, NDArray[np.uint8]]:
    """The distinct (y, weight) and the row of each pair among them; no rows if more than `most`."""
    rows = np.empty((most, 2))
    number = np.zeros(len(y), np.uint8)
    n_rows = last = 0
    for p in range(len(y)):
        if n_rows == 0 or y[p] != rows[last, 0] or weight[p] != rows[last, 1]:
            last = 0
            while last < n_rows and (y[p] != rows[last, 0] or weight[p] != rows[last, 1]):
                last += 1
            if last == most:
                return rows[:0], number
            if last == n_rows:
                rows[last, 0] = y[p]
                rows[last, 1] = weight[p]
                n_rows += 1
        number[p] = last
    return rows[:n_rows].copy(), number
