"""Sums of a kernel over all pairs of points, and their gradients.

    R(Z) = sum_{n != m} k(|z_n - z_m|^2),  k(d) = exp(-d) or 1 / (1 + d)

`exact` computes every pair. `on_grid` takes a time that grows with the number of points alone: the
points are spread over a grid by cubic B-splines, and one convolution gives the sum at all nodes. It
is the sum of a slightly different kernel, and its gradient is that of this very sum: a line search
sees one smooth function. Nodes lie at multiples of the spacing, wherever the points are.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.kernels import kernel

ROWS_PER_TASK = 64  # points per task of a thread
SPACING = 1 / 3  # of the nodes, in units of the kernels' width: gradients within a few percent
MAX_NODES = 1024  # per axis; of a wider map, the spacing is doubled until it has fewer
NODES_STEP = 32  # sizes of grids are multiples of it, so that few kernels are transformed
MARGIN = 2  # nodes beyond the points that their splines reach


def exact(Z: Array, heavy: bool) -> tuple[float, Array]:
    """Return R(Z) for Z (n, m), and its gradient (n, m); `heavy` means the kernel 1 / (1 + d)."""
    gradient = np.empty_like(Z)

    def part(rows: slice) -> float:
        return float(_exact_rows(Z, rows.start, rows.stop, heavy, gradient))

    return sum(threads.run_kernels(part, threads.chunks(len(Z), ROWS_PER_TASK))), gradient


def on_grid(Z: Array, heavy: bool) -> tuple[float, Array]:
    """Return R(Z) and its gradient as `exact` does, approximately, for Z of one or two columns."""
    plane = Z if Z.shape[1] == 2 else np.column_stack([Z, np.zeros(len(Z))])
    low, high = plane.min(axis=0), plane.max(axis=0)
    spacing = SPACING
    while (high - low).max() > spacing * (MAX_NODES - 2 * MARGIN - 2):
        spacing *= 2
    first = np.floor(low / spacing) - MARGIN
    needed = np.floor(high / spacing) + MARGIN + 1 - first
    shape = tuple(int(-(-nodes // NODES_STEP) * NODES_STEP) for nodes in needed)
    density = np.zeros(shape)
    places = plane / spacing - first
    _spread(places, density)
    both = tuple(2 * nodes for nodes in shape)  # so that the ends do not see each other
    spectrum = scipy.fft.rfft2(density, both) * _spectrum(both, spacing, heavy)
    potential = scipy.fft.irfft2(spectrum, both)[: shape[0], : shape[1]]
    gradient = np.empty_like(plane)
    total = float(_gather(places, potential, gradient)) - len(Z)
    gradient *= 2 / spacing
    return total, np.ascontiguousarray(gradient[:, : Z.shape[1]])


@lru_cache(maxsize=8)
def _spectrum(shape: tuple[int, int], spacing: float, heavy: bool) -> AnyArray:
    """Return the transform of the kernel on a grid, over those of the two splines.

    Then the splines' sum is the kernel's own value wherever both points are on nodes.
    """
    axes = [spacing * np.minimum(np.arange(n), n - np.arange(n)) for n in shape]
    squared = axes[0][:, None] ** 2 + axes[1] ** 2
    values = 1 / (1 + squared) if heavy else np.exp(-squared)
    spline = [(2 + np.cos(2 * np.pi * np.arange(n) / n)) / 3 for n in shape]
    of_splines = spline[0][:, None] * spline[1][: shape[1] // 2 + 1]
    spectrum: AnyArray = scipy.fft.rfft2(values) / of_splines**2
    return spectrum


@kernel
def _exact_rows(Z: Any, start: int, stop: int, heavy: bool, gradient: Any) -> float:
    """Sum the kernel over the pairs of these rows with all; write their gradients."""
    total = 0.0
    difference = np.empty(Z.shape[1])
    for i in range(start, stop):
        gradient[i] = 0.0
        for j in range(len(Z)):
            squared = 0.0
            for c in range(Z.shape[1]):
                difference[c] = Z[i, c] - Z[j, c]
                squared += difference[c] * difference[c]
            if i != j:
                value = 1 / (1 + squared) if heavy else np.exp(-squared)
                total += value
                slope = 4 * value * (value if heavy else 1.0)
                for c in range(Z.shape[1]):
                    gradient[i, c] -= slope * difference[c]
    return total


@kernel
def _spline(u: float, weight: Any, slope: Any) -> None:
    """Cubic B-splines of the four nodes around a place u past the second, and their slopes."""
    v = 1 - u
    weight[0], slope[0] = v * v * v / 6, -v * v / 2
    weight[1], slope[1] = 2 / 3 - u * u * (2 - u) / 2, u * (1.5 * u - 2)
    weight[2], slope[2] = 2 / 3 - v * v * (2 - v) / 2, -v * (1.5 * v - 2)
    weight[3], slope[3] = u * u * u / 6, u * u / 2


@kernel
def _spread(places: Any, density: Any) -> None:
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
def _gather(places: Any, potential: Any, gradient: Any) -> float:
    """Sum the potential at the points; write its slope there."""
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
                total += w[a] * v[b] * value
                along += dw[a] * v[b] * value
                across += w[a] * dv[b] * value
        gradient[n, 0], gradient[n, 1] = along, across
    return total
