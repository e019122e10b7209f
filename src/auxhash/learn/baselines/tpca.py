"""TPCA: thresholded PCA; each bit is the sign of one principal component."""

from dataclasses import dataclass, field

import numpy as np

from auxhash.compute.arrays import Array
from auxhash.learn.baselines.method import Unsupervised
from auxhash.mac.hashfunctions.rotation import principal_axes
from auxhash.model.functions import Centred, WeightedHash


@dataclass(eq=False, repr=False)
class TPCA(Unsupervised):
    """Thresholded PCA. At most as many bits as features.

    Attributes:
        mean_: (D,).
        axes_: principal axes (D, n_bits).
    """

    n_bits: int = 32

    mean_: Array = field(init=False)
    axes_: Array = field(init=False)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        self.mean_, self.axes_ = principal_axes(X, self.n_bits, "TPCA")

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(Centred(self.mean_), self.axes_)
