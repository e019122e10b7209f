"""Pairs drawn from labels on a GPU, where they stay."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks, random
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.device import Device
from auxhash.mac.affinity import build, draws
from auxhash.mac.affinity.affinity import Affinity
from auxhash.mac.affinity.folding import SIGNS

N_THREADS = 1 << 14  # that draw at the same time
BYTES_PER_EDGE = 5  # bytes: a partner, and the row of its (y, weight)
MAX_DRAWS_PER_POINT = 1 << 12  # of a point; more are drawn by the processor
SIGN_ROWS = np.array([(y, 1.0) for y in SIGNS])  # (y, weight) of dissimilar and similar draws
POINTS_PER_STEP = 1 << 14  # points whose edges are counted at once
COLUMNS = ("j", "row", "rows", "_i", "_starts", "_y", "_weight", "_kept")  # of an `Affinity`


def from_labels(
    device: Device,
    y: AnyArray,
    n_similar: int | None,
    n_dissimilar: int | None,
    rng: np.random.Generator,
) -> Affinity:
    """Draw pairs as `affinity.from_labels`; on the GPU if y is (n,) and draws are few."""
    few = n_similar and n_dissimilar and max(n_similar, n_dissimilar) <= MAX_DRAWS_PER_POINT
    if y.ndim != 1 or not few:
        return build.from_labels(y, n_similar, n_dissimilar, rng)
    assert n_similar is not None
    assert n_dissimilar is not None
    labels, seed = checks.labels("y", y), random.seed(rng)
    return DeviceAffinity(device, labels, int(n_similar), int(n_dissimilar), seed)


class DrawnEdges(NamedTuple):
    """Neighbour lists as in `zstep.problem.Edges`; a pair drawn by both points is in them twice."""

    indptr: Numbers  # (n + 1,)
    indices: NDArray[np.uint32]  # (edges,)
    row: NDArray[np.uint8]  # (edges,)


class DeviceAffinity(Affinity):
    """An affinity drawn from labels on a GPU: the pairs that `from_labels` draws for this seed.

    It has no columns i, j, y and weight: `on_processor` has.
    """

    by_class = True

    def __init__(
        self, device: Device, labels: AnyArray, n_similar: int, n_dissimilar: int, seed: np.uint64
    ) -> None:
        self.kind, self.n_points, self.device = "similarity", len(labels), device
        self.classes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        self.groups, self.rows = self.classes, SIGN_ROWS
        self.drawn_as = labels, n_similar, n_dissimilar, seed
        self.n_draws = self._counted(n_similar, n_dissimilar)
        self.edges = self._drawn(n_similar, n_dissimilar, seed)

    def _counted(self, n_similar: int, n_dissimilar: int) -> int:
        """Count all draws; warn or raise, as `from_labels` does, where points have too few."""
        size = np.bincount(self.classes)[self.classes]
        had = np.minimum(n_similar, size - 1), np.minimum(n_dissimilar, self.n_points - size)
        build.warn_of_few(had, (n_similar, n_dissimilar), self.classes)
        return int(had[0].sum() + had[1].sum())

    def _drawn(self, n_similar: int, n_dissimilar: int, seed: np.uint64) -> DrawnEdges:
        device, n = self.device, self.n_points
        size = np.bincount(self.classes)
        slots = 1 << (2 * max(n_similar, n_dissimilar)).bit_length()
        width = 64
        n_threads = -(-min(N_THREADS, n) // width) * width
        needed = 2 * BYTES_PER_EDGE * self.n_draws + 8 * slots * n_threads
        device.check_room(needed, f"storing {2 * self.n_draws:,} neighbours")
        sets = device.zeros((n_threads, slots), np.uint64)
        order = np.argsort(self.classes, kind="stable").astype(np.uint32)
        listed = (device.put(part) for part in (order, self.classes, np.cumsum(size)))
        arguments = n, n_similar, n_dissimilar, *listed, np.uint64(seed), sets, slots
        kernels = device.kernels(draws.__file__, width)
        counts = device.zeros(n, np.int64)
        nothing = np.uint64(0)  # a pointer to nowhere

        def draw(*out: object) -> None:
            sets.fill(0)
            kernels("by_class", n_threads // width, *arguments, *out)

        draw(counts, nothing, nothing, nothing, nothing)
        indptr = device.zeros(n + 1, np.int64)
        np.cumsum(counts, out=indptr[1:])
        indices = device.empty(2 * self.n_draws, np.uint32)
        row = device.empty(2 * self.n_draws, np.uint8)
        draw(counts, indptr, device.zeros(n, np.uint32), indices, row)
        return DrawnEdges(indptr, indices, row)

    def __len__(self) -> int:
        return self.n_draws

    def on_processor(self) -> Affinity:
        """Return these pairs, folded; the processor draws them again at the first request."""
        return LaterAffinity(self.drawn_as, self.classes)

    def total_weight(self) -> float:
        return float(self.n_draws)

    def distinct_y(self) -> Array:
        return SIGNS

    def class_weights(self, classes: Numbers) -> Array:
        device, n_classes = self.device, int(classes.max()) + 1
        own, total = device.put(classes), np.zeros(n_classes**2)
        indptr, indices, _ = self.edges
        for start in range(0, self.n_points, POINTS_PER_STEP):
            ends = indptr[start : start + POINTS_PER_STEP + 1]
            first, last = int(ends[0]), int(ends[-1])
            source = np.repeat(own[start : start + POINTS_PER_STEP], np.diff(ends))
            cell = source * n_classes + own[indices[first:last]]
            total += device.fetch(np.bincount(cell, minlength=n_classes**2))
        return total.reshape(n_classes, n_classes)


class LaterAffinity(Affinity):
    """An affinity whose pairs are drawn from labels at the first request for one of its columns.

    They would be gigabytes that most users of a trained model do not look at.
    """

    by_class = True

    def __init__(self, drawn_as: tuple[AnyArray, int, int, np.uint64], groups: Numbers) -> None:
        self.kind, self.n_points, self.groups = "similarity", len(groups), groups
        self._drawn_as = drawn_as

    def __repr__(self) -> str:
        if "j" in vars(self):
            return super().__repr__()
        return f"Affinity(pairs of {self.n_points} points, not drawn yet, y is a {self.kind})"

    def __getattr__(self, name: str) -> Any:
        """Draw the pairs when one of their columns is first asked for."""
        drawn_as = vars(self).get("_drawn_as")
        if name not in COLUMNS or drawn_as is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with warnings.catch_warnings():  # of few points it was warned before
            warnings.simplefilter("ignore")
            drawn = vars(build.drawn_from_labels(*drawn_as))
        vars(self).update({column: drawn[column] for column in COLUMNS})
        return vars(self)[name]
