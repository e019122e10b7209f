"""E(Z): how badly a map Z (n, m) shows affinities P, and its gradient.

    ee      sum p d              + lambda mean exp(-d)    elastic embedding, eq. (2)
    tsne    sum p log(p (1 + d)) + log sum 1 / (1 + d)    KL(P | Q), q in proportion to 1 / (1 + d)

over all pairs of different points, d = |z_n - z_m|^2. Every pair repels. Both are means, so that
lambda and mu mean the same for any number of points. With t-SNE, points that no affinities join
would drift apart for ever: a small weight times mean |z|^2, added to its E, keeps them together.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from scipy.sparse import csr_array

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.kernels import kernel
from auxhash.mac.maps import repulsion

MapLoss = Literal["ee", "tsne"]
LOSSES = get_args(MapLoss)
LAMBDA = 10.0  # weight of repulsion in the elastic embedding
WEIGHT_OF_SIZE = 1e-5  # of mean |z|^2, for t-SNE: about 1% of E for 50,000 digits
# Points whose pairs are all computed; of more in one or two dimensions, on a grid. Maps of the
# elastic embedding are small, and their grids quick.
MAX_EXACT = {"tsne": 5_000, "ee": 500}
ROWS_PER_TASK = 1024  # points per task of a thread


@dataclass(frozen=True, eq=False)
class Energy:
    """E(Z) for affinities P (n, n), symmetric and of sum 1, without a diagonal.

    `exact` says whether repulsion is summed over all pairs; None chooses by their number.
    """

    P: csr_array
    loss: MapLoss
    exact: bool | None = None

    def value(self, Z: Array) -> float:
        """Return E(Z) for a report: on a grid of half the spacing, if not exact; within 0.01%."""
        return self(Z, repulsion.SPACING / 2)[0]

    def __call__(self, Z: Array, spacing: float = repulsion.SPACING) -> tuple[float, Array]:
        """Return E(Z) and its gradient (n, m)."""
        heavy, (n, width) = self.loss == "tsne", Z.shape
        exact = (n <= MAX_EXACT[self.loss] or width > 2) if self.exact is None else self.exact
        total, gradient = (
            repulsion.exact(Z, heavy) if exact else repulsion.on_grid(Z, heavy, spacing)
        )
        pairs = n * (n - 1)
        gradient *= 1 / total if heavy else LAMBDA / pairs
        P = self.P

        def part(rows: slice) -> float:
            ends = rows.start, rows.stop
            return float(_attract(Z, P.indptr, P.indices, P.data, *ends, heavy, gradient))

        value = sum(threads.run_kernels(part, threads.chunks(n, ROWS_PER_TASK)))
        if not heavy:
            return value + LAMBDA * total / pairs, gradient
        gradient += 2 * WEIGHT_OF_SIZE / n * Z
        value += WEIGHT_OF_SIZE / n * float(np.square(Z).sum())
        return value + self._of_affinities + float(np.log(total)), gradient

    @cached_property
    def _of_affinities(self) -> float:
        """Sum of p log p, where p is not 0."""
        p = self.P.data[self.P.data > 0]
        return float((p * np.log(p)).sum())


@kernel(error_model="numpy")
def _attract(
    Z: Array,
    indptr: AnyArray,
    indices: AnyArray,
    p: Array,
    start: int,
    stop: int,
    heavy: bool,
    gradient: Array,
) -> float:
    """Sum the attraction of these rows; add its gradient."""
    total = 0.0
    difference = np.empty(Z.shape[1])
    for i in range(start, stop):
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            squared = 0.0
            for c in range(Z.shape[1]):
                difference[c] = Z[i, c] - Z[j, c]
                squared += difference[c] * difference[c]
            if i < j:  # of both orders
                total += 2 * p[at] * (np.log(1 + squared) if heavy else squared)
            slope = 4 * p[at] / (1 + squared) if heavy else 4 * p[at]
            for c in range(Z.shape[1]):
                gradient[i, c] += slope * difference[c]
    return total
