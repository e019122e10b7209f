"""BRE: binary reconstructive embedding (Kulis and Darrell 2009).

The Hamming distances d should reconstruct the distances y of the points: minimise the sum over
pairs of (d/b - y)^2, y in [0, 1], over hash functions h_k(x) = sign(sum_q w_kq K(x_kq, x)) with a
few kernel points each. As one weight grows, points change sign one after another: the best value
of a weight, all others fixed, is found exactly by going through these events in order.
"""

from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
from sklearn.utils import Tags

from auxhash.codes import Codes, codes_to_words, sign
from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray, Array, ArrayLike
from auxhash.compute.distances import squared_distances
from auxhash.compute.kernels import kernel
from auxhash.compute.random import RandomState, generator
from auxhash.learn.baselines.method import Method, doubles
from auxhash.learn.hasher import check_pairs, check_points, kept_labels, learning
from auxhash.mac import zstep
from auxhash.mac.affinity import Affinity, from_pairs
from auxhash.mac.zstep.graph import Edges
from auxhash.mac.zstep.problem import ENERGY_TOLERANCE, BitProblem
from auxhash.model.functions import KernelMap, WeightedHash

INITIAL_DEVIATION = 0.001  # size of the first weights


@dataclass(eq=False, repr=False)
class BRE(Method):
    """Binary reconstructive embedding. Any number of bits.

    Args:
        n_bits: length of the codes.
        n_train: training points learnt from, drawn at random.
        n_kernel: number of kernel points per bit.
        kernel: "linear" (of centred X) or "rbf".
        pairs: pairs drawn for each point, as a share of the points learnt from.
        supervised: False ignores labels: y is the squared distance of the points, divided by the
            largest. True demands labels: y is 0 where they agree and 1 elsewhere.
        max_iter: maximum number of passes over all weights.
        tol: a pass that lowers the objective by a smaller share is the last.
        random_state: seed of points, pairs and first weights.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        mean_: (D,).
        points_: training points learnt from (n_train, D), centred.
        weights_: of these points (n_train, n_bits); n_kernel per bit are not 0.
        objective_: the loss at the start and after each pass.
        n_iter_: number of passes made.
    """

    n_bits: int = 32
    n_train: int = 1000
    n_kernel: int = 20
    kernel: Literal["linear", "rbf"] = "linear"
    pairs: float = 0.05
    supervised: bool = False
    max_iter: int = 100
    tol: float = 1e-4
    random_state: RandomState = None
    n_jobs: int | None = None

    mean_: Array = field(init=False)
    points_: Array = field(init=False)
    width_: float = field(init=False)
    weights_: Array = field(init=False)
    objective_: list[float] = field(init=False)
    n_iter_: int = field(init=False)

    @learning
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, affinity: Affinity | None = None
    ) -> Self:
        """Learn from features X (n, D); from y where `supervised`; or from an affinity.

        Of an affinity's pairs, those among the `n_train` points are learnt from; a similarity y is
        the distance (1 - y) / 2. Where y is not learnt from, it is only kept for `score`.
        """
        self._check_parameters()
        if self.supervised or affinity is not None:
            points, labels = check_pairs(self, X, y, affinity)
        else:
            points = check_points(self, X)
            labels = kept_labels(points, y)
        self._learn(doubles(points), labels, affinity, generator(self.random_state))
        return self._finish(points, labels)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.flag("supervised", self.supervised)
        checks.integer("n_train", self.n_train, 2)
        checks.integer("n_kernel", self.n_kernel, 1)
        checks.number("pairs", self.pairs, 0, strict=True)
        checks.integer("max_iter", self.max_iter, 1)
        checks.number("tol", self.tol, 0)
        checks.one_of("kernel", self.kernel, ("linear", "rbf"))

    def _learn(
        self, X: Array, y: AnyArray | None, affinity: Affinity | None, rng: np.random.Generator
    ) -> None:
        chosen = np.sort(rng.permutation(len(X))[: self.n_train])
        self.mean_ = X.mean(axis=0)
        self.points_ = X[chosen] - self.mean_
        if affinity is None:
            labels = y[chosen] if self.supervised and y is not None else None
            affinity = self._draw(labels, rng)
        else:
            affinity = affinity.subset(chosen)
            if not len(affinity):
                raise ValueError("affinity has no pairs among the n_train points drawn")
        squares = squared_distances(self.points_, self.points_)
        self.width_ = float(squares.mean()) or 1.0
        K = self._kernels()(self.points_)
        self.weights_ = np.zeros((len(K), self.n_bits))
        for k in range(self.n_bits):
            own = rng.permutation(len(K))[: self.n_kernel]
            self.weights_[own, k] = INITIAL_DEVIATION * rng.standard_normal(len(own))
        problem = zstep.Problem(affinity, "bre", self.n_bits)
        self.objective_ = self._descend(problem, K)
        self.n_iter_ = len(self.objective_) - 1

    def _draw(self, y: AnyArray | None, rng: np.random.Generator) -> Affinity:
        """Random pairs of the points learnt from, and their distances."""
        n = len(self.points_)
        wanted = max(1, round(self.pairs * n))
        i = np.repeat(np.arange(n), wanted)
        j = (i + rng.integers(1, n, len(i))) % n  # any other point
        if y is None:
            distance = np.square(self.points_[i] - self.points_[j]).sum(axis=1)
        else:
            same = y[i] == y[j] if y.ndim == 1 else (y[i] * y[j]).any(axis=1)
            distance = np.where(same, 0.0, 1.0)
        return from_pairs(i, j, distance, n, kind="distance")

    def _kernels(self, mean: Array | None = None) -> KernelMap:
        """Kernels (n, n_train) between points, less the mean, and the points learnt from."""
        return KernelMap(self.points_, None if self.kernel == "linear" else self.width_, mean)

    def _descend(self, problem: zstep.Problem, K: Array) -> list[float]:
        """Coordinate descent on the weights; returns the loss at the start and after each pass."""
        Z = sign(K @ self.weights_)
        objective = [problem.loss(Z)]
        for _ in range(self.max_iter):
            with threads.pool() as run:
                for k in range(self.n_bits):
                    bit = problem.bit(codes_to_words(Z), k, np.zeros(len(Z)), 0.0, run)
                    Z[:, k] = improve(bit, K, self.weights_[:, k])
            objective.append(problem.loss(Z))
            if objective[-2] - objective[-1] <= self.tol * objective[-2]:
                break
        return objective

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(self._kernels(self.mean_), self.weights_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(self.supervised)
        tags.target_tags.multi_output = bool(self.supervised)
        return tags


def improve(bit: BitProblem, K: Array, w: Array) -> Codes:
    """Set each nonzero weight of a bit to its best value, in place; return the bit's codes."""
    own = np.flatnonzero(w)
    columns = np.asfortranarray(K[:, own])
    v = w[own]
    outputs = columns @ v
    z = sign(outputs)
    energy = bit.energy(z)
    for q in range(len(own)):
        best = best_weight(bit, outputs - columns[:, q] * v[q], columns[:, q])
        new_outputs = outputs + columns[:, q] * (best - v[q])
        new = sign(new_outputs)
        new_energy = bit.energy(new)
        # A weight of exactly 0 would never be improved again.
        if best != 0 and new_energy < energy - ENERGY_TOLERANCE * abs(energy):
            v[q], outputs, z, energy = best, new_outputs, new, new_energy
    w[own] = v
    return z


def best_weight(bit: BitProblem, rest: Array, kernel: Array) -> float:
    """The w with the lowest E(sign(rest + w kernel))."""
    moving = np.flatnonzero(kernel)
    if not len(moving):
        return 0.0
    at = -rest[moving] / kernel[moving]
    order = np.argsort(at, kind="stable")
    moving, at = moving[order], at[order]
    z = sign(rest)
    z[moving] = -sign(kernel[moving])  # w far below every event
    after = _lowest(moving, z, bit.field(z), bit.graph.edges, bit.a)
    if after == 0:
        return float(at[0] - 1)
    if after == len(at):
        return float(at[-1] + 1)
    return float((at[after - 1] + at[after]) / 2)


@kernel
def _lowest(moving: AnyArray, z: AnyArray, g: Array, edges: Edges, a: Array) -> int:
    """Flip the points in turn; return after how many flips E is lowest. g = (1/2) Az."""
    indptr, indices = edges.indptr, edges.indices
    change = lowest = 0.0
    after = 0
    for t in range(len(moving)):
        n = moving[t]
        change -= 2 * z[n] * g[n]
        z[n] = -z[n]
        for e in range(indptr[n], indptr[n + 1]):
            g[indices[e]] += a[e] * z[n]
        if change < lowest:
            lowest, after = change, t + 1
    return after
