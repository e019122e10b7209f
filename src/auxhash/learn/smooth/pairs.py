"""The affinity-based loss as an objective of the smooth core, over given or fresh pairs.

With u = tanh(s a) in place of a code, d = (b - u_i'u_j) / 2 is a real number; the slope of the loss
there is interpolated from its table, so any loss can be used. For ksh and bre that is exact, and no
single pair has to be computed: their slope is a line, A + B u_i'u_j, so the sum over the partners j
of a class needs only the class's sum of u_j and its sum of u_j u_j'.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Numbers, Single
from auxhash.compute.device import CPU
from auxhash.compute.kernels import kernel
from auxhash.learn.smooth.gradient import Objective, Outputs, Shuffled, through_tanh
from auxhash.mac import losses
from auxhash.mac.affinity import Affinity
from auxhash.mac.zstep import Problem
from auxhash.mac.zstep.graph import Edges

PairSource = Literal["auto", "given", "fresh"]

BATCH_SIZE = 2000  # points per step
POINTS_PER_TASK = 128  # points of a batch per task of a thread
PARTNERS_PER_FETCH = 32  # partners of a point whose outputs are fetched together
POINTS_PER_BEND = 1 << 13  # points whose tanh is taken by a task: there may be a million of them
MAX_VALUES = 256  # of y: the steepest slope is sought among at most so many
ALL_OUTPUTS_UP_TO = 1 << 15  # points: up to so many, all outputs are computed, needed or not
PAIRS_PER_CHUNK = 1 << 20  # pairs of an affinity that are looked at together
MIN_PARTNERS = 10  # per class that a batch holds on average, for "auto" to take fresh pairs


def objective_for(problem: Problem, source: PairSource, batch: int) -> Objective:
    """The loss over the pairs that `source` asks for; "auto" takes fresh ones where it can."""
    classes = fresh_classes(problem, source, batch)
    return AffinityPairs(problem, batch) if classes is None else FreshPairs(problem, classes, batch)


def fresh_classes(problem: Problem, source: PairSource, batch: int) -> Numbers | None:
    """The class of each point, where pairs are to be fresh; None where they are the given ones."""
    if source == "given":
        return None
    classes = classes_of(problem.affinity)
    if source == "fresh" and classes is None:
        raise ValueError(
            'pairs="fresh" needs an affinity drawn from classes (affinity.from_labels with '
            'one label per point); use "given"'
        )
    if source == "fresh" or classes is None:
        return classes
    many = min(batch, problem.n_points) >= MIN_PARTNERS * (classes.max() + 1)
    return classes if many else None


def classes_of(affinity: Affinity) -> Numbers | None:
    """Each point's class 0, 1, ... if y is +1 within the groups and -1 between them, else None."""
    groups = affinity.groups
    if groups is None or affinity.kind != "similarity":
        return None
    if affinity.by_class:
        return groups
    for pairs in threads.chunks(len(affinity), PAIRS_PER_CHUNK):
        i, j = affinity.ends(pairs)
        if not np.array_equal(
            affinity.values(pairs)[0], np.where(groups[i] == groups[j], 1.0, -1.0)
        ):
            return None
    return np.unique(groups, return_inverse=True)[1]


