"""Approximate nearest neighbours of feature vectors among themselves, by faiss.

For more points than exact search can take, whose time grows with the square of their number. faiss
puts each point into the list of its nearest centre, and searches the lists nearest to each point.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.affinity.neighbors import Metric, normalized, scale
from auxhash.compute import threads
from auxhash.index.hamming import import_faiss

PROBED = 32  # lists searched for each point
PER_LIST = 1000  # points in a list on average
LEARNT = 64  # points per list that the centres are learnt from
CHUNK = 65536  # points prepared and searched at a time


def nearest_approximately(
    X: NDArray[Any], k: int, metric: Metric, n_jobs: int | None = None
) -> NDArray[np.int64]:
    """Row numbers (n, k) of points near to each row of X, itself left out; most of them nearest.

    The same on any number of threads. ImportError where faiss is missing.
    """
    faiss = import_faiss()
    unit = 1.0 if metric == "cosine" else scale(X)

    def prepared(rows: slice) -> NDArray[np.float32]:
        points = normalized(X[rows]) if metric == "cosine" else np.asarray(X[rows]) / unit
        return np.ascontiguousarray(points, np.float32)

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads.count(n_jobs))
    try:
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], _n_lists(len(X)))
        step = max(1, len(X) // (LEARNT * index.nlist))
        index.train(np.concatenate([prepared(r)[::step] for r in threads.chunks(len(X), CHUNK)]))
        for rows in threads.chunks(len(X), CHUNK):
            index.add(prepared(rows))
        index.nprobe = min(PROBED, index.nlist)
        found = [
            _without_itself(index.search(prepared(rows), k + 1)[1], rows)
            for rows in threads.chunks(len(X), CHUNK)
        ]
    finally:
        faiss.omp_set_num_threads(before)
    return np.concatenate(found)


def _n_lists(n: int) -> int:
    return max(1, n // PER_LIST)


def _without_itself(found: NDArray[np.int64], rows: slice) -> NDArray[np.int64]:
    """The k nearest of each row, of k + 1 found, without the row; -1 is where none was found."""
    own = np.arange(rows.start, rows.stop)[:, None]
    order = np.argsort((found == own) | (found < 0), axis=1, kind="stable")
    kept = np.take_along_axis(found, order, axis=1)[:, :-1]
    # Where the lists held too few, the nearest stands in for those that are missing.
    near: NDArray[np.int64] = np.where((kept < 0) | (kept == own), kept[:, :1], kept)
    return near
