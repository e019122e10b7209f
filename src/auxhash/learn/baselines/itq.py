"""ITQ: iterative quantisation (Gong and Lazebnik 2011).

Rotate the principal components V so that they are near to their signs B:

    min |B - V R|^2   over B in {-1,+1} and R orthogonal, in turn

B is the sign of V R; R solves a Procrustes problem. Neither step raises the error.
"""

from dataclasses import dataclass, field

import numpy as np

from auxhash.compute import checks
from auxhash.compute.arrays import Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Unsupervised
from auxhash.mac.hashfunctions.rotation import principal_axes, quantize, random_rotation
from auxhash.model.functions import Centred, WeightedHash


@dataclass(eq=False, repr=False)
class ITQ(Unsupervised):
    """Iterative quantisation. At most as many bits as features.

    Args:
        n_bits: length of the codes.
        n_iter: number of iterations, each of which updates the rotation.
        random_state: seed of the first rotation.

    Attributes:
        mean_: (D,).
        axes_: principal axes (D, n_bits).
        rotation_: R (n_bits, n_bits).
        errors_: quantisation error per point, at the start and after each iteration.
    """

    n_bits: int = 32
    n_iter: int = 50
    random_state: RandomState = None

    mean_: Array = field(init=False)
    axes_: Array = field(init=False)
    rotation_: Array = field(init=False)
    errors_: list[float] = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("n_iter", self.n_iter, 1)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        self.mean_, self.axes_ = principal_axes(X, self.n_bits, "ITQ")
        V = (X - self.mean_) @ self.axes_
        start = random_rotation(self.n_bits, rng)
        self.rotation_, self.errors_ = quantize(V, start, self.n_iter)

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(Centred(self.mean_), self.axes_ @ self.rotation_)
