"""Synthetic queries: more of them than there are points, so that training does not know them all.

A hash function that is learnt from some thousand points overfits their neighbours, and finds far
fewer of those of a new point.
"""

from typing import NamedTuple

import numpy as np

from auxhash.compute import neighbors
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.device import CPU, Device
from auxhash.compute.neighbors import Metric

MAX_QUERIES_PER_POINT = 20  # queries at most: beyond, they gain little
ADDED_SHARE = 0.7  # of the differences that are added, as a share


class SyntheticQueries(NamedTuple):
    """Queries that are no points, and the points nearest to each."""

    X: Array  # (m, D)
    nearest: Numbers  # (m, k)


def n_queries(n: int, max_pairs: float, drawn: int) -> int:
    """Return how many queries n points get: at least one each, or none.

    Args:
        max_pairs: distances between a query and a point that may be computed for them.
        drawn: points that all steps together draw as queries.
    """
    useful = min(MAX_QUERIES_PER_POINT * n, int(max_pairs // n), drawn)
    return useful if useful >= n else 0


def around(
    X: AnyArray,
    nearest: Numbers,
    n: int,
    metric: Metric,
    device: Device,
    rng: np.random.Generator,
) -> SyntheticQueries:
    """Return n queries, each a point moved along the difference of two of its neighbours.

    So they lie where new points would, about as far from their neighbours.
    """
    points = neighbors.normalized(X) if metric == "cosine" else X.astype(np.float64)
    i = rng.integers(0, len(X), n)
    one, other = (nearest[i, rng.integers(0, nearest.shape[1], n)] for _ in range(2))
    queries = points[i] + ADDED_SHARE * (points[one] - points[other])
    k = nearest.shape[1]
    if device is CPU:
        return SyntheticQueries(queries, neighbors.nearest(X, queries, k, metric)[0])
    return SyntheticQueries(queries, neighbors.nearest_on(device, X, k, metric, queries))
