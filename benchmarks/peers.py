"""The other side of each comparison: the same job done with plain loops and public libraries."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from sklearn.svm import LinearSVC

from auxhash.mac.affinity import Affinity
from auxhash.mac.zstep import BitProblem


@dataclass(frozen=True)
class MaxFlowCut:
    """cut as the papers describe it: for every block, build the graph and call max-flow."""

    def __call__(
        self, bit: BitProblem, z: NDArray[np.int8], rng: np.random.Generator
    ) -> NDArray[np.int8]:
        z = z.copy()
        n = len(z)
        A = csr_array((bit.a, bit.graph.indices.astype(np.int32), bit.graph.indptr), shape=(n, n))
        classes = np.unique(bit.groups)
        for number in rng.permutation(len(classes)):
            block = np.flatnonzero(bit.groups == classes[number])
            rows = A[block]
            inner = rows[:, block]
            u = 0.5 * (rows @ z - inner @ z[block]) + bit.c[block]
            z[block] = self.minimum_cut(inner, u)
        return z

    @staticmethod
    def minimum_cut(inner: Any, u: NDArray[np.float64]) -> NDArray[np.int8]:
        """min z'(inner)z/4 + u'z, inner <= 0."""
        n = len(u)
        edges = (-inner).tocoo()
        node = np.arange(n, dtype=np.int32)  # SciPy before 1.14 takes no other
        tail = np.concatenate([edges.row, np.where(u < 0, n, node)])
        head = np.concatenate([edges.col, np.where(u < 0, node, n + 1)])
        capacity = np.concatenate([edges.data, 2 * np.abs(u)])
        scale = 2**30 / max(2 * np.abs(u).sum(), capacity.max())
        capacities = np.rint(capacity * scale).astype(np.int32)
        graph = csr_array((capacities, (tail, head)), shape=(n + 2, n + 2))
        residual = csr_array(graph - maximum_flow(graph, n, n + 1).flow)
        residual.eliminate_zeros()
        z = np.full(n + 2, -1, np.int8)
        z[breadth_first_order(residual, n, return_predecessors=False)] = 1
        return z[:n]


def liblinear(
    F: NDArray[np.float64], z: NDArray[np.int8], C: float, tol: float
) -> NDArray[np.float64]:
    """One bit by scikit-learn's LinearSVC; the last column of F is the constant it adds itself."""
    model = LinearSVC(C=C, dual=False, tol=tol, max_iter=100_000).fit(F[:, :-1], z)
    return np.append(model.coef_, model.intercept_)[:, None]


def similarity(A: Affinity) -> csr_array:
    """S of an affinity, as SciPy holds it: y for its pairs, 1 on the diagonal."""
    n = A.n_points
    upper = csr_array((A.read_as("similarity"), (A.i, A.j)), shape=(n, n))
    return csr_array(upper + upper.T + diags_array(np.ones(n)))


def decaying(n: int, d: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Synthetic features that look like GIST to a linear model: ten overlapping classes,
    positive, strongly correlated."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, n)
    spread = diags_array(1 / np.sqrt(1 + np.arange(d)))
    mix = rng.normal(size=(d, d)) / np.sqrt(d)
    X = ((rng.normal(size=(10, d))[y] * 0.5 + rng.normal(size=(n, d))) @ spread) @ mix
    return X - X.min(), y


def apart(n: int, d: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Synthetic pictures that look like MNIST to a linear model: ten classes that lie apart, each
    of several shapes, most pixels dark, some of them in all but a few pictures."""
    rng = np.random.default_rng(seed)
    y, shape = rng.integers(0, 10, n), rng.integers(0, 5, n)
    smooth = rng.normal(size=(60, d)) * rng.random(d) ** 2
    centres = 1.5 * rng.normal(size=(10, 5, 60))
    X = (centres[y, shape] + rng.normal(size=(n, 60))) @ smooth
    X += 0.5 * rng.normal(size=(n, d)) * rng.random(d) ** 2
    return np.clip(20 * X - 40, 0, 255).astype(np.uint8), y
