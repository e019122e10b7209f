"""Principal axes and random rotations, which several baselines start from."""

import numpy as np

from auxhash.compute.arrays import Array

NOTHING = 1e-12  # variance, relative to the largest, up to which it is only rounding


def principal_axes(X: Array, n: int, method: str) -> tuple[Array, Array]:
    """Mean (D,) and the n principal axes (D, n) of X, by falling variance.

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
    return mean, np.where(variance > NOTHING * variance[0], axes, 0.0)


def random_rotation(n: int, rng: np.random.Generator) -> Array:
    """An orthogonal matrix (n, n), uniformly at random."""
    Q, R = np.linalg.qr(rng.standard_normal((n, n)))
    rotation: Array = Q * np.where(np.diag(R) < 0, -1.0, 1.0)
    return rotation