class FreshPairs:
    """All pairs of a batch, each with the mean weight in the affinity of a pair of its classes."""

    def __init__(self, problem: Problem, classes: Numbers, batch: int = BATCH_SIZE) -> None:
        affinity = problem.affinity
        self.batch, self.unit, self.device = batch, steepest(problem), problem.device
        size = np.bincount(classes)
        weight = affinity.class_weights(classes)
        count = np.outer(size, size) - np.diag(size)
        weight = np.divide(weight, count, out=np.zeros_like(weight), where=count > 0)
        self.weight = (weight / affinity.total_weight()).astype(np.float32)  # (classes, classes)
        self.classes = classes
        self.slope = _slope(losses.curves(problem.function, [-1, 1], problem.n_bits))
        parts = classes.astype(np.int32), self.weight, self.slope
        self.on_device = [self.device.put(part) for part in parts]
        line = _line(self.slope)
        same = np.eye(len(size), dtype=np.int64)
        self.line = None if line is None else [self.weight * side[same] for side in line]

    def batches(self, rng: np.random.Generator) -> Shuffled:
        return Shuffled(len(self.classes), self.batch, rng, self.device)

    def scale(self, rows: Numbers) -> float:
        return len(self.classes) / len(rows) / self.unit

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        U = np.tanh(s * outputs(rows))
        classes = self.on_device[0][rows]
        if self.device is not CPU:
            pull = self._all_at_once(U, classes)
        elif self.line is None:
            pull = self._pair_by_pair(U, classes, run)
        else:
            pull = self._class_by_class(U, classes, *self.line)
        # The batch holds only this share of a row's partners.
        share = (len(self.classes) - 1) / max(len(rows) - 1, 1)
        return through_tanh(pull, U, s, share)

    def _pair_by_pair(self, U: Single, classes: Numbers, run: threads.Run) -> Single:
        def part(chunk: slice) -> Single:
            S: Single = U[chunk] @ U.T
            _class_pulls(S, chunk.start, classes, self.weight, self.slope)
            return S @ U

        return np.concatenate(run(part, threads.chunks(len(U), POINTS_PER_TASK)))

    def _all_at_once(self, U: Single, classes: Numbers) -> Single:
        """Compute the pull on a GPU, from all pairs of the batch at once, for any loss."""
        S: Single = U @ U.T
        _, weight, slope = self.on_device
        arguments = classes, weight, slope, len(U), len(weight), slope.shape[1]
        self.device.kernels(__file__).over("class_pulls", S.size, S, *arguments)
        return S @ U

    def _class_by_class(self, U: Single, classes: Numbers, A: Single, B: Single) -> Single:
        """Compute the pull where weight times slope is A + B u_i'u_j; A, B (classes, classes)."""
        order = np.argsort(classes, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(classes, minlength=len(A)))[:-1])
        level = A @ np.stack([U[own].sum(axis=0) for own in members])
        tilt = np.tensordot(B, np.stack([U[own].T @ U[own] for own in members]), 1)
        pull = np.empty_like(U)
        for c, own in enumerate(members):
            itself = A[c, c] + B[c, c] * np.square(U[own]).sum(axis=1, keepdims=True)
            pull[own] = level[c] + U[own] @ tilt[c] - itself * U[own]
        return pull


class AffinityPairs:
    """All pairs of the affinity that a point of the batch is part of."""

    def __init__(self, problem: Problem, batch: int = BATCH_SIZE) -> None:
        self.batch, self.unit, self.device = batch, steepest(problem), problem.device
        self.n_points = problem.n_points
        self.edges = problem.edges
        total = problem.affinity.total_weight()
        self.slope, self.basis = (self.device.put(_slope(v / total)) for v in problem.values)

    def batches(self, rng: np.random.Generator) -> Shuffled:
        return Shuffled(self.n_points, self.batch, rng, self.device)

    def scale(self, rows: Numbers) -> float:
        return self.n_points / len(rows) / self.unit

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        edges = self.edges
        if self.device is not CPU:
            return self._all_at_once(outputs, rows, s)
        needed, place = self._needed(rows)
        U = outputs(needed)

        def bend(chunk: slice) -> None:
            U[chunk] = np.tanh(s * U[chunk])

        run(bend, threads.chunks(len(U), POINTS_PER_BEND))
        pull = np.empty((len(rows), U.shape[1]), np.float32)

        def part(chunk: slice) -> None:
            _affinity_pulls(rows[chunk], edges, self.slope, self.basis, place, U, pull[chunk])

        run(part, threads.chunks(len(rows), POINTS_PER_TASK))
        return through_tanh(pull, U[place[rows]], s)

    def _all_at_once(self, outputs: Outputs, rows: Numbers, s: np.float32) -> Single:
        """Compute the pull on a GPU, from the outputs of all points."""
        U = np.tanh(s * outputs(slice(None)))
        edges = self.edges
        pull: Single = self.device.empty((len(rows), U.shape[1]), np.float32)
        lists = edges.indptr, edges.indices, edges.row, edges.pair
        curves = edges.coef, edges.coef.shape[1], self.slope, self.basis
        kernels = self.device.kernels(__file__)
        kernels("given_pulls", len(rows), rows, *lists, *curves, U, U.shape[1], pull)
        return through_tanh(pull, U[rows], s)

    def _needed(self, rows: Numbers) -> tuple[Numbers | slice, NDArray[np.int32]]:
        """The points of a batch and their partners, and the place of each point among them.

        They are all points if there are few, or if these are most of them. (Of few points
        all are taken: the sums of a matrix product may round differently for a part of its rows.)
        """
        if self.n_points > ALL_OUTPUTS_UP_TO:
            place = np.zeros(self.n_points, np.int32)
            count = _mark_partners(rows, self.edges, place)
            if 2 * count < self.n_points:
                needed = np.flatnonzero(place)
                place[needed] = np.arange(count)
                return needed, place
        return slice(None), np.arange(self.n_points, dtype=np.int32)


