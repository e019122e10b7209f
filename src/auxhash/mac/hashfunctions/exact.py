"""Newton steps of squared-hinge SVMs, solved exactly, each bit by itself.

The Hessian of a bit is I + 2C F'DF, with D diagonal: the weight of each point inside the margin, 0
for the others. A system with it is solved in one of two ways, that of fewer operations:

- by features: a Cholesky factor of the Hessian itself. F'DF is kept from step to step: only points
  that came inside or went out are added or taken off. The first one starts from nothing, or from
  F'F, the sum over all points, whichever is nearer.
- by points, if those inside are fewer than the features: by Woodbury's identity, with B the points
  inside, scaled by the root of their weights,
  (I + 2C B'B)^-1 g = g - B' (I/2C + BB')^-1 B g.

Where the points are in several parts (`compute.peers`), those inside travel, if they are few enough
to solve by points (`JoinedSteps`); F'DF would be too much to send for each bit.
"""

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import lapack, threads
from auxhash.compute.arrays import Array, Matrix, Numbers
from auxhash.compute.device import Device
from auxhash.compute.kernels import kernel
from auxhash.compute.peers import peers

MAX_POINTS_PER_FEATURE = 4  # up to which the products of all pairs of points are kept
CG_OPERATIONS_PER_FEATURE = 20  # of a point: about five steps of conjugate gradients
MAX_KEPT_BYTES = 1 << 28  # bytes of the sums F'DF that are kept, at most
ROWS_PER_TASK = 512  # of the products, per task of a thread


class ExactSteps:
    """The steps for features F (n, F), gram = F'F, and the cost C."""

    any_number = True  # of points inside

    def __init__(self, F: Matrix, gram: Array, C: float, run: threads.Run) -> None:
        self.F, self.gram, self.C, self.run = F, gram, C, run
        few = len(F) <= MAX_POINTS_PER_FEATURE * F.shape[1]
        self.points = F[:] if few else None
        self.products = None if self.points is None else _products(self.points, run)
        self.own = threading.local()  # memory of each thread, for `_few_points`
        self.sums: dict[int, tuple[Array, Array]] = {}  # D (n,) and the lower half of F'DF, of bits
        self.most = MAX_KEPT_BYTES // gram.nbytes  # bits with a higher number have theirs made anew

    def few(self, inside: Array) -> NDArray[np.bool_]:
        """Return a mask (b,) of bits with so few points inside that they need only exact steps."""
        count = (inside != 0).sum(axis=0, dtype=np.float64)
        cost = self._by_points_cost(count)
        return np.asarray(cost <= CG_OPERATIONS_PER_FEATURE * self.F.shape[0] * self.F.shape[1])

    def cost(self, inside: Array) -> Array:
        """Estimate the operations (b,) of each first step; columns of `inside` (n, b) are D."""
        count = (inside != 0).sum(axis=0, dtype=np.float64)
        near = np.minimum(count, len(inside) - count)
        return np.minimum(self._by_features_cost(near), self._by_points_cost(count))

    def solve(self, bits: Numbers, gradient: Array, inside: Array) -> Array:
        """Return the steps (F, b) -H^-1 g; sums are kept from call to call by number of the bit."""
        step = np.empty_like(gradient)

        def one(column: int) -> None:
            D, g = np.ascontiguousarray(inside[:, column]), gradient[:, column]
            step[:, column] = self._step(int(bits[column]), D, g)

        self.run(one, range(len(bits)))
        return step

    def _by_features_cost(self, changed: Array) -> Array:
        size = len(self.gram)
        return np.asarray(changed * size**2 + size**3 / 3)

    def _by_points_cost(self, count: Array) -> Array:
        return _by_points_cost(count, len(self.gram), self.products is not None)

    def _step(self, bit: int, D: Array, gradient: Array) -> Array:
        rows = np.flatnonzero(D)
        known, changed = self._nearest(bit, D)
        sizes = np.asarray(float(len(rows))), np.asarray(float(len(changed)))
        if self._by_points_cost(sizes[0]) <= self._by_features_cost(sizes[1]):
            return self.by_points(rows, D[rows], gradient)
        return self._by_features(self._sum(bit, known, D, changed), gradient)

    def _nearest(self, bit: int, D: Array) -> tuple[int, Numbers]:
        """Return the known sum nearest to F'DF, and the points where its diagonal is not D.

        Known are those whose diagonal is all 0 (0), all 1 (1) or the bit's last one (2).
        """
        diagonals = [np.zeros(len(D)), np.ones(len(D))]
        diagonals += [self.sums[bit][0]] if bit in self.sums else []
        changed = [np.flatnonzero(diagonal != D) for diagonal in diagonals]
        known = min(range(len(changed)), key=lambda i: len(changed[i]))
        return known, changed[known]

    def _sum(self, bit: int, known: int, D: Array, changed: Numbers) -> Array:
        """Return the lower half of F'DF, from a known sum, by adding the changed points."""
        if known == 2:
            before, total = self.sums[bit]
        else:
            before = np.full(len(D), float(known))
            total = np.array(self.gram if known else np.zeros_like(self.gram), order="F")
        difference = D[changed] - before[changed]
        for way in (1.0, -1.0):
            changes = way * difference > 0
            B = self.F[changed[changes]] * np.sqrt(way * difference[changes])[:, None]
            if len(B):
                lapack.add_squares(way, B.T, total)
        if bit < self.most:
            self.sums[bit] = D, total
        return total

    def _by_features(self, total: Array, gradient: Array) -> Array:
        return _solved(lambda: total.copy("F"), 1 / (2 * self.C), gradient / (-2 * self.C))

    def by_points(self, rows: Numbers, weight: Array, gradient: Array) -> Array:
        """Return the step -H^-1 g (F,) of one bit, from the points inside and their weights."""
        if not len(rows):
            return -gradient
        root = np.sqrt(weight)
        B, make = self._few_points(rows, root)
        return B.T @ _solved(make, 1 / (2 * self.C), B @ gradient) - gradient

    def _few_points(
        self, rows: NDArray[np.int64], root: Array
    ) -> tuple[Array, Callable[[], Array]]:
        """Return B, the points scaled by the root of their weights, and a function for BB'.

        Known products are gathered in memory that the thread keeps: where free memory goes back to
        the system at once, as on Dask's workers, new memory costs more than the numbers in it.
        """
        points, products = self.points, self.products
        if points is None or products is None:
            scaled = self.F[rows] * root[:, None]
            return scaled, lambda: lapack.squares(scaled.T)
        n, size = len(rows), len(self.gram)
        own = self.own.__dict__
        if not own:
            own |= {name: np.empty((size, size)) for name in ("B", "half")}
        B = np.take(points, rows, axis=0, out=own["B"][:n], mode="clip")
        B *= root[:, None]

        def make() -> Array:
            half: Array = own["half"].ravel()[: n * n].reshape(n, n, order="F")
            _gather(products, rows, root, half)
            return half

        return B, make


