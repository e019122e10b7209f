"""Retrieval measured from one histogram of Hamming distances a query.

Codes tie heavily, and the order of ties is arbitrary: every measure here is its expected value
over all orders of the ties, exactly, with no sorting.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from auxhash import threads
from auxhash.codes import as_packed, popcount, to_words

Array = NDArray[np.float64]

CHUNK = 32  # queries


def precision_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike,
    base_labels: ArrayLike,
    k: int = 100,
    n_jobs: int | None = None,
) -> float:
    """Mean share of the k nearest base points, in Hamming distance, that share the query's label.

    Codes are packed uint8 or +-1; labels are (n,) or binary indicators (n, n_labels), where
    sharing one label is enough. Where the k-th nearest ties with others, the expected value over
    all orders of the ties.
    """
    found, hits = distance_histogram(
        query_codes, base_codes, query_labels, base_labels, n_jobs=n_jobs
    )
    n_base = int(found[0].sum()) if len(found) else 0
    if not 1 <= k <= n_base:
        raise ValueError(f"k must be between 1 and {n_base}, the number of base points; got {k}")
    before = np.cumsum(found, axis=1) - found  # points nearer than d
    wanted = np.clip(k - before, 0, found)  # of those at distance d
    share = np.divide(hits, found, out=np.zeros(found.shape), where=found > 0)
    return float((wanted * share).sum(axis=1).mean() / k)


def distance_histogram(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike,
    base_labels: ArrayLike,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many base points, and how many relevant ones, lie at each distance of each query.

    Both of shape (n_queries, 8 n_bytes + 1).
    """
    query, base = as_packed(query_codes, "query_codes"), as_packed(base_codes, "base_codes")
    if query.shape[1] != base.shape[1]:
        raise ValueError(
            f"query_codes have {query.shape[1]} bytes a code, base_codes {base.shape[1]}"
        )
    query_sets, base_sets = _label_sets(query_labels, base_labels)
    for name, codes, labels in (("query", query, query_sets), ("base", base, base_sets)):
        if len(codes) != len(labels):
            raise ValueError(f"{len(codes)} {name}_codes do not fit {len(labels)} {name}_labels")
    query_words, base_words = to_words(query), to_words(base)
    n_bins = 8 * query.shape[1] + 1
    found = np.zeros((len(query), n_bins), np.int64)
    hits = np.zeros((len(query), n_bins), np.int64)

    def count(rows: slice) -> None:
        _histogram(
            query_words[rows], base_words, query_sets[rows], base_sets, found[rows], hits[rows]
        )

    with threads.pool(n_jobs) as run:
        run(count, threads.chunks(len(query), CHUNK))
    return found, hits


def _label_sets(
    query_labels: ArrayLike, base_labels: ArrayLike
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Labels as sets of bits (n, n_words): relevant where two sets meet."""
    query, base = np.asarray(query_labels), np.asarray(base_labels)
    if query.ndim != base.ndim or query.ndim not in (1, 2):
        raise ValueError("query_labels and base_labels must both be (n,) or both (n, n_labels)")
    if query.ndim == 1:
        _, number = np.unique(np.concatenate([query, base]), return_inverse=True)
        member = np.zeros((len(number), int(number.max(initial=0)) + 1), bool)
        member[np.arange(len(number)), number] = True
        query, base = member[: len(query)], member[len(query) :]
    elif query.shape[1] != base.shape[1]:
        raise ValueError(f"{query.shape[1]} query labels against {base.shape[1]} base labels")
    sets = (np.packbits(labels.astype(bool), axis=1) for labels in (query, base))
    query_sets, base_sets = (to_words(packed) for packed in sets)
    return query_sets, base_sets


@njit(cache=True, nogil=True)
def _histogram(
    query: Any, base: Any, query_sets: Any, base_sets: Any, found: Any, hits: Any
) -> None:
    for q in range(len(query)):
        for m in range(len(base)):
            d = np.uint64(0)
            for w in range(base.shape[1]):
                d += popcount(query[q, w] ^ base[m, w])
            relevant = np.uint64(0)
            for w in range(base_sets.shape[1]):
                relevant |= query_sets[q, w] & base_sets[m, w]
            found[q, d] += 1
            hits[q, d] += relevant != 0
