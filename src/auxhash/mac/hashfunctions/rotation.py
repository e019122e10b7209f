"""Principal axes and their rotations: projections that need nothing but the points.

Several methods are made of them, and others start from them.
"""

import numpy as np

from auxhash.codes import sign
from auxhash.compute import deadline
from auxhash.compute import device as devices
from auxhash.compute.arrays import Array, Matrix

SAMPLE_POINTS, N_ITQ_ITERATIONS = 20_000, 50  # of points, and of ITQ, that a start is worth
MIN_VARIANCE = 1e-12  # variance, relative to the largest, up to which it is only rounding


def principal_axes(X: Array, n: int, method: str) -> tuple[Array, Array]:
    """Return the mean (D,) and the n principal axes (D, n) of X, by falling variance.

    The entry of an axis that is largest in size is positive. An axis without variance is zero, so
    that its bit is constant rather than rounding noise. ValueError if X has fewer than n features.
    """
    n_samples, n_features = X.shape
    if n > n_features:
        raise ValueError(
            f"{method} gives at most as many bits as there are features: "
            f"n_bits={n}, n_features={n_features}"
        )
    mean = X.mean(axis=0)
    centred = X - mean
    variance, axes = np.linalg.eigh(centred.T @ centred / n_samples)
    variance, axes = variance[::-1][:n], axes[:, ::-1][:, :n]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(n)])
    return mean, np.where(variance > MIN_VARIANCE * variance[0], axes, 0.0)


def random_rotation(n: int, rng: np.random.Generator) -> Array:
    """Return an orthogonal matrix (n, n), uniformly at random."""
    Q, R = np.linalg.qr(rng.standard_normal((n, n)))
    return Q * np.where(np.diag(R) < 0, -1.0, 1.0)


def quantize(V: Array, R: Array, n_iter: int) -> tuple[Array, list[float]]:
    """Iterate ITQ `n_iter` times from R: return its rotation, and the error before and after each.

    The error is |B - V R|^2 per point, B = sign(V R).
    """
    errors = [_error(V, R)]
    for _ in deadline.each(range(n_iter)):
        B = sign(V @ R).astype(np.float64)
        left, _, right = np.linalg.svd(V.T @ B)
        R = left @ right
        errors.append(_error(V, R))
    return R, errors


def _error(V: Array, R: Array) -> float:
    rotated = V @ R
    return float(np.square(sign(rotated) - rotated).sum() / len(V))


def projections(F: Matrix, b: int, rng: np.random.Generator) -> Array:
    """Return weights W (D + 1, b) for features F (n, D + 1), the last a constant 1, to start from.

    ITQ's as far as there are as many features as bits, and then hyperplanes through the mean, at
    random in the directions of the principal axes.
    """
    rows = np.sort(rng.permutation(len(F))[:SAMPLE_POINTS])
    device = devices.of(F)
    X = np.ascontiguousarray(device.fetch(F[device.put(rows)])[:, :-1])
    n = min(b, X.shape[1])
    mean, axes = principal_axes(X, n, "ITQ")
    R = quantize((X - mean) @ axes, random_rotation(n, rng), N_ITQ_ITERATIONS)[0]
    W = axes @ np.hstack([R, rng.standard_normal((n, b - n))])
    return np.vstack([W, -mean @ W])
