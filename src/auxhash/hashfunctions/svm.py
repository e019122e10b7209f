"""Linear SVMs for all bits at once: Newton's method with conjugate gradients.

For each bit, with features f_n (bias included, and regularised, as in LIBLINEAR),

    min_w  |w|^2 / 2 + C sum_n s_n max(0, 1 - z_n w'f_n)^2

The bits share the features, so products with all of them are matrix products, and they share a
preconditioner: the inverse of I + 2 C rho F'F, with rho the mean over points and bits of s_n where
the point is inside the margin and 0 where it is not. A few conjugate gradient steps then solve each
Newton system. If fewer points than features are inside a bit's margin, as when classes are well
separated, the preconditioner is a poor one; then the system is solved exactly, with one variable
per such point. Double precision throughout: radial basis functions are nearly collinear, and single
precision fails on them.
"""

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.parts import Chunks, Parts
from auxhash.compute.peers import peers

CHUNK = 1024  # points per task of a thread
TOLERANCE = 1e-5  # estimated distance to the optimum, relative to the objective
FORCING = 0.1  # relative residual at which a Newton system counts as solved
NEWTON_STEPS = 100
CG_STEPS = 50
SHORT = 4  # points per feature, up to which the products of all pairs of points are kept
FEW_INSIDE = 100  # m points inside a margin are few if m^2 is at most this times all points


def fit(
    F: Array,
    Z: NDArray[np.int8],
    C: float,
    start: Array | None = None,
    weight: Array | None = None,
    n_jobs: int | None = None,
) -> Array:
    """Weights (F, b) of the SVMs from features F (n, F) to each column of Z (n, b).

    Args:
        start: weights (F, b) to start from; zero if None.
        weight: weight s (n, b) of each point for each bit; one if None.
    """
    with threads.pool(n_jobs) as run:
        return peers().once(lambda: _Newton(F, Z, C, weight, run).minimize(start))


def refit(
    W: Array | None,
    F: Array,
    Z: NDArray[np.int8],
    bits: NDArray[np.int64],
    C: float,
    weight: Array | None = None,
    n_jobs: int | None = None,
) -> Array:
    """Weights (F, b): W, or zeros if None, with the given bits trained anew, from W."""
    new = np.zeros((F.shape[1], Z.shape[1])) if W is None else W.copy()
    start = None if W is None else W[:, bits]
    weight = None if weight is None else weight[:, bits]
    new[:, bits] = fit(F, Z[:, bits], C, start, weight, n_jobs)
    return new


def take(W: Array | None, other: Array | None, bits: NDArray[np.int64]) -> Array:
    """Weights W, with the given bits replaced by those of `other`."""
    if W is None or other is None:
        raise ValueError("both hash functions must be fitted")
    new = W.copy()
    new[:, bits] = other[:, bits]
    return new


def average(W: Array | None, other: Array | None, share: float, F: Array) -> Array:
    """Weights (1 - share) W + share other, each bit's outputs on F scaled to unit deviation first.

    Weighted by the numbers of points that each was learnt from, this is nearly what all of the
    points together would give.
    """
    if W is None or other is None:
        raise ValueError("both hash functions must be fitted")
    deviations = (deviation(F @ weights) for weights in (W, other))
    old, new = (np.where(d > 0, d, 1.0) for d in deviations)
    return (1 - share) * W / old + share * other / new


def deviation(values: Array) -> Array:
    """The standard deviation of each column, over the rows of all parts."""
    total, n = peers().sum(values.sum(axis=0)), peers().sum(len(values))
    spread: Array = np.sqrt(peers().sum(np.square(values - total / n).sum(axis=0)) / n)
    return spread


def objective(
    W: Array, F: Array, Z: NDArray[np.int8], C: float, weight: Array | None = None
) -> Array:
    """The SVM objective of each bit, (b,)."""
    slack = np.maximum(0.0, 1.0 - Z * (F @ W))
    slack *= slack
    if weight is not None:
        slack *= weight
    value: Array = 0.5 * (W * W).sum(0) + C * slack.sum(0)
    return value


