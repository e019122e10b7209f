"""Squared distances of many points at once, as a matrix product."""

import numpy as np

from auxhash.compute.arrays import Array


def squared_distances(A: Array, B: Array) -> Array:
    """|a - b|^2 for all rows of A and B, (n_a, n_b).

    The origin is moved to the mean of B: far from it the differences would drown in the rounding
    of the squares.
    """
    origin = B.mean(axis=0)
    distance = expanded(A - origin, B - origin)[0]
    np.maximum(distance, 0.0, out=distance)  # rounding can take it below zero
    if A is B:
        np.fill_diagonal(distance, 0.0)
    return distance


def expanded(A: Array, B: Array) -> tuple[Array, Array, Array]:
    """|b|^2 + |a|^2 - 2 a'b (n_a, n_b), and the |b|^2 and |a|^2 it was summed from."""
    b, a = np.einsum("nd,nd->n", B, B), np.einsum("nd,nd->n", A, A)
    distance: Array = A @ B.T
    distance *= -2.0
    distance += b
    distance += a[:, None]
    return distance, b, a
