"""quad: the quadratic surrogate, a relaxed quadratic program on the box, rounded.

The relaxed problem is not convex and needs a start. The paper takes the eigenvector of the smallest
eigenvalue of B, eq. (9), truncated. By default we take it only if there is no linear term (mu = 0),
and the current codes otherwise.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from auxhash.codes import Codes, sign
from auxhash.compute import checks
from auxhash.compute.arrays import Array
from auxhash.compute.registry import register
from auxhash.mac.zstep.problem import BitProblem

STARTS = ("auto", "eigenvector")
TRUNCATIONS = ("clip", "sign")
ARPACK_VECTORS = 8  # that the search for an eigenvector keeps; with more, it multiplies more often
EIGENVALUE_TOLERANCE = 1e-3  # relative error of its eigenvalue: it is only a start
MAX_MOVED_SHARE = 0.2  # share of entries that moved up to which S is changed, and not computed
MAX_CHANGES = 100  # changes after which S is computed anew, before rounding adds up


@register("Quad")
@dataclass(frozen=True)
class Quad:
    """L-BFGS-B on z'Az/4 + mu |z-h|^2 + l'z over [-1,1]^n, then the sign.

    Args:
        start: "auto" starts from the eigenvector of eq. (9) if there is no linear term, from the
            current codes otherwise; "eigenvector" always from the eigenvector, as the paper does.
        truncate: how the eigenvector is brought into the box: "clip" cuts off what is outside;
            "sign" takes its signs, as hashing by eigenvectors does (a zero becomes +1).
        max_iter: the most iterations of L-BFGS-B: 30, as in the original program of two-step
            hashing; None runs it until it converges.
    """

    start: Literal["auto", "eigenvector"] = "auto"
    truncate: Literal["clip", "sign"] = "clip"
    max_iter: int | None = 30

    def __post_init__(self) -> None:
        checks.one_of("start", self.start, STARTS)
        checks.one_of("truncate", self.truncate, TRUNCATIONS)
        if self.max_iter is not None:
            checks.integer("max_iter", self.max_iter, 1, instead=" or None (until it converges)")

    def __call__(self, bit: BitProblem, z: Codes, rng: np.random.Generator) -> Codes:
        relaxed = minimize(
            Relaxed(bit),
            self._first(bit, z, rng),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(-1.0, 1.0),
            options={} if self.max_iter is None else {"maxiter": int(self.max_iter)},
        ).x
        return sign(relaxed)

    def _first(self, bit: BitProblem, z: Codes, rng: np.random.Generator) -> Array:
        """Return the start of L-BFGS-B, in the box."""
        if self.start == "auto" and bit.c.any():
            return z.astype(np.float64)
        vector = smallest_eigenvector(bit, rng)
        return np.clip(vector, -1.0, 1.0) if self.truncate == "clip" else sign(vector).astype(float)


class Relaxed:
    """E(z) + mu |z|^2 and its gradient over the box, where |z|^2 is not constant.

    L-BFGS-B soon leaves nearly all of z where it is, at the bounds. So S = (1/2) Az is kept from
    one z to the next, and changed by what those that moved contribute.
    """

    def __init__(self, bit: BitProblem) -> None:
        self.bit = bit
        self.z = np.full(len(bit.c), np.nan)  # where S belongs; NaN is nowhere
        self.S = np.empty(len(bit.c))
        self.changes = 0

    def __call__(self, z: Array) -> tuple[float, Array]:
        S, c, mu = self._field(z), self.bit.c, self.bit.mu
        return float(0.5 * (z @ S) + c @ z + mu * (z @ z)), S + c + 2 * mu * z

    def _field(self, z: Array) -> Array:
        moved = np.flatnonzero(z != self.z)
        if len(moved) > MAX_MOVED_SHARE * len(z) or self.changes == MAX_CHANGES:
            self.S, self.changes = self.bit.field(z), 0
        else:
            self.bit.move(self.S, moved, z[moved] - self.z[moved])
            self.changes += 1
        self.z = z.copy()
        return self.S


def smallest_eigenvector(bit: BitProblem, rng: np.random.Generator) -> Array:
    """The spectral solution of E, eq. (9): the smallest eigenvector of B = [[A/4, c/2], [c'/2, 0]].

    Scaled to norm sqrt(n + 1), with the sign that makes the last entry positive (or, if that is 0,
    the first that is not), without that last entry.
    """
    n = len(bit.c)
    half = bit.c / 2
    first = rng.standard_normal(n + 1)

    def multiply(alpha: Array) -> Array:
        alpha = alpha.ravel()
        z, last = alpha[:n], alpha[n]
        return np.append(bit.field(z) / 2 + half * last, half @ z)

    B = LinearOperator((n + 1, n + 1), matvec=multiply, dtype=np.float64)
    try:
        ncv = min(n + 1, ARPACK_VECTORS)
        alpha = eigsh(B, 1, which="SA", v0=first, ncv=ncv, tol=EIGENVALUE_TOLERANCE)[1][:, 0]
    except ArpackError:  # no convergence, or no couplings at all: then any start will do
        alpha = rng.standard_normal(n + 1)
    if not half.any():
        alpha[n] = 0  # exactly; ARPACK leaves a rounding error in some versions of SciPy
    tiny = 1e-12 * np.abs(alpha).max()
    orient = alpha[n] if abs(alpha[n]) > tiny else alpha[np.argmax(np.abs(alpha) > tiny)]
    alpha = alpha * (np.sign(orient) * np.sqrt(n + 1) / np.linalg.norm(alpha))
    vector: Array = alpha[:n]
    return vector
