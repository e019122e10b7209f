"""Exact search in NumPy, for small searches, where loading the kernels would take longer.

The results are those of `scan` and `tablescan`, ties included.
"""

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute import kernels
from auxhash.search.index.scan import Distances, Planes, Positions
from auxhash.search.index.tables import TableDistances, Tables, table_distances

MAX_NUMPY_BYTES = 1 << 26  # compared here in about the time of loading Numba
CODES_PER_CALL = 4096  # compared in the time that NumPy's calls for one query take

_bytes_left = MAX_NUMPY_BYTES


def suffices(n: int, n_bytes: int, n_queries: int) -> bool:
    """Return True if n codes are to be searched here rather than by kernels.

    True as long as no kernel was called, and all searches so far compared few bytes together: a
    program that searches again and again loads the kernels when they would have paid.
    """
    global _bytes_left
    if kernels.loaded():
        return False
    _bytes_left -= n_queries * (n + CODES_PER_CALL) * n_bytes
    return _bytes_left >= 0


def nearest(planes: Planes, n: int, queries: Packed, k: int) -> tuple[Distances, Positions]:
    """Return the results of `scan.nearest`."""
    k = min(k, n)
    distances = np.empty((len(queries), k), np.int32)
    positions = np.empty((len(queries), k), np.int64)
    for q, query in enumerate(queries):
        all_distances = _measure(planes, n, query)
        up_to = np.bincount(all_distances).cumsum()
        near, where = _ordered(all_distances, int(np.searchsorted(up_to, k)))
        distances[q], positions[q] = near[:k], where[:k]
    return distances, positions


def within(
    planes: Planes, n: int, queries: Packed, radius: int
) -> tuple[list[Distances], list[Positions]]:
    """Return the results of `scan.within`."""
    results = [_ordered(_measure(planes, n, query), radius) for query in queries]
    return [near for near, _ in results], [where for _, where in results]


def nearest_by_tables(
    planes: Planes, n: int, tables: Tables, k: int
) -> tuple[TableDistances, Positions]:
    """Return the results of `tablescan.nearest`."""
    k = min(k, n)
    distances = np.empty((len(tables), k), np.float32)
    positions = np.empty((len(tables), k), np.int64)
    for q, table in enumerate(tables):
        total = np.zeros(n, np.float32)
        for plane, values in zip(planes, table, strict=True):
            total += values[plane[:n]]
        where = np.flatnonzero(total <= np.partition(total, k - 1)[k - 1])
        positions[q] = where[np.argsort(total[where], kind="stable")[:k]]
        distances[q] = total[positions[q]]
    return distances, positions


def nearest_own(
    codes: Packed, tables: Tables, present: NDArray[np.bool_], k: int
) -> tuple[TableDistances, Positions]:
    """Return the results of `tablescan.nearest_own`."""
    measured = table_distances(tables, np.arange(len(tables))[:, None], codes)
    measured[~present] = np.inf
    order = np.argsort(measured, axis=1, kind="stable")[:, :k]
    near = np.take_along_axis(measured, order, axis=1)
    return near, np.where(np.isinf(near), -1, order)


def _measure(planes: Planes, n: int, query: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return the distances (n,) of one query (n_bytes,)."""
    total = np.zeros(n, np.uint16)
    for plane, byte in zip(planes, query, strict=True):
        total += np.bitwise_count(plane[:n] ^ byte)
    return total


def _ordered(distances: NDArray[np.uint16], radius: int) -> tuple[Distances, Positions]:
    """Return the distances within `radius`, rising, and their positions; ties by position."""
    where = np.flatnonzero(distances <= radius)
    order = np.argsort(distances[where], kind="stable")
    where = where[order]
    return distances[where].astype(np.int32), where.astype(np.int64, copy=False)
