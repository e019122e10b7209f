"""mAP as the scripts of most papers on deep hashing compute it, for comparison."""

import numpy as np

from auxhash.codes import as_packed, common_bits, unpack
from auxhash.compute import checks, context, threads
from auxhash.compute.arrays import ArrayLike
from auxhash.search.metrics.truth import Truth

QUERIES_PER_TASK = 64


def map_by_sort(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike,
    base_labels: ArrayLike,
    k: int | None = None,
    n_jobs: int | None = None,
) -> float:
    """mAP as the usual scripts of deep hashing compute it; for comparison with their tables only.

    It differs from `mean_average_precision` in three ways. Points at equal distance stay in the
    order that NumPy's default sort, which is not stable, leaves them in: it depends on the order of
    the base and on the machine. For k = None (-1 in those scripts) the last point of the ranking
    is dropped, as `ranking[0:-1]` does. And the sum of precisions is divided by the relevant points
    found among the k nearest, not by those that could have been.

    Codes are packed or +-1; labels (n,) or indicators (n, n_labels), as for the other measures.
    """
    n_bits = common_bits(query_codes=query_codes, base_codes=base_codes)
    query, base = (
        unpack(as_packed(codes, name, n_bits), n_bits).astype(np.float32)
        for name, codes in (("query_codes", query_codes), ("base_codes", base_codes))
    )
    if not (len(query) and len(base)):
        raise ValueError("query_codes and base_codes must hold at least one code each")
    kept = -1 if k is None else checks.integer("k", k, 1, len(base))
    truth = Truth(query_labels, base_labels, None, len(query), len(base))

    def summed(rows: slice) -> float:
        distance = np.float32(0.5) * (np.float32(n_bits) - query[rows] @ base.T)
        relevant = np.asarray(truth.relevant(rows)).astype(bool)
        return sum(
            _average_precision(good[np.argsort(own)][:kept])
            for own, good in zip(distance, relevant, strict=True)
        )

    with context.using(n_jobs=n_jobs), threads.pool() as run:
        return float(sum(run(summed, threads.chunks(len(query), QUERIES_PER_TASK))) / len(query))


def _average_precision(ranking: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """Return the mean precision at the ranks of relevant points; 0 where there are none."""
    ranks = np.flatnonzero(ranking) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0
