"""Approximate nearest neighbours of feature vectors among themselves, by faiss.

For more points than exact search can take, whose time grows with the square of their number. faiss
puts each point into the list of its nearest centre, and searches the lists nearest to each point.
The few points whose lists hold too few others get their exact neighbours.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.affinity.neighbors import Metric, nearest, normalized, scale
from auxhash.compute import threads
from auxhash.compute.faiss import import_faiss

MOST_EXACT = 300_000  # points whose exact neighbours are found in a reasonable time
PROBED = 32  # lists searched for each point
PER_LIST = 1000  # points in a list on average
LEARNT = 64  # points per list that the centres are learnt from
CHUNK = 65536  # points prepared and searched at a time


def near(X: NDArray[Any], k: int, metric: Metric, n_jobs: int | None = None) -> NDArray[np.int64]:
    """Row numbers (n, k) of the points nearest to each row of X; of many points, approximately."""
    if len(X) > MOST_EXACT:
        return nearest_approximately(X, k, metric, n_jobs)
    return nearest(X, k=k, metric=metric, n_jobs=n_jobs)[0]


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
        found = np.concatenate(
            [
                _without(np.arange(rows.start, rows.stop), index.search(prepared(rows), k + 1)[1])
                for rows in threads.chunks(len(X), CHUNK)
            ]
        )
    finally:
        faiss.omp_set_num_threads(before)
    short = np.flatnonzero(found.min(axis=1) < 0)
    if len(short):
        found[short] = _without(short, nearest(X, X[short], k + 1, metric, n_jobs)[0])
    return found


def _n_lists(n: int) -> int:
    return max(1, n // PER_LIST)


def _without(own: NDArray[np.int64], found: NDArray[np.int64]) -> NDArray[np.int64]:
    """The k nearest of each row, of the k + 1 found, without its own; -1 is where none was found.

    Of points that are the same, k + 1 others may have been found: then the last is left out.
    """
    order = np.argsort((found == own[:, None]) | (found < 0), axis=1, kind="stable")
    kept = np.take_along_axis(found, order, axis=1)[:, :-1]
    return np.where(kept == own[:, None], -1, kept)
