"""PCARR: PCA and a random rotation, which evens out the variance of the bits."""

from dataclasses import dataclass, field

import numpy as np

from auxhash.compute.arrays import Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Unsupervised
from auxhash.mac.hashfunctions.rotation import principal_axes, random_rotation
from auxhash.model.functions import Centred, WeightedHash


@dataclass(eq=False, repr=False)
class PCARR(Unsupervised):
    """Signs of randomly rotated principal components, from which ITQ starts.

    Attributes:
        mean_: (D,).
        projection_: rotated principal axes (D, n_bits).
    """

    n_bits: int = 32
    random_state: RandomState = None

    mean_: Array = field(init=False)
    projection_: Array = field(init=False)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        self.mean_, axes = principal_axes(X, self.n_bits, "PCARR")
        self.projection_ = axes @ random_rotation(self.n_bits, rng)

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(Centred(self.mean_), self.projection_)
