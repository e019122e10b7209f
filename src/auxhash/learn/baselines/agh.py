"""AGH: hashing with anchor graphs (Liu et al. 2011).

Z (n, m) ties each point to the s nearest of m anchors, by kernels normalised to sum 1. The graph
A = Z Lambda^-1 Z', Lambda = diag(Z'1), has the eigenvectors Z W, from an m x m problem:

    M = Lambda^-1/2 Z'Z Lambda^-1/2 = V Sigma V',   W = sqrt(n) Lambda^-1/2 V Sigma^-1/2

and Z W is defined for any x: the bits are its signs. The two-layer form takes half as many
eigenvectors and cuts each of them a second time, on either side of the first threshold.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from auxhash.compute import checks, neighbors
from auxhash.compute.arrays import Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Unsupervised
from auxhash.model.functions import AnchorGraph

ZERO_TOLERANCE = 1e-10  # of eigenvalues, curvatures, and weights relative to the largest: rounding
N_KMEANS_STEPS = 10


@dataclass(eq=False, repr=False)
class AGH(Unsupervised):
    """Anchor-graph hashing. At most m - 1 bits per layer, with m anchors.

    Args:
        n_bits: length of the codes.
        layers: 1 or 2.
        n_anchors: number m of k-means centres; n_samples, if that is less.
        n_nearest: number s of anchors that each point is tied to.
        random_state: seed of the anchors.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        anchors_: (m, D).
        width_: sigma of exp(-d^2 / sigma^2), the mean distance to the s-th nearest anchor.
        eigenvalues_: of the anchor graph, falling, without the trivial 1.
        weights_: W, (m, eigenvectors).
        thresholds_: of the second layer, for the positive and the negative side, (2, eigenvectors).
    """

    n_bits: int = 32
    layers: Literal[1, 2] = 1
    n_anchors: int = 300
    n_nearest: int = 3
    random_state: RandomState = None
    n_jobs: int | None = None

    anchors_: Array = field(init=False)
    width_: float = field(init=False)
    eigenvalues_: Array = field(init=False)
    weights_: Array = field(init=False)
    thresholds_: Array = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("n_anchors", self.n_anchors, 2)
        checks.integer("n_nearest", self.n_nearest, 1)
        if self.layers not in (1, 2):
            raise ValueError(f"layers must be 1 or 2, got {self.layers!r}")

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        m = min(self.n_anchors, len(X))
        n_vectors = -(-int(self.n_bits) // int(self.layers))
        if n_vectors >= m:
            raise ValueError(
                f"AGH with {self.layers} layer(s) gives at most {self.layers * (m - 1)} bits from "
                f"{m} anchors (n_anchors={self.n_anchors}, n_samples={len(X)}), "
                f"got n_bits={self.n_bits}"
            )
        self.anchors_ = k_means(X, m, rng)
        distance = neighbors.nearest(self.anchors_, X, min(self.n_nearest, m))[1]
        self.width_ = float(np.sqrt(distance[:, -1]).mean()) or 1.0
        Z = self._graph(np.empty((m, 0))).ties(X)
        self.eigenvalues_, self.weights_ = anchor_graph_eigenvectors(Z, n_vectors)
        if self.layers == 2:
            self.thresholds_ = second_thresholds(Z, Z @ self.weights_)

    def _learnt_function(self) -> AnchorGraph:
        graph = self._graph(self.weights_)
        if self.layers == 1:
            return graph
        return replace(graph, thresholds=self.thresholds_, n_bits=int(self.n_bits))

    def _graph(self, weights: Array) -> AnchorGraph:
        n_nearest = min(int(self.n_nearest), len(self.anchors_))
        return AnchorGraph(self.anchors_, self.width_, n_nearest, weights)


def anchor_graph_eigenvectors(Z: Array, n: int) -> tuple[Array, Array]:
    """The n largest eigenvalues but for the trivial one, and W: Z W holds the eigenvectors."""
    mass = Z.sum(axis=0)
    # An anchor that no point is tied to gets weight 0.
    root = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
    M = root[:, None] * (Z.T @ Z) * root
    trivial = np.sqrt(mass / mass.sum())
    value, V = np.linalg.eigh(M - 2 * np.outer(trivial, trivial))
    value, V = value[::-1][:n], V[:, ::-1][:, :n]
    safe = value > ZERO_TOLERANCE
    scale = np.where(safe, np.sqrt(len(Z) / np.where(safe, value, 1.0)), 0.0)
    W = root[:, None] * V * scale
    # Where an eigenvector is 0 on a part of the graph, its weights are 0, not rounding noise.
    W[np.abs(W) < ZERO_TOLERANCE * np.abs(W).max(axis=0)] = 0.0
    # Their signs are free; without a rule they would differ from machine to machine.
    largest = np.take_along_axis(W, np.abs(W).argmax(axis=0)[None], axis=0)
    return value, W * np.where(largest < 0, -1.0, 1.0)


def second_thresholds(Z: Array, Y: Array) -> Array:
    """Thresholds t+ and t- (2, b) of the positive and the negative part of each eigenvector y.

    The cut vector f is y - t+ on the positive side and t- - y on the negative one. Among the
    thresholds that balance it (sum f = 0) these minimise f'(I - A)f, a quadratic in one variable.
    """
    mass = Z.sum(axis=0)
    inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)

    def laplacian(f: Array) -> Array:
        product: Array = f - Z @ (inverse * (Z.T @ f))
        return product

    thresholds = np.zeros((2, Y.shape[1]))
    for k, y in enumerate(Y.T):
        positive = y >= 0
        n_positive, n_negative = positive.sum(), (~positive).sum()
        if not (n_positive and n_negative):
            thresholds[:, k] = np.median(y)
            continue
        size = np.abs(y)
        balanced = size - size.mean()  # t+ = mean, t- = -mean
        move = np.where(positive, 1 / n_positive, -1 / n_negative)  # keeps the balance
        curvature = float(move @ laplacian(move))
        t = float(move @ laplacian(balanced)) / curvature if curvature > ZERO_TOLERANCE else 0.0
        thresholds[0, k] = size.mean() + t / n_positive
        thresholds[1, k] = -size.mean() + t / n_negative
    return thresholds


def k_means(X: Array, m: int, rng: np.random.Generator) -> Array:
    """m centres (m, D) by a few steps of Lloyd's algorithm, from points drawn at random."""
    centres = X[np.sort(rng.permutation(len(X))[:m])].copy()
    for _ in range(N_KMEANS_STEPS):
        own = neighbors.nearest(centres, X, 1)[0][:, 0]
        count = np.bincount(own, minlength=m)
        order = np.argsort(own, kind="stable")
        start = np.cumsum(count) - count
        used = count > 0
        sums = np.add.reduceat(X[order], start[used], axis=0)
        centres[used] = sums / count[used, None]
    return centres