def steepest(problem: Problem) -> float:
    """The steepest slope of the loss over the y of the affinity (a sample, if there are many)."""
    affinity = problem.affinity
    values = affinity.distinct_y()
    if len(values) > MAX_VALUES:
        values = np.quantile(values, np.linspace(0, 1, MAX_VALUES))
    curves = losses.curves(problem.function, values, problem.n_bits, affinity.kind)
    return float(np.abs(_slope(curves)).max()) or 1.0


def _slope(curves: Array) -> Single:
    """-(1/2) d loss / d d at d = 0..b: the factor of u_j in the gradient for u_i."""
    if not len(curves):
        return curves.astype(np.float32)
    slope = np.gradient(curves, axis=1, edge_order=1 if curves.shape[1] == 2 else 2)
    return (-0.5 * slope).astype(np.float32)


def _line(slope: Single) -> tuple[Single, Single] | None:
    """A and B of each row where all rows are lines A + B (b - 2 d) over d = 0..b, else None."""
    b = slope.shape[1] - 1
    B = (slope[:, 0] - slope[:, -1]) / np.float32(2 * b)
    A = (slope[:, 0] + slope[:, -1]) / np.float32(2)
    line = A[:, None] + B[:, None] * (b - 2 * np.arange(b + 1))
    return (A, B) if np.allclose(slope, line, rtol=0, atol=1e-5 * np.abs(slope).max()) else None


@kernel(inline="always")
def _place(s: np.float32, b: int) -> tuple[np.int32, np.float32]:
    """The integer part of d = (b - s) / 2, at most b - 1, and the rest of d."""
    d = np.float32(0.5) * (np.float32(b) - s)
    d = max(np.float32(0), min(np.float32(b), d))
    at = min(np.int32(d), np.int32(b - 1))
    return at, d - np.float32(at)


@kernel(fastmath={"reassoc", "contract"})
def _class_pulls(S: Single, first: int, classes: AnyArray, weight: Single, slope: Single) -> None:
    """Turn S, inner products of rows first.. with the batch, into the factors of the u_j."""
    b = slope.shape[1] - 1
    for i in range(len(S)):
        own = classes[first + i]
        for j in range(S.shape[1]):
            at, rest = _place(S[i, j], b)
            same = np.int32(own == classes[j])
            low, high = slope[same, at], slope[same, at + 1]
            S[i, j] = weight[own, classes[j]] * (low + rest * (high - low))
        S[i, first + i] = 0


@kernel
def _mark_partners(rows: AnyArray, edges: Edges, marked: AnyArray) -> int:
    """Set `marked`, which is 0, to 1 for these points and their partners; return their number."""
    count = 0
    for n in rows:
        count += 1 - marked[n]
        marked[n] = 1
        for e in range(edges.indptr[n], edges.indptr[n + 1]):
            count += 1 - marked[edges.indices[e]]
            marked[edges.indices[e]] = 1
    return count


@kernel(fastmath={"reassoc", "contract"})
def _affinity_pulls(
    rows: AnyArray,
    edges: Edges,
    slope: Single,
    basis: Single,
    place: AnyArray,
    U: Single,
    out: Single,
) -> None:
    """The sums over the partners of these points; the outputs of point n are U[place[n]].

    Partners are anywhere in U: some are fetched together, so that no one waits for the one before.
    """
    indptr, indices, row, coef = edges.indptr, edges.indices, edges.row, edges.coef
    b = U.shape[1]
    pull, near = np.empty(b, np.float32), np.empty((PARTNERS_PER_FETCH, b), np.float32)
    for q in range(len(rows)):
        n, own = rows[q], place[rows[q]]
        pull[:] = 0
        for first in range(indptr[n], indptr[n + 1], PARTNERS_PER_FETCH):
            n_here = min(PARTNERS_PER_FETCH, indptr[n + 1] - first)
            for t in range(n_here):
                m = place[indices[first + t]]
                for k in range(b):
                    near[t, k] = U[m, k]
            for t in range(n_here):
                e = first + t
                s = np.float32(0)
                for k in range(b):
                    s += U[own, k] * near[t, k]
                at, rest = _place(s, b)
                low, high = slope[row[e], at], slope[row[e], at + 1]
                factor = low + rest * (high - low)
                for r in range(coef.shape[1]):
                    low, high = basis[r, at], basis[r, at + 1]
                    factor += np.float32(coef[edges.pair[e], r]) * (low + rest * (high - low))
                for k in range(b):
                    pull[k] += factor * near[t, k]
        for k in range(b):  # a whole row would take numba seconds more to compile
            out[q, k] = pull[k]
