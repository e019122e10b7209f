"""STH: self-taught hashing (Zhang et al. 2010).

The codes come first: the eigenvectors of a graph's Laplacian, L v = lambda D v, cut at their
medians. The graph joins nearest neighbours or, where pairs are given, the similar ones. Then one
linear SVM per bit learns the codes, for those of new points.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import Tags

from auxhash.codes import sign
from auxhash.compute import checks, neighbors
from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Numbers
from auxhash.compute.random import RandomState, generator
from auxhash.learn.baselines.method import Method, check_single, doubles, middle
from auxhash.learn.hasher import check_labelled, check_pairs, check_points, kept_labels, learning
from auxhash.mac import hashfunctions
from auxhash.mac.affinity import Affinity


@dataclass(eq=False, repr=False)
class STH(Method):
    """Self-taught hashing. At most n_samples - 1 bits.

    Args:
        n_bits: length of the codes.
        n_neighbors: number of nearest neighbours of each point in the graph; without effect where
            an affinity gives the graph.
        supervised: False ignores labels; True demands them, and a point's neighbours are its
            nearest points of the same label.
        hash_function: "linear", "rbf", "network", "trees" or a scikit-learn classifier, cloned for
            every bit.
        C: the SVM's cost of a margin violation.
        random_state: seed of the eigensolver's start.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        hash_function_: the learnt hash function.
        eigenvalues_: of the Laplacian, rising, without the trivial 0, (n_bits,).
        embedding_: the eigenvectors, for the training points, (n, n_bits).
    """

    n_bits: int = 32
    n_neighbors: int = 25
    supervised: bool = False
    hash_function: object = "linear"
    C: float = 100.0
    random_state: RandomState = None
    n_jobs: int | None = None

    hash_function_: hashfunctions.HashFunction = field(init=False)
    eigenvalues_: Array = field(init=False)
    embedding_: Array = field(init=False)

    @learning
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, affinity: Affinity | None = None
    ) -> Self:
        """Learn from features X (n, D); from y (n,) where `supervised`; or from an affinity.

        The graph of an affinity joins its similar pairs, y > 0, with y for a weight. Where y is not
        learnt from, it is only kept for `score`.
        """
        self._check_parameters()
        labels: AnyArray | None
        if affinity is not None:
            points, labels = check_pairs(self, X, y, affinity)
        elif self.supervised:
            points, labels = check_labelled(self, X, y, least=3)
            check_single(labels)
        else:
            points = check_points(self, X, least=3)
            labels = kept_labels(points, y)
        if self.n_bits >= len(points):
            raise ValueError(
                "STH gives fewer bits than there are training points: "
                f"n_bits={self.n_bits}, n_samples={len(points)}"
            )
        if affinity is None:
            graph = self._graph(doubles(points), labels if self.supervised else None)
        else:
            doubles(points)  # refuses numbers out of range
            graph = similar_graph(affinity)
        start, centres = generator(self.random_state).spawn(2)
        self.eigenvalues_, self.embedding_ = laplacian_eigenmap(graph, int(self.n_bits), start)
        Z = sign(self.embedding_ - middle(self.embedding_))
        h = hashfunctions.get(self.hash_function, self.C).prepare(points, centres)
        F = h.features(points)
        self.hash_function_ = h.refit(F, Z, np.arange(self.n_bits))
        return self._finish(points, labels)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.flag("supervised", self.supervised)
        checks.integer("n_neighbors", self.n_neighbors, 1)
        checks.number("C", self.C, 0, strict=True)

    def _graph(self, X: Array, y: AnyArray | None) -> csr_array:
        if y is None:
            return neighbour_graph(X, np.arange(len(X)), self.n_neighbors)
        graph = csr_array((len(X), len(X)))
        for label in np.unique(y):
            members = np.flatnonzero(y == label)
            graph = graph + neighbour_graph(X, members, self.n_neighbors)
        return graph

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(self.supervised)
        return tags


def neighbour_graph(X: Array, members: Numbers, n_neighbors: int) -> csr_array:
    """Symmetric graph on the points `members`: 1 where either is among the other's nearest.

    A single member has an edge to itself, so that every degree is positive.
    """
    n = len(X)
    k = min(n_neighbors, len(members) - 1)
    if k == 0:
        near = np.zeros((len(members), 1), np.int64)
    else:
        near = neighbors.nearest(X[members], k=k)[0]
    source = np.repeat(members, near.shape[1])
    directed = csr_array((np.ones(len(source)), (source, members[near.ravel()])), shape=(n, n))
    return directed.maximum(directed.T)


def similar_graph(affinity: Affinity) -> csr_array:
    """Symmetric graph of the similar pairs, y > 0, with y for a weight.

    A point without a similar one has an edge to itself, so that every degree is positive.
    """
    n, y = affinity.n_points, affinity.read_as("similarity")
    similar = y > 0
    if not similar.any():
        raise ValueError("affinity holds no similar pair (y > 0), and STH learns from these alone")
    i, j = affinity.i[similar], affinity.j[similar]
    upper = csr_array((y[similar], (i, j)), shape=(n, n))
    alone = np.bincount(np.concatenate([i, j]), minlength=n) == 0
    return upper + upper.T + csr_array(diags_array(alone.astype(np.float64)))


def laplacian_eigenmap(W: csr_array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The n smallest eigenvalues of L v = lambda D v but for the trivial one, and the v (., n).

    1 - lambda are the largest eigenvalues of N = D^-1/2 W D^-1/2. Its trivial eigenvector is known
    and moved to the far end of the spectrum; the further eigenvalues lambda = 0 of a graph in
    several parts are kept.
    """
    root = np.sqrt(W.sum(axis=1))
    trivial = root / np.linalg.norm(root)

    def multiply(v: Array) -> Array:
        v = v.ravel()
        product: Array = (W @ (v / root)) / root - 2 * trivial * (trivial @ v)
        return product

    size = len(root)
    if n >= size - 1 or size < 50:  # too few points for the iterative solver
        dense = np.column_stack([multiply(unit) for unit in np.eye(size)])
        value, vector = np.linalg.eigh((dense + dense.T) / 2)
    else:
        N = LinearOperator((size, size), matvec=multiply, dtype=np.float64)
        value, vector = eigsh(N, k=n, which="LA", v0=rng.standard_normal(size))
    order = np.argsort(-value, kind="stable")[:n]
    return 1 - value[order], vector[:, order] / root[:, None]
