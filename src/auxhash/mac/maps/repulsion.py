"""Sums of a kernel over all pairs of points, and their gradients.

    R(Z) = sum_{n != m} k(|z_n - z_m|^2),  k(d) = exp(-d) or 1 / (1 + d)

`exact` computes every pair. `on_grid` takes a time that grows with the size of the map, and hardly
with the number of points: they are spread over a grid by cubic B-splines, one convolution gives the
sum at all nodes, and what a point adds to itself is taken off. It is the sum of a slightly
different kernel, and its gradient is that of this very sum: a line search sees one smooth function.
Nodes lie at multiples of the spacing, wherever the points are. A wide map has more of them, as in
FIt-SNE and openTSNE; where there would be too many, every pair is computed.
"""

from functools import lru_cache

import numpy as np
import scipy.fft

from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.kernels import kernel

ROWS_PER_TASK = 256  # points per task of a thread
SPACING = 1 / 3  # of the nodes, in units of the kernels' width: the sum is within 0.1%
MAX_NODES = 1 << 22  # of a grid: a map of 680 x 680
NODES_STEP = 32  # sizes of grids are about multiples of it: few kernels are transformed
N_MARGIN_NODES = 2  # nodes beyond the points that their splines reach
MAX_SQUARED_DISTANCE = 40.0  # beyond which exp(-d) counts as its value there, 4e-18


def exact(Z: Array, heavy: bool) -> tuple[float, Array]:
    """Return R(Z) for Z (n, m), and its gradient (n, m); `heavy` means the kernel 1 / (1 + d)."""
    columns = np.ascontiguousarray(Z.T)
    gradient = np.empty_like(columns)

    def part(rows: slice) -> float:
        return float(_exact_rows(columns, rows.start, rows.stop, heavy, gradient))

    total = sum(threads.run_kernels(part, threads.chunks(len(Z), ROWS_PER_TASK)))
    return total, np.ascontiguousarray(gradient.T)


