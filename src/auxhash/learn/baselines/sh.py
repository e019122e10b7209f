"""SH: spectral hashing (Weiss, Torralba and Fergus 2008).

Assume that the data are uniform on a box along their principal axes. The Laplacian's
eigenfunctions on an interval [a, b] are then known,

    cos(k pi (x - a) / (b - a)),   k = 1, 2, ...,   of eigenvalue rising with k / (b - a)

and the bits are the signs of those with the smallest eigenvalues, over all axes.
"""

from dataclasses import dataclass, field

import numpy as np

from auxhash.compute.arrays import Array
from auxhash.learn.baselines.method import Unsupervised
from auxhash.mac.hashfunctions.rotation import principal_axes
from auxhash.model.functions import Eigenfunctions


@dataclass(eq=False, repr=False)
class SH(Unsupervised):
    """Spectral hashing. Any number of bits: an axis can give several, with k = 1, 2, ...

    Attributes:
        mean_: (D,).
        axes_: the principal axis of each bit (D, n_bits).
        low_: where the interval of each bit's axis begins, (n_bits,).
        omega_: k pi / (b - a) of each bit, rising, (n_bits,).
    """

    n_bits: int = 32

    mean_: Array = field(init=False)
    axes_: Array = field(init=False)
    low_: Array = field(init=False)
    omega_: Array = field(init=False)

    def _learn(self, X: Array, rng: np.random.Generator) -> None:
        self.mean_, axes = principal_axes(X, min(self.n_bits, X.shape[1]), "SH")
        V = (X - self.mean_) @ axes
        low, width = V.min(axis=0), np.ptp(V, axis=0)
        modes = np.arange(1, self.n_bits + 1)[:, None]
        # An axis without width has only the constant eigenfunction.
        omega = np.divide(
            modes * np.pi, width, out=np.full((self.n_bits, len(width)), np.inf), where=width > 0
        )
        best = np.argsort(omega, axis=None, kind="stable")[: self.n_bits]
        axis = best % len(width)
        self.axes_ = axes[:, axis]
        self.low_ = low[axis]
        self.omega_ = np.where(np.isfinite(omega.flat[best]), omega.flat[best], 0.0)

    def _learnt_function(self) -> Eigenfunctions:
        return Eigenfunctions(self.mean_, self.axes_, self.low_, self.omega_)
