"""quad: the quadratic surrogate, a relaxed quadratic program on the box, rounded.

The relaxed problem is not convex and needs a start: the eigenvector of the smallest eigenvalue of
B, eq. (9) of the paper, if there is no linear term (mu = 0), and the current codes otherwise.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from auxhash.codes import sign
from auxhash.compute.arrays import Array
from auxhash.zstep.problem import BitProblem

ITERATIONS = 30  # of L-BFGS-B, as in the original program of two-step hashing


class Quad:
    """L-BFGS-B on z'Az/4 + mu |z-h|^2 + l'z over [-1,1]^n, then the sign."""

    def __call__(
        self, bit: BitProblem, z: NDArray[np.int8], rng: np.random.Generator
    ) -> NDArray[np.int8]:
        start = z.astype(np.float64) if bit.c.any() else smallest_eigenvector(bit, rng)
        found = minimize(
            bit.relaxed,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(-1.0, 1.0),
            options={"maxiter": ITERATIONS},
        ).x
        return sign(found)


def smallest_eigenvector(bit: BitProblem, rng: np.random.Generator) -> Array:
    """The spectral solution of E, eq. (9): the smallest eigenvector of B = [[A/4, c/2], [c'/2, 0]].

    Scaled to norm sqrt(n + 1), with the sign that makes the last entry positive (or, if that is 0,
    the first that is not), without that last entry, clipped to the box.
    """
    n = len(bit.c)
    half = bit.c / 2

    def multiply(alpha: Array) -> Array:
        alpha = alpha.ravel()
        z, last = alpha[:n], alpha[n]
        return np.append(bit.field(z) / 2 + half * last, half @ z)

    B = LinearOperator((n + 1, n + 1), matvec=multiply, dtype=np.float64)
    try:
        # The vector is only rounded: a rough one is as good a start as an exact one.
        alpha = eigsh(B, k=1, which="SA", v0=rng.standard_normal(n + 1), tol=1e-2)[1][:, 0]
    except ArpackError:  # no convergence, or no couplings at all: then any start will do
        alpha = rng.standard_normal(n + 1)
    tiny = 1e-12 * np.abs(alpha).max()
    orient = alpha[n] if abs(alpha[n]) > tiny else alpha[np.argmax(np.abs(alpha) > tiny)]
    alpha = alpha * (np.sign(orient) * np.sqrt(n + 1) / np.linalg.norm(alpha))
    start: Array = np.clip(alpha[:n], -1.0, 1.0)
    return start