def on_grid(Z: Array, heavy: bool, spacing: float = SPACING) -> tuple[float, Array]:
    """Return R(Z) and its gradient as `exact` does, approximately, for Z of one or two columns."""
    plane = Z if Z.shape[1] == 2 else np.column_stack([Z, np.zeros(len(Z))])
    first = np.floor(plane.min(axis=0) / spacing) - N_MARGIN_NODES
    needed = np.floor(plane.max(axis=0) / spacing) + N_MARGIN_NODES + 1 - first
    if needed.prod() > MAX_NODES:
        return exact(Z, heavy)
    shape = tuple(
        scipy.fft.next_fast_len(int(-(-nodes // NODES_STEP) * NODES_STEP)) for nodes in needed
    )
    density = np.zeros(shape)
    places = plane / spacing - first
    _spread(places, density)
    both = tuple(2 * nodes for nodes in shape)  # so that the ends do not see each other
    spectrum, near = _spectrum(both, spacing, heavy)
    product = scipy.fft.rfft2(density, both)
    product *= spectrum
    potential = scipy.fft.irfft2(product, both)[: shape[0], : shape[1]]
    gradient = np.empty_like(plane)
    total = float(_gather(places, potential, near, gradient))
    gradient *= 2 / spacing
    return total, np.ascontiguousarray(gradient[:, : Z.shape[1]])


@lru_cache(maxsize=4)
def _spectrum(shape: tuple[int, int], spacing: float, heavy: bool) -> tuple[Array, Array]:
    """Return the transform of the kernel on a grid, over those of the two splines; and its values.

    Then the splines' sum is the kernel's own value wherever both points are on nodes. The values
    are those between a node and the ones that a spline reaches with it, (4, 4).
    """
    axes = [spacing * np.minimum(np.arange(n), n - np.arange(n)) for n in shape]
    squared = axes[0][:, None] ** 2 + axes[1] ** 2
    values = 1 / (1 + squared) if heavy else np.exp(-squared)
    spline = [(2 + np.cos(2 * np.pi * np.arange(n) / n)) / 3 for n in shape]
    of_splines = spline[0][:, None] * spline[1][: shape[1] // 2 + 1]
    spectrum = scipy.fft.rfft2(values).real / of_splines**2
    return spectrum, scipy.fft.irfft2(spectrum, shape)[:4, :4].copy()


@kernel(error_model="numpy")  # a division that may raise is one at a time
def _exp(squared: float) -> float:
    """Return exp(-squared) to 12 digits, by what a processor computes for several at once."""
    u = min(squared, MAX_SQUARED_DISTANCE) / 1024
    value = 1 / 720 - u / 5040
    value = 1 / 120 - u * value
    value = 1 / 24 - u * value
    value = 1 / 6 - u * value
    value = 1 / 2 - u * value
    value = 1 - u * (1 - u * value)
    for _ in range(10):
        value *= value
    return value


@kernel(error_model="numpy")
def _exact_rows(Z: Array, start: int, stop: int, heavy: bool, gradient: Array) -> float:
    """Sum the kernel over the pairs of these points with all; write their gradients.

    Z and the gradient are (m, n). The inner loops pass over the rows, each with a sum of its own,
    so that several are computed at once.
    """
    n_rows = stop - start
    total, value = np.zeros(n_rows), np.empty(n_rows)
    for c in range(len(Z)):
        gradient[c, start:stop] = 0.0
    for j in range(Z.shape[1]):
        value[:] = 0.0  # at first, the squared distance
        for c in range(len(Z)):
            own, other = Z[c, start:stop], Z[c, j]
            for i in range(n_rows):
                value[i] += (own[i] - other) * (own[i] - other)
        if start <= j < stop:
            value[j - start] = np.inf  # no pair
        if heavy:
            for i in range(n_rows):
                similarity = 1 / (1 + value[i])
                total[i] += similarity
                value[i] = 4 * similarity * similarity
        else:
            for i in range(n_rows):
                similarity = _exp(value[i])
                total[i] += similarity
                value[i] = 4 * similarity
        for c in range(len(Z)):
            own, other, slope = Z[c, start:stop], Z[c, j], gradient[c, start:stop]
            for i in range(n_rows):
                slope[i] -= value[i] * (own[i] - other)
    return float(total.sum())


@kernel
def _spline(u: float, weight: Array, slope: Array) -> None:
    """Cubic B-splines of the four nodes around a place u past the second, and their slopes."""
    v = 1 - u
    weight[0], slope[0] = v * v * v / 6, -v * v / 2
    weight[1], slope[1] = 2 / 3 - u * u * (2 - u) / 2, u * (1.5 * u - 2)
    weight[2], slope[2] = 2 / 3 - v * v * (2 - v) / 2, -v * (1.5 * v - 2)
    weight[3], slope[3] = u * u * u / 6, u * u / 2


@kernel
def _spread(places: Array, density: Array) -> None:
    """Add each point to the nodes around it, on one thread: so the sums have an order."""
    w, v, slope = np.empty(4), np.empty(4), np.empty(4)
    for n in range(len(places)):
        row, column = int(places[n, 0]), int(places[n, 1])
        _spline(places[n, 0] - row, w, slope)
        _spline(places[n, 1] - column, v, slope)
        for a in range(4):
            for b in range(4):
                density[row - 1 + a, column - 1 + b] += w[a] * v[b]


@kernel
def _gather(places: Array, potential: Array, near: Array, gradient: Array) -> float:
    """Sum at the points the potential of all others; write its slope there."""
    w, v, dw, dv = np.empty(4), np.empty(4), np.empty(4), np.empty(4)
    total = 0.0
    for n in range(len(places)):
        row, column = int(places[n, 0]), int(places[n, 1])
        _spline(places[n, 0] - row, w, dw)
        _spline(places[n, 1] - column, v, dv)
        along = across = 0.0
        for a in range(4):
            for b in range(4):
                value = potential[row - 1 + a, column - 1 + b]
                for c in range(4):
                    for d in range(4):
                        value -= w[c] * v[d] * near[abs(a - c), abs(b - d)]  # of its own
                total += w[a] * v[b] * value
                along += dw[a] * v[b] * value
                across += w[a] * dv[b] * value
        gradient[n, 0], gradient[n, 1] = along, across
    return total
