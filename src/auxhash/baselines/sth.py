"""STH: self-taught hashing (Zhang et al. 2010).

Codes first: the eigenvectors of a nearest-neighbour graph's Laplacian, L v = lambda D v, cut at
their medians. Then a linear SVM a bit, which learns the codes to give them to new points.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from auxhash import checks, hashfunctions
from auxhash.affinity import neighbors
from auxhash.affinity.draws import RandomState, generator
from auxhash.baselines.method import Method, doubles, kept_labels, middle
from auxhash.codes import sign
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.hasher import FLOATS


class STH(Method):
    """Self-taught hashing. At most n_samples - 1 bits.

    Args:
        n_bits: length of the codes.
        n_neighbors: of each point in the graph.
        supervised: False takes no notice of labels; True demands them, and a point's neighbours
            are its nearest ones of the same label.
        hash_function: "linear", "rbf", "trees" or a scikit-learn classifier, cloned for every bit.
        C: the SVM's cost of a margin violation.
        random_state: seed of the eigensolver's start.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        hash_function_: the learnt hash function.
        eigenvalues_: of the Laplacian, rising, without the trivial 0, (n_bits,).
        embedding_: eigenvectors of the training points, (n, n_bits).
    """

    hash_function_: hashfunctions.HashFunction
    eigenvalues_: Array
    embedding_: Array

    def __init__(
        self,
        n_bits: int = 32,
        n_neighbors: int = 25,
        supervised: bool = False,
        hash_function: Any = "linear",
        C: float = 100.0,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_neighbors = n_neighbors
        self.supervised = supervised
        self.hash_function = hash_function
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs

    @threads.one_blas_thread()
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from features X (n, D), and from labels y (n,) where `supervised`.

        Where y is not learnt from, it is only kept for `score`.
        """
        self._check_parameters()
        labels: NDArray[Any] | None
        if self.supervised:
            y = checks.unmixed("y", y)
            points, labels = validate_data(self, X, y, dtype=FLOATS, ensure_min_samples=3)
            check_classification_targets(labels)
        else:
            points = validate_data(self, X, dtype=FLOATS, ensure_min_samples=3)
            labels = kept_labels(points, y)
        if self.n_bits >= len(points):
            raise ValueError(
                "STH gives fewer bits than there are training points: "
                f"n_bits={self.n_bits}, n_samples={len(points)}"
            )
        graph = self._graph(doubles(points), labels if self.supervised else None)
        start, centres = generator(self.random_state).spawn(2)
        self.eigenvalues_, self.embedding_ = laplacian_eigenmap(graph, self.n_bits, start)
        Z = sign(self.embedding_ - middle(self.embedding_))
        h = hashfunctions.get(self.hash_function, self.C).prepare(points, centres)
        F = h.features(points, self.n_jobs)
        self.hash_function_ = h.refit(F, Z, np.arange(self.n_bits), None, self.n_jobs)
        return self._finish(points, labels)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.flag("supervised", self.supervised)
        checks.whole("n_neighbors", self.n_neighbors, 1)
        checks.number("C", self.C, 0, strict=True)

    def _graph(self, X: Array, y: NDArray[Any] | None) -> csr_array:
        if y is None:
            return neighbour_graph(X, np.arange(len(X)), self.n_neighbors, self.n_jobs)
        graph = csr_array((len(X), len(X)))
        for label in np.unique(y):
            members = np.flatnonzero(y == label)
            graph = graph + neighbour_graph(X, members, self.n_neighbors, self.n_jobs)
        return graph

    def _outputs(self, X: NDArray[Any]) -> Array:
        return hashfunctions.outputs(self.hash_function_, X, self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(self.supervised)
        return tags


def neighbour_graph(
    X: Array, members: NDArray[np.int64], n_neighbors: int, n_jobs: int | None
) -> csr_array:
    """1 where one point is among the nearest of the other, of the given points; symmetric.

    A point without any other has an edge to itself, so that every degree is positive.
    """
    n = len(X)
    k = min(n_neighbors, len(members) - 1)
    if k == 0:
        near = np.zeros((len(members), 1), np.int64)
    else:
        near = neighbors.nearest(X[members], k=k, n_jobs=n_jobs)[0]
    source = np.repeat(members, near.shape[1])
    directed = csr_array((np.ones(len(source)), (source, members[near.ravel()])), shape=(n, n))
    return directed.maximum(directed.T)


def laplacian_eigenmap(W: csr_array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The n smallest eigenvalues of L v = lambda D v but for the trivial one, and the v (., n).

    These are the largest of N = D^-1/2 W D^-1/2. Its trivial eigenvector is known, and is sent to
    the far end of the spectrum; a graph in several parts has more eigenvalues 0, which we want.
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
