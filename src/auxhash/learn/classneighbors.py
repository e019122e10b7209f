"""Neighbours of the same class: for codes that rank a class first, and in it the most similar."""

import numpy as np

from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.compute.neighbors import Metric, nearest
from auxhash.learn.training.validation import SCORE_K, typical_class


def same_class(X: AnyArray, y: AnyArray, metric: Metric) -> Numbers:
    """Return rows (n, k) of the points of its own class that are nearest to each point.

    k is 100, or what most classes have. In smaller classes a point has the same ones repeatedly,
    and one that is alone in its class has the nearest of all.
    """
    k = min(SCORE_K, max(1, typical_class(y) - 1))
    table = np.empty((len(X), k), np.int64)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        if len(rows) > 1:
            near = rows[nearest(X[rows], k=min(k, len(rows) - 1), metric=metric)[0]]
            table[rows] = near[:, np.arange(k) % near.shape[1]]
        else:
            near = nearest(X, X[rows], 2, metric)[0][0]
            table[rows] = near[near != rows][0]
    return table