class _Newton:
    """Columns of Z, s and the margins M = Z * (F W) are the bits that are not solved yet."""

    def __init__(
        self, F: Array, Z: NDArray[np.int8], C: float, weight: Array | None, run: threads.Run
    ) -> None:
        self.F, self.C, self.run = F, C, run
        self.parts: Parts = Chunks(len(F), CHUNK, run)
        self.Z = Z.astype(np.float64)
        self.s = np.ones((1, 1)) if weight is None else weight
        self.gram = self.parts.sum(lambda rows: F[rows].T @ F[rows])
        self.n_points = peers().sum(len(F))
        self.products = None  # (n, n), of all pairs of points
        if peers().n == 1 and len(F) <= SHORT * F.shape[1]:
            self.products = self.parts.join(lambda rows: F[rows] @ F.T)
        self.rho = 0.0  # of the current preconditioner
        self.inverse = np.empty(0)

    def minimize(self, start: Array | None) -> Array:
        n_features, n_bits = self.F.shape[1], self.Z.shape[1]
        W = np.zeros((n_features, n_bits)) if start is None else start.copy()
        M = np.zeros(self.Z.shape)
        if start is not None:
            self.parts.each(lambda rows: np.multiply(self.Z[rows], self.F[rows] @ W, out=M[rows]))
        todo = np.arange(n_bits)  # the column of W for each column of Z and M
        inside = np.empty(M.shape)
        for _ in range(NEWTON_STEPS):
            value, gradient = self._evaluate(W[:, todo], M, inside)
            step, few = self._exact(gradient, inside)
            decrement = -(gradient * step).sum(0)
            if not few.all():
                self._precondition(self._mean(inside[:, ~few]))
                decrement[~few] = (gradient * (self.inverse @ gradient)).sum(0)[~few]
            far = decrement > 2 * TOLERANCE * value
            if not far.all():
                if not far.any():
                    break
                todo, M, inside = todo[far], M[:, far], np.ascontiguousarray(inside[:, far])
                gradient, self.Z = gradient[:, far], self.Z[:, far]
                step, few = step[:, far], few[far]
                self.s = self.s[:, far] if self.s.shape[1] > 1 else self.s
            if not few.any():
                step = self._solve(gradient, inside)
            elif not few.all():
                step[:, ~few] = self._solve(gradient[:, ~few], inside[:, ~few])
            W[:, todo] += step * self._search(W[:, todo], M, step)
        return W

    def _weight(self, rows: slice) -> Array:
        return self.s if len(self.s) == 1 else self.s[rows]

    def _evaluate(self, W: Array, M: Array, inside: Array) -> tuple[Array, Array]:
        """Objective (b,) and gradient (F, b); `inside` becomes s_n inside the margin, else 0."""

        def part(rows: slice) -> Array:
            slack = np.maximum(0.0, 1.0 - M[rows])
            inside[rows] = (slack > 0) * self._weight(rows)
            weighted = slack * self._weight(rows)
            slope = self.F[rows].T @ (self.Z[rows] * weighted)
            return np.vstack([slope, (weighted * slack).sum(0)])

        total = self.parts.sum(part)
        return 0.5 * (W * W).sum(0) + self.C * total[-1], W - 2 * self.C * total[:-1]

    def _mean(self, inside: Array) -> float:
        """The mean over the points of all parts, and over bits."""
        if peers().n == 1:
            return float(inside.mean())
        total: float = peers().sum(float(inside.sum()))
        return float(total / (self.n_points * inside.shape[1]))

    def _precondition(self, rho: float) -> None:
        if abs(rho - self.rho) > 0.1 * self.rho or not len(self.inverse):
            from scipy.linalg import cho_factor, cho_solve  # imported for training alone

            unit = np.eye(len(self.gram))
            factor = cho_factor(unit + (2 * self.C * rho) * self.gram)
            self.rho, self.inverse = rho, cho_solve(factor, unit)

    def _exact(self, gradient: Array, inside: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Newton steps (F, b) of the bits with few points inside the margin, and which those are.

        By Woodbury's identity, with B the m points inside, scaled by the root of their weights,
        (I + 2C B'B)^-1 g = g - B' (I/2C + BB')^-1 B g: a system of m variables.
        """
        from scipy.linalg import cho_factor, cho_solve

        count = peers().sum(np.count_nonzero(inside, axis=0))
        few = count <= len(gradient)
        if self.products is None:
            few &= count**2 <= FEW_INSIDE * self.n_points
        step = -gradient
        F = self.F
        if peers().n > 1 and (few & (count > 0)).any():  # few points: all of them, from all parts
            here = inside[:, few].any(axis=1)
            F, inside = peers().join(F[here]), peers().join(inside[here])

        def solve(bit: int) -> None:
            rows = np.flatnonzero(inside[:, bit])
            root = np.sqrt(inside[rows, bit])
            B = F[rows] * root[:, None]
            if self.products is None:
                small = B @ B.T
            else:
                small = self.products[np.ix_(rows, rows)] * root * root[:, None]
            small.flat[:: len(rows) + 1] += 1 / (2 * self.C)
            step[:, bit] += B.T @ cho_solve(cho_factor(small), B @ gradient[:, bit])

        self.run(solve, np.flatnonzero(few & (count > 0)).tolist())
        return step, few

    def _solve(self, gradient: Array, inside: Array) -> Array:
        """Preconditioned conjugate gradients for Hessian @ step = -gradient, all bits at once."""
        step = np.zeros_like(gradient)
        r = -gradient
        p = q = self.inverse @ r
        size = first = (r * q).sum(0)
        for _ in range(CG_STEPS):
            direction = p

            def part(rows: slice, direction: Array = direction) -> Array:
                outputs = self.F[rows] @ direction
                outputs *= inside[rows]
                return self.F[rows].T @ outputs

            product = p + (2 * self.C) * self.parts.sum(part)
            along = np.divide(size, (p * product).sum(0), out=np.zeros_like(size), where=size > 0)
            step += along * p
            r = r - along * product
            q = self.inverse @ r
            previous, size = size, (r * q).sum(0)
            if (size <= FORCING**2 * first).all():
                break
            p = q + p * np.divide(size, previous, out=np.zeros_like(size), where=previous > 0)
        return step

    def _search(self, W: Array, M: Array, step: Array) -> Array:
        """The best length (b,) of each step, by Newton's method in one variable; updates M."""
        change = np.empty(M.shape)
        self.parts.each(
            lambda rows: np.multiply(self.Z[rows], self.F[rows] @ step, out=change[rows])
        )
        slope, curve = (W * step).sum(0), (step * step).sum(0)
        length = np.ones(step.shape[1])
        for _ in range(4):

            def part(rows: slice, length: Array = length) -> Array:
                slack = np.maximum(0.0, 1.0 - M[rows] - length * change[rows])
                pull = change[rows] * self._weight(rows)
                return np.stack([(slack * pull).sum(0), ((slack > 0) * pull * change[rows]).sum(0)])

            first, second = 2 * self.C * self.parts.sum(part)
            length = length - (slope + length * curve - first) / (curve + second)
        self.parts.each(lambda rows: np.add(M[rows], length * change[rows], out=M[rows]))
        return length
