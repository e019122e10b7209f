"""Exact Hamming search in NumPy, for so little work that loading the kernels would take longer.

The results are those of `scan`, to the last tie.
"""

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute import kernels
from auxhash.search.index.scan import Distances, Planes, Positions

WORK = 1 << 26  # bytes to compare, which takes about as long here as loading Numba
CALLS = 4096  # codes that are compared in the time of NumPy's calls for one query

_left = WORK


def suffices(n: int, n_bytes: int, n_queries: int) -> bool:
    """Whether a search of n codes is to be made here rather than by kernels.

    It is as long as no kernel was called, and all searches made here are little work together: a
    program that searches again and again loads the kernels when they would have paid.
    """
    global _left
    if kernels.loaded():
        return False
    _left -= n_queries * (n + CALLS) * n_bytes
    return _left >= 0


def nearest(planes: Planes, n: int, queries: Packed, k: int) -> tuple[Distances, Positions]:
    """As `scan.nearest`."""
    k = min(k, n)
    distances = np.empty((len(queries), k), np.int32)
    positions = np.empty((len(queries), k), np.int64)
    for q, query in enumerate(queries):
        found = _measure(planes, n, query)
        up_to = np.bincount(found).cumsum()
        near, where = _ordered(found, int(np.searchsorted(up_to, k)))
        distances[q], positions[q] = near[:k], where[:k]
    return distances, positions


def within(
    planes: Planes, n: int, queries: Packed, radius: int
) -> tuple[list[Distances], list[Positions]]:
    """As `scan.within`."""
    results = [_ordered(_measure(planes, n, query), radius) for query in queries]
    return [near for near, _ in results], [where for _, where in results]


def _measure(planes: Planes, n: int, query: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Distances (n,) of one query (n_bytes,)."""
    total = np.zeros(n, np.uint16)
    for plane, byte in zip(planes, query, strict=True):
        total += np.bitwise_count(plane[:n] ^ byte)
    return total


def _ordered(found: NDArray[np.uint16], radius: int) -> tuple[Distances, Positions]:
    """Those of the distances within `radius`, rising, and their positions, equal ones in order."""
    where = np.flatnonzero(found <= radius)
    order = np.argsort(found[where], kind="stable")
    where = where[order]
    return found[where].astype(np.int32), where.astype(np.int64, copy=False)
