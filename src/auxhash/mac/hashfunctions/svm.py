"""Linear SVMs for all bits at once: Newton's method with conjugate gradients.

For each bit, with features f_n (bias included, and regularised, as in LIBLINEAR),

    min_w  |w|^2 / 2 + C sum_n s_n max(0, 1 - z_n w'f_n)^2

The bits share the features, so products with all of them are matrix products, and they share a
preconditioner: the inverse of I + 2 C rho F'F, with rho the mean over points and bits of s_n where
the point is inside the margin and 0 where it is not. A few conjugate gradient steps then solve each
Newton system. Where classes are well separated, few points are inside a bit's margin, and the
preconditioner is a poor one: a bit whose system takes more operations than to solve it exactly is
solved so, then and for some steps from then on (`exact`). Where the points are in several parts
(`compute.peers`), and few in all, every part gets them and solves some of the bits; otherwise a bit
is solved exactly only while few points are inside, which then travel. Double precision:
radial basis functions are nearly collinear, and single precision fails on them. Only the products
of conjugate gradients with scaled features are single on a GPU, whose memory they wait for.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes
from auxhash.compute import context, lapack, threads, underway
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, Array, Computed, Matrix, Numbers, in_memory
from auxhash.compute.parts import Chunks
from auxhash.compute.peers import peers
from auxhash.mac.hashfunctions import features
from auxhash.mac.hashfunctions.exact import DeviceSteps, ExactSteps, JoinedSteps
from auxhash.mac.hashfunctions.margins import DeviceMargins, Margins

POINTS_PER_TASK = 1024  # points per task of a thread
TOLERANCE = 1e-5  # estimated distance to the optimum, relative to the objective
SOLVED_RESIDUAL = 0.1  # relative residual at which a Newton system counts as solved
MAX_NEWTON_STEPS = 300
MAX_EXACT_STEPS = 40  # Newton steps after which only bits with few points inside are solved exactly
MAX_LATE_CG_STEPS = 50  # of the others from then on
FEW_INSIDE = 100  # m points inside a margin are few if m^2 is at most this times all points
SLOPE_LEFT_SHARE = 0.1  # share of a step's slope at length 0 that may be left at its end
MIN_CG_STEPS = 12  # that are tried before a system is solved exactly
MAX_CG_STEPS_TOGETHER = 200  # where points are in several parts: then few are solved exactly
RHO_FACTOR = 1.15  # factor between the values of rho on a GPU
MIN_SQUARED_RESIDUAL = 1e-200  # a squared residual that has no digits to lose
CG_OPERATIONS_SHARE = 1 / 8  # or this share of its operations: most come once, CG's for each step

# The weights (F, b) from features, codes, weights of points and weights to start from
Solve = Callable[[Matrix, Codes, Array | None, Array | None], Array]


def fit(
    F: Matrix, Z: Codes, C: float, start: Array | None = None, weight: Array | None = None
) -> Array:
    """Train the weights (F, b) of the SVMs from features F (n, F) to each column of Z (n, b).

    Args:
        start: weights (F, b) to start from; zero if None.
        weight: weight s (n, b) of each point for each bit; one if None.
    """
    lapack.load()
    with threads.pool() as run, underway.loop("h step", 1.0) as progress:

        def solve(F: Matrix, Z: Codes, weight: Array | None, W: Array | None) -> Array:
            return _Newton(F, Z, C, weight, run).minimize(W, progress)

        return peers().once(lambda: _fit(solve, F, Z, weight, start))


def _fit(solve: Solve, F: Matrix, Z: Codes, s: Array | None, start: Array | None) -> Array:
    """Train the weights (F, b) in as few rounds as the sizes of the parts allow.

    Each step of conjugate gradients is a round, and a part that has all the points of weight needs
    none: it solves slow bits exactly. So such a part solves alone; and where all points may be held
    by every part, each gets them and solves some of the bits. Otherwise the parts make each step
    together.
    """
    us = peers()
    if us.n == 1:
        return solve(F, Z, s, start)
    rows = np.arange(len(F)) if s is None else np.flatnonzero(s.any(axis=1))
    counts = us.join(np.array([len(rows)]))  # points of weight, of each part
    if counts.sum() * F.shape[1] * 8 > features.largest(Z):
        if np.count_nonzero(counts) > 1:
            return solve(F, Z, s, start)
        return us.by(int(counts.argmax()), lambda: _alone(solve, F, Z, s, start))
    F, Z = us.join(F[rows]), us.join(Z[rows])
    s = None if s is None else us.join(s[rows])
    bits = np.arange(us.place, Z.shape[1], us.n)
    W = np.zeros((F.shape[1], Z.shape[1]))
    if len(bits):
        s, start = (None if part is None else part[:, bits] for part in (s, start))
        W[:, bits] = _alone(solve, F, Z[:, bits], s, start)
    return us.sum(W)


def _alone(solve: Solve, F: Matrix, Z: Codes, s: Array | None, start: Array | None) -> Array:
    """Train the weights (F, b) on these points alone, without those of other parts."""
    with context.using(peers=context.ALONE):
        return solve(F, Z, s, start)


def refit(
    W: Array | None, F: Matrix, Z: Codes, bits: Numbers, C: float, weight: Array | None = None
) -> Array:
    """Return W (F, b), or zeros if None, with the given bits trained anew, from W."""
    device = devices.of(F)
    new: Array = device.zeros((F.shape[1], Z.shape[1])) if W is None else W.copy()
    start = None if W is None else device.columns(W, bits)
    weight = None if weight is None else device.columns(weight, bits)
    device.set_columns(new, bits, fit(F, device.columns(Z, bits), C, start, weight))
    return new


def take(W: Array | None, other: Array | None, bits: Numbers) -> Array:
    """Return weights W with the given bits replaced by those of `other`."""
    if W is None or other is None:
        raise ValueError("both hash functions must be fitted")
    new, chosen = W.copy(), devices.of(W).put(bits)
    new[:, chosen] = other[:, chosen]
    return new


def average(W: Array | None, other: Array | None, share: float, F: Matrix) -> Array:
    """Weights (1 - share) W + share other, each bit's outputs on F scaled to unit deviation first.

    Weighted by the numbers of points that each was learnt from, this is nearly what all of the
    points together would give.
    """
    if W is None or other is None:
        raise ValueError("both hash functions must be fitted")
    size = devices.of(F).rows(POINTS_PER_TASK, F.shape[1])
    rows = threads.chunks(len(F), size if in_memory(F) is None else len(F))
    outputs = (np.concatenate([F[part] @ weights for part in rows]) for weights in (W, other))
    deviations = (deviation(each) for each in outputs)
    old, new = (np.where(d > 0, d, 1.0) for d in deviations)
    return (1 - share) * W / old + share * other / new


def deviation(values: Array) -> Array:
    """Return the standard deviation of each column, over the rows of all parts."""
    total, n = peers().sum(values.sum(axis=0)), peers().sum(len(values))
    spread: Array = np.sqrt(peers().sum(np.square(values - total / n).sum(axis=0)) / n)
    return spread


def objective(W: Array, F: Array, Z: Codes, C: float, weight: Array | None = None) -> Array:
    """Return the SVM objective of each bit, (b,)."""
    slack = np.maximum(0.0, 1.0 - Z * (F @ W))
    slack *= slack
    if weight is not None:
        slack *= weight
    value: Array = 0.5 * (W * W).sum(0) + C * slack.sum(0)
    return value


def _gram(F: Matrix, parts: Chunks) -> Array:
    """Return F'F over all parts; the part here is cached with features that are computed."""

    def product(rows: slice) -> Array:
        part = F[rows]
        return part.T @ part

    if not isinstance(F, Computed):
        return parts.sum(product)
    if "gram" not in F.memo:
        F.memo["gram"] = parts.sum_here(product)
    kept: Array = F.memo["gram"]
    return peers().sum(kept)


