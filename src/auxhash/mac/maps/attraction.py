"""Affinities p_nm >= 0 that draw points of a map together: symmetric, of sum 1.

Of features, each point has a Gaussian around it whose entropy is log(perplexity); of pairs or
labels, similar points attract each other by their weight.
"""

import warnings

import numpy as np
from scipy.sparse import coo_array, csr_array

from auxhash.compute import approximate, threads
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.kernels import kernel
from auxhash.compute.neighbors import scale
from auxhash.mac.affinity import Affinity

NEIGHBORS_PER_PERPLEXITY = 3  # the Gaussian is 0 beyond so many
N_BISECTIONS = 64  # of the width of a Gaussian
ROWS_PER_TASK = 256  # points per task of a thread


def of_neighbors(X: AnyArray, perplexity: float) -> csr_array:
    """Return P (n, n) of the nearest neighbours in X (n, D), at this perplexity."""
    n, most = len(X), (len(X) - 1) / NEIGHBORS_PER_PERPLEXITY
    if perplexity > most:
        most = max(1.0, most)
        warnings.warn(
            f"perplexity={perplexity:g} is capped at {most:.3g} for {n} points", stacklevel=4
        )
        perplexity = most
    k = min(n - 1, int(NEIGHBORS_PER_PERPLEXITY * perplexity))
    near = approximate.near(X, k, "euclidean")
    unit, P = scale(X), np.empty((n, k))

    def part(rows: slice) -> None:
        apart = X[near[rows]].astype(np.float64) / unit - X[rows, None].astype(np.float64) / unit
        _calibrate(np.square(apart).sum(axis=2), np.log(perplexity), P[rows])

    threads.run_kernels(part, threads.chunks(n, ROWS_PER_TASK))
    rows = np.repeat(np.arange(n), k)
    return _symmetric(csr_array((P.ravel(), (rows, near.ravel())), (n, n)))


def of_pairs(affinity: Affinity) -> csr_array:
    """Return P (n, n) of the pairs that are similar: in proportion to y and weight."""
    strength = np.maximum(affinity.read_as("similarity"), 0) * affinity.weight
    if not strength.any():
        raise ValueError("affinity holds no similar pairs (y > 0), which a map would show together")
    shape = affinity.n_points, affinity.n_points
    return _symmetric(csr_array(coo_array((strength, (affinity.i, affinity.j)), shape)))


def _symmetric(P: csr_array) -> csr_array:
    both = csr_array(P + P.T)
    both.sort_indices()
    return both / both.sum()


@kernel
def _calibrate(squared: Array, entropy: float, P: Array) -> None:
    """Write the Gaussian of each row of squared distances that has this entropy; of sum 1."""
    k = squared.shape[1]
    for n in range(len(squared)):
        nearest = squared[n].min()
        mean = squared[n].mean() - nearest
        low, high = 0.0, np.inf
        precision = 1 / mean if mean > 0 else 1.0
        for _ in range(N_BISECTIONS):
            total = weighted = 0.0
            for j in range(k):
                P[n, j] = np.exp(-precision * (squared[n, j] - nearest))
                total += P[n, j]
                weighted += P[n, j] * (squared[n, j] - nearest)
            for j in range(k):
                P[n, j] /= total
            if np.log(total) + precision * weighted / total > entropy:
                low = precision
                precision = 2 * precision if high == np.inf else (low + high) / 2
            else:
                high = precision
                precision = (low + high) / 2
