"""LSH: random hyperplanes (Charikar 2002).

Two points at angle t agree in a bit with probability 1 - t/pi.
"""

from dataclasses import dataclass, field

import numpy as np

from auxhash.compute import checks
from auxhash.compute.arrays import Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Unsupervised
from auxhash.model.functions import Centred, WeightedHash


@dataclass(eq=False, repr=False)
class LSH(Unsupervised):
    """Random hyperplanes through the mean or the origin; a bit is the side of one hyperplane.

    Args:
        n_bits: any number.
        center: True measures angles about the mean of the training points, False about 0.
        random_state: seed of the hyperplanes.

    Attributes:
        mean_: the point (D,) that every hyperplane goes through.
        hyperplanes_: their normals (D, n_bits).
    """

    n_bits: int = 32
    center: bool = True
    random_state: RandomState = None

    mean_: Array = field(init=False)
    hyperplanes_: Array = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.flag("center", self.center)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        self.mean_ = X.mean(axis=0) if self.center else np.zeros(X.shape[1])
        self.hyperplanes_ = rng.standard_normal((X.shape[1], self.n_bits))

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(Centred(self.mean_), self.hyperplanes_)