class _Newton:
    """Columns of the margins M are the bits that are not solved yet."""

    def __init__(
        self, F: Matrix, Z: Codes, C: float, weight: Array | None, run: threads.Run
    ) -> None:
        self.F, self.C, self.run, self.device = F, C, run, devices.of(F)
        self.parts = Chunks(len(F), self.device.rows(POINTS_PER_TASK, F.shape[1]), run)
        here = self.device is devices.CPU
        self.margins = (Margins if here else DeviceMargins)(F, Z, weight, self.parts)
        self.gram = _gram(F, self.parts)
        n, size = F.shape
        self.cg_cost = 4.0 * n * size + 2.0 * size**2  # operations of one CG step of one bit
        self.n_points = peers().sum(n)
        self.exact: ExactSteps | JoinedSteps | DeviceSteps
        if not here:
            self.exact = DeviceSteps(F, self.gram, C, self.device)
        elif peers().n == 1:
            self.exact = ExactSteps(F, self.gram, C, run)
        else:
            self.exact = JoinedSteps(F, self.gram, C, run, self.n_points)
        self.rho = 0.0  # of the current preconditioner
        self.inverse = np.empty(0)

    def minimize(self, start: Array | None, progress: context.Loop) -> Array:
        n_features, n_bits = self.F.shape[1], self.margins.Z.shape[1]
        take, fetch = self.device.columns, self.device.fetch
        W: Array = self.device.zeros((n_features, n_bits)) if start is None else start.copy()
        M = self.device.zeros((len(self.F), n_bits)) if start is None else self.margins.of(W)
        todo = np.arange(n_bits)  # the column of W for each column of Z and M
        hard = np.zeros(n_bits, np.bool_)  # bits whose systems are solved exactly
        inside: Array = self.device.empty(M.shape)
        farthest = 0.0
        for number in range(MAX_NEWTON_STEPS):
            value, gradient = self._evaluate(take(W, todo), M, inside)
            # Exact steps can wander for long where hardly more points are inside than there are
            # features; inexact ones in between end that.
            early = number < MAX_EXACT_STEPS
            exact = early and self.exact.any_number
            few = self.exact.few(inside) if early else self._few_inside(inside)
            hard = few | (hard & exact)
            cost = self.exact.cost(inside)
            step = np.zeros_like(gradient)  # not empty: columns of other bits are multiplied, too
            those = np.flatnonzero(hard)
            self._solve_exactly(todo, those, gradient, inside, step)
            decrement = np.zeros(len(todo))
            if hard.any():
                decrement = fetch(-(gradient * step).sum(0))
            if not hard.all():
                easy_inside = take(inside, np.flatnonzero(~hard)) if hard.any() else inside
                self._precondition(self._mean(easy_inside))
                roughly = fetch((gradient * (self.inverse @ gradient)).sum(0))
                decrement[~hard] = roughly[~hard]
            near = 2 * TOLERANCE * fetch(value)
            far = decrement > near
            # How far the bits are on their way, by the digits that they have still to gain.
            digits = float(np.log(decrement[far] / near[far]).sum())
            farthest = max(farthest, digits)
            progress.done = 1 - digits / farthest if farthest else 1.0
            if not far.all():
                if not far.any():
                    break
                left = np.flatnonzero(far)
                todo, M, inside = todo[far], take(M, left), take(inside, left).copy()
                gradient, step = take(gradient, left), take(step, left)
                hard, cost = hard[far], cost[far]
                self.margins.take(left)
            if not hard.all():
                easy = np.flatnonzero(~hard)
                limit = np.full(len(easy), float(MAX_LATE_CG_STEPS))
                if early:
                    limit = self._patience(cost[easy])
                # Not a copy of `inside` where it would be all of it: it has a row for each point.
                weights = take(inside, easy) if hard.any() else inside
                steps, solved = self._solve(take(gradient, easy), weights, limit)
                self.device.set_columns(step, easy, steps)
                late = easy[~solved & exact]
                self._solve_exactly(todo, late, gradient, inside, step)
                hard[late] = True
            before = take(W, todo)
            length = self._search(before, M, step, gradient)
            self.device.set_columns(W, todo, before + step * length)
        return W

    def _solve_exactly(
        self, todo: Numbers, those: Numbers, gradient: Array, inside: Array, step: Array
    ) -> None:
        """Put the exact steps of those columns into `step`."""
        if len(those):
            take = self.device.columns
            steps = self.exact.solve(todo[those], take(gradient, those), take(inside, those))
            self.device.set_columns(step, those, steps)

    def _few_inside(self, inside: Array) -> NDArray[np.bool_]:
        count = self.device.fetch(peers().sum((inside != 0).sum(axis=0)))
        return np.asarray((count <= len(self.gram)) & (count**2 <= FEW_INSIDE * self.n_points))

    def _rough(self, rows: slice) -> AnyArray:
        """Features for directions, which need not be exact: the gradients that they come from are.

        A GPU reads them in half the time.
        """
        single = self.F.single if isinstance(self.F, Computed) else None
        return self.F[rows] if single is None else single(rows)

    def _evaluate(self, W: Array, M: Array, inside: Array) -> tuple[Array, Array]:
        """Return objective (b,) and gradient (F, b); set `inside` to s_n in the margin, else 0."""
        slope, slack = self.margins.sums(M, inside)
        return 0.5 * (W * W).sum(0) + self.C * slack, W - 2 * self.C * slope

    def _mean(self, inside: Array) -> float:
        """Return the mean over the points of all parts, and over bits."""
        if peers().n == 1:
            return float(inside.mean())
        total: float = peers().sum(float(inside.sum()))
        return float(total / (self.n_points * inside.shape[1]))

    def _patience(self, cost: Array) -> Array:
        """Return the most CG steps (b,), for systems whose exact step takes `cost` operations."""
        limit = np.maximum(MIN_CG_STEPS, CG_OPERATIONS_SHARE * cost / self.cg_cost)
        return np.where(np.isinf(cost), MAX_CG_STEPS_TOGETHER, limit)

    def _precondition(self, rho: float) -> None:
        """Set the inverse for about this rho."""
        if self.device is not devices.CPU and rho > 0:
            # An inverse takes a GPU as long as many steps. One of few values of rho is likely that
            # of the h step before, and no codes depend on whether it was kept.
            rho = RHO_FACTOR ** round(math.log(rho, RHO_FACTOR))
        if abs(rho - self.rho) > 0.1 * self.rho or not len(self.inverse):
            self.rho, self.inverse = rho, self._inverse(rho)

    def _inverse(self, rho: float) -> Array:
        """Return the inverse for this rho; the last is cached with features that are computed."""
        kept = self.F.memo if isinstance(self.F, Computed) else {}
        if kept.get("inverse of") != (self.C, rho):
            unit = self.device.put(np.eye(len(self.gram)))
            kept["inverse"] = self.device.inverse(unit + 2 * self.C * rho * self.gram)
            kept["inverse of"] = self.C, rho
        inverse: Array = kept["inverse"]
        return inverse

    def _solve(
        self, gradient: Array, inside: Array, limit: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Preconditioned conjugate gradients for Hessian @ step = -gradient, all bits at once.

        Returns the steps, and which bits are solved; `limit` (b,) is the most CG steps of each.
        """
        step = np.zeros_like(gradient)
        r = -gradient
        p = self.inverse @ r
        size = (r * p).sum(0)
        first = size.copy()
        solved = np.zeros(len(limit), np.bool_)
        for number in range(1, int(np.ceil(limit.max())) + 1):
            direction = p

            def part(rows: slice, direction: Array = direction) -> Array:
                F = self._rough(rows)
                outputs = F @ direction.astype(F.dtype, copy=False)
                outputs *= inside[rows]
                product: Array = (F.T @ outputs).astype(np.float64, copy=False)
                return product

            _go_along(p, self.parts.sum(part), step, r, size, 2 * self.C)
            solved = _turn(p, self.inverse @ r, r, size, first)
            if (solved | (number >= limit)).all():
                break
        return step, solved

    def _search(self, W: Array, M: Array, step: Array, gradient: Array) -> Array:
        """Find the best length (b,) of each step, and update M."""
        change = self.margins.of(step)
        slope, curve = (W * step).sum(0), (step * step).sum(0)
        enough = SLOPE_LEFT_SHARE * np.abs((gradient * step).sum(0))
        length = self.margins.length(M, change, slope, curve, enough, self.C)
        self.parts.each(lambda rows: np.add(M[rows], length * change[rows], out=M[rows]))
        return length


def _go_along(p: Array, total: Array, step: Array, r: Array, size: Array, factor: float) -> None:
    """Go along directions p (D, b) to the least of the quadratic; step and residual r are changed.

    p + factor total is the Hessian times p, `size` (b,) the size of the residuals.
    """
    device = devices.of(p)
    if device is not devices.CPU:
        numbers = np.float64(factor), np.float64(MIN_SQUARED_RESIDUAL), *p.shape
        device.kernels(__file__)("go_along", p.shape[1], p, total, step, r, size, *numbers)
        return
    product = p + factor * total
    curve = (p * product).sum(0)
    along = np.divide(size, curve, out=np.zeros_like(size), where=size > MIN_SQUARED_RESIDUAL)
    step += along * p
    r -= along * product


def _turn(p: Array, q: Array, r: Array, size: Array, first: Array) -> NDArray[np.bool_]:
    """Turn to the next directions, from residuals r and q, the preconditioned ones.

    p and size are changed. Returns which bits are solved, their first size being `first`.
    """
    device = devices.of(p)
    if device is not devices.CPU:
        solved = device.empty(p.shape[1], np.bool_)
        numbers = np.float64(SOLVED_RESIDUAL**2), *p.shape
        device.kernels(__file__)("turn", p.shape[1], p, q, r, size, first, solved, *numbers)
        return np.asarray(device.fetch(solved))
    now = (r * q).sum(0)
    p *= np.divide(now, size, out=np.zeros_like(size), where=size > 0)
    p += q
    size[:] = now
    return np.asarray(now <= SOLVED_RESIDUAL**2 * first)
