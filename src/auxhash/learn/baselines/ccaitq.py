"""CCAITQ: iterative quantisation of canonical components (Gong and Lazebnik 2011).

Canonical correlation analysis of X and the class indicators Y takes the place of PCA:

    Cxy Cyy^-1 Cyx w = rho^2 (Cxx + regularisation) w

Each direction is scaled by its correlation rho, so that directions unrelated to the labels count
for nothing. At most n_classes - 1 directions are related to them; the rotation spreads these over
any number of bits.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh

from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Supervised
from auxhash.mac.hashfunctions.rotation import quantize, random_rotation
from auxhash.model.functions import Centred, WeightedHash


def canonical_directions(X: Array, y: AnyArray, regularization: float) -> Array:
    """Directions (D, n_classes - 1 at most) of centred X, scaled by their correlation with y."""
    classes, groups = np.unique(y, return_inverse=True)
    Y = np.eye(len(classes))[groups]
    count = Y.sum(axis=0)
    cross = X.T @ (Y - Y.mean(axis=0))  # (D, n_classes)
    between = (cross / count) @ cross.T
    within = X.T @ X
    scale = float(np.trace(within)) / len(within) or 1.0
    within += regularization * scale * np.eye(len(within))
    n = max(1, min(len(classes) - 1, X.shape[1]))
    squared, W = eigh(between, within, subset_by_index=(X.shape[1] - n, X.shape[1] - 1))
    # Each component is scaled to unit variance, then by rho.
    scaled: Array = W * np.sqrt(np.maximum(squared, 0.0) * len(X))
    return scaled[:, ::-1]


@dataclass(eq=False, repr=False)
class CCAITQ(Supervised):
    """Supervised ITQ, with CCA in the place of PCA.

    Args:
        n_bits: any number.
        n_iter: number of iterations, each of which updates the rotation.
        regularization: added to the covariance of X, relative to its mean variance.
        random_state: seed of the first rotation.

    Attributes:
        mean_: (D,).
        projection_: (D, n_bits), rotation included.
        rotation_: R (n_bits, n_bits).
        errors_: quantisation error per point, at the start and after each iteration.
    """

    n_bits: int = 32
    n_iter: int = 50
    regularization: float = 1e-4
    random_state: RandomState = None

    mean_: Array = field(init=False)
    projection_: Array = field(init=False)
    rotation_: Array = field(init=False)
    errors_: list[float] = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("n_iter", self.n_iter, 1)
        checks.number("regularization", self.regularization, 0, strict=True)

    def _learn(self, X: Array, y: AnyArray, rng: np.random.Generator) -> None:
        self.mean_ = X.mean(axis=0)
        centred = X - self.mean_
        W = canonical_directions(centred, y, self.regularization)[:, : self.n_bits]
        W = np.pad(W, ((0, 0), (0, self.n_bits - W.shape[1])))
        start = random_rotation(self.n_bits, rng)
        self.rotation_, self.errors_ = quantize(centred @ W, start, self.n_iter)
        self.projection_ = W @ self.rotation_

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(Centred(self.mean_), self.projection_)
