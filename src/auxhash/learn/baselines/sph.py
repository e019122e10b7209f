"""SPH: spherical hashing (Heo et al. 2012).

Each bit is +1 inside a sphere around a pivot. Its radius is the median distance of the training
points to the pivot, so that the bit is balanced; for independence, the spheres i and j should share
N/4 points. Where they share o_ij, the pivots repel (or attract) each other with the force

    f_i<-j = (1/2) (o_ij - N/4) / (N/4) (p_i - p_j)
"""

from dataclasses import dataclass, field

import numpy as np

from auxhash.compute import checks
from auxhash.compute.arrays import Array
from auxhash.compute.distances import squared_distances
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Unsupervised, middle
from auxhash.model.functions import Spheres

POINTS_PER_PIVOT = 5  # each pivot starts at the mean of so many points


@dataclass(eq=False, repr=False)
class SPH(Unsupervised):
    """Spherical hashing. Any number of bits.

    Args:
        n_bits: length of the codes.
        mean_tolerance: largest mean of |o_ij - N/4| to stop at, relative to N/4.
        spread_tolerance: largest standard deviation of o_ij to stop at, relative to N/4.
        max_iter: maximum number of moves of the pivots.
        random_state: seed of the first pivots.

    Attributes:
        pivots_: (n_bits, D).
        radii_: squared radii (n_bits,).
        n_iter_: number of moves made.
        converged_: whether the overlaps ended within both tolerances.
    """

    n_bits: int = 32
    mean_tolerance: float = 0.1
    spread_tolerance: float = 0.15
    max_iter: int = 100
    random_state: RandomState = None

    pivots_: Array = field(init=False)
    radii_: Array = field(init=False)
    n_iter_: int = field(init=False)
    converged_: bool = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("mean_tolerance", self.mean_tolerance, 0)
        checks.number("spread_tolerance", self.spread_tolerance, 0)
        checks.integer("max_iter", self.max_iter, 1)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        drawn = rng.integers(len(X), size=(self.n_bits, POINTS_PER_PIVOT))
        pivots = X[drawn].mean(axis=1)
        pairs = np.triu_indices(self.n_bits, 1)
        quarter = len(X) / 4
        for moves in range(self.max_iter + 1):
            distance = squared_distances(X, pivots)
            radii = middle(distance)
            inside = (distance <= radii).astype(np.float64)
            overlap = inside.T @ inside
            self.converged_ = self._close(overlap[pairs] / quarter)
            if self.converged_ or moves == self.max_iter:
                break
            pivots = pivots + forces(pivots, overlap / quarter - 1)
        self.pivots_, self.radii_, self.n_iter_ = pivots, radii, moves

    def _close(self, overlap: Array) -> bool:
        """Check whether the overlaps, relative to N/4, are within the tolerances."""
        if not len(overlap):
            return True
        off = np.abs(overlap - 1).mean()
        return bool(off <= self.mean_tolerance and overlap.std() <= self.spread_tolerance)

    def _learnt_function(self) -> Spheres:
        return Spheres(self.pivots_, self.radii_)


def forces(pivots: Array, excess: Array) -> Array:
    """The mean force (b, D) on each pivot; excess (b, b) is (o_ij - N/4) / (N/4)."""
    push = excess / 2
    np.fill_diagonal(push, 0.0)
    # sum_j push_ij (p_i - p_j)
    total: Array = push.sum(axis=1)[:, None] * pivots - push @ pivots
    return total / len(pivots)