class JoinedSteps:
    """The steps where the n points are in several parts: by points, those of all parts."""

    any_number = False

    def __init__(self, F: Matrix, gram: Array, C: float, run: threads.Run, n: int) -> None:
        self.F, self.gram, self.C, self.run, self.n = F, gram, C, run, n

    def few(self, inside: Array) -> NDArray[np.bool_]:
        """Return a mask (b,) of bits with few points inside, in all parts together."""
        count = peers().sum((inside != 0).sum(axis=0, dtype=np.float64))
        cost = _by_points_cost(count, len(self.gram), known=False)
        return np.asarray(cost <= CG_OPERATIONS_PER_FEATURE * self.n * len(self.gram))

    def cost(self, inside: Array) -> Array:
        """Return infinity: bits with more than a few points inside have no exact step."""
        return np.full(inside.shape[1], np.inf)

    def solve(self, bits: Numbers, gradient: Array, inside: Array) -> Array:
        """Return the steps (F, b) of bits with few points inside, as `ExactSteps` does."""
        step = -gradient
        if not len(bits):
            return step
        here = np.flatnonzero(inside.any(axis=1))
        F, inside = peers().join(self.F[here]), peers().join(inside[here])
        if not len(F):
            return step
        joined = ExactSteps(F, self.gram, self.C, self.run)

        def one(column: int) -> None:
            rows = np.flatnonzero(inside[:, column])
            step[:, column] = joined.by_points(rows, inside[rows, column], gradient[:, column])

        self.run(one, range(len(bits)))
        return step


class DeviceSteps:
    """The steps on a GPU: each bit's sum is computed anew, as operations are cheap there."""

    any_number = True

    def __init__(self, F: Matrix, gram: Array, C: float, device: Device) -> None:
        self.F, self.C, self.device, self.size = F, C, device, len(gram)

    def few(self, inside: Array) -> NDArray[np.bool_]:
        """Return a mask (b,) without any bit: conjugate gradients are tried first."""
        return np.zeros(inside.shape[1], np.bool_)

    def cost(self, inside: Array) -> Array:
        """Return infinity: conjugate gradients, of all bits at once, take many steps first."""
        return np.full(inside.shape[1], np.inf)

    def solve(self, bits: Numbers, gradient: Array, inside: Array) -> Array:
        """Return the steps (F, b) -H^-1 g."""
        step, unit = np.empty_like(gradient), self.device.put(np.eye(self.size))
        for column in range(len(bits)):
            hessian = unit.copy()
            rows = np.flatnonzero(inside[:, column])
            for chunk in threads.chunks(len(rows), self.device.rows(ROWS_PER_TASK, self.size)):
                chosen = rows[chunk]
                part = self.F[chosen]
                hessian += 2 * self.C * (part.T @ (part * inside[chosen, column][:, None]))
            step[:, column] = -np.linalg.solve(hessian, gradient[:, column])
        return step


def _by_points_cost(count: Array, size: int, known: bool) -> Array:
    """Estimate the operations for `count` points inside; `known`: their products are computed."""
    return np.where(count <= size, count**2 * (0 if known else size) + count**3 / 3, np.inf)


def _products(points: Array, run: threads.Run) -> Array:
    """Return the products (n, n) of all pairs of points, at least the upper half of them."""
    products = np.zeros((len(points), len(points)))

    def multiply(rows: slice) -> None:
        np.matmul(points[rows], points[rows.start :].T, out=products[rows, rows.start :])

    run(multiply, threads.chunks(len(points), ROWS_PER_TASK))
    return products


@kernel
def _gather(products: Array, rows: NDArray[np.int64], root: Array, half: Array) -> None:
    """Set the lower half of the products of these rows, in rising order, scaled by their roots."""
    for j in range(len(rows)):
        of_row = products[rows[j]]
        for i in range(j, len(rows)):
            half[i, j] = of_row[rows[i]] * root[i] * root[j]


def _solved(make: Callable[[], Array], ridge: float, right: Array) -> Array:
    """Solve (A + ridge I) x = right; `make` returns the lower half of A, which is overwritten."""
    while True:
        half = make()
        diagonal = half.diagonal().copy()
        np.fill_diagonal(half, diagonal + ridge)
        if lapack.factor(half):
            return lapack.solve(half, right)
        # Where C is huge, rounding can make the sum indefinite: then a shorter step will do.
        ridge = max(10 * ridge, 1e-15 * float(diagonal.sum()))
