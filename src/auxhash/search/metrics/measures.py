"""Retrieval metrics, from one histogram of Hamming distances per query.

Many codes tie, and the order of ties is arbitrary: by default, every measure is its exact expected
value over all orders of the ties, computed without sorting (`counted` has the formulas);
`ties="index"` keeps ties in the order of the base instead.

Which points are relevant to a query is given by labels or by neighbours. query_labels and
base_labels are of shape (n,), or indicators (n, n_labels), where one shared label is enough;
`neighbors` (n_queries, K) are the positions in the base of the query's nearest neighbours in the
original space. A query without any relevant point counts as 0 in every measure.

`device="cuda"` counts on a GPU (see `MACHash`): codes of up to 511 bits, ties by expectation.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import get_args, overload

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, as_packed, common_bits, to_words
from auxhash.compute import checks, context, threads
from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Single
from auxhash.compute.device import DeviceName
from auxhash.search.metrics import counted
from auxhash.search.metrics.counted import MAX_SEPARATE_RANKS, DivideBy
from auxhash.search.metrics.evaluation import Evaluation
from auxhash.search.metrics.tally import Tally, Ties, take
from auxhash.search.metrics.truth import Counts

Ranks = int | Sequence[int] | AnyArray | None

CODES_PER_TASK = 1 << 13


@overload
def precision_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: int = 100,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
    device: DeviceName = "cpu",
) -> float: ...


@overload
def precision_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: Sequence[int] | AnyArray | None = ...,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
    device: DeviceName = "cpu",
) -> Array: ...


def precision_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: Ranks = 100,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
    device: DeviceName = "cpu",
) -> float | Array:
    """Mean share of relevant points among the k nearest in Hamming distance.

    k is one number (the result is a float), several (an array), or None for all of 1..n_base.
    """
    truth = query_labels, base_labels, neighbors
    with context.using(n_jobs=n_jobs):
        tally = take(query_codes, base_codes, *truth, device, ties=ties)
    return _at(k, tally, counted.precision)


def recall_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: Ranks = 100,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
    device: DeviceName = "cpu",
) -> float | Array:
    """Mean share of the relevant points that are among the k nearest; k as in precision_at_k."""
    truth = query_labels, base_labels, neighbors
    with context.using(n_jobs=n_jobs):
        tally = take(query_codes, base_codes, *truth, device, ties=ties)
    return _at(k, tally, counted.recall)


def precision_recall_by_radius(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    n_bits: int | None = None,
    device: DeviceName = "cpu",
) -> tuple[Array, Array]:
    """Mean precision and recall (n_bits + 1,) of the points within Hamming radius 0..n_bits.

    Where no point lies within a radius, the query's precision is 0, as the paper demands.
    """
    truth = query_labels, base_labels, neighbors
    with context.using(n_jobs=n_jobs):
        tally = take(query_codes, base_codes, *truth, device, n_bits)
    return counted.by_radius(tally)


def mean_average_precision(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: int | None = None,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
    divide_by: DivideBy = "possible",
    device: DeviceName = "cpu",
) -> float:
    """Mean over the queries of the average precision (mAP) of the k nearest; None takes all.

    Average precision is the sum of the precisions at the ranks of relevant points, up to k, divided
    by the number of relevant points: all ("relevant"), k or all, whichever is less ("possible"),
    or those among the k nearest ("found", as much published code does). For k = None the three
    are the same.
    """
    checks.one_of("divide_by", divide_by, get_args(DivideBy))
    n_base = len(np.asarray(base_codes))
    cut = n_base if k is None else int(_ranks(checks.integer("k", k, 1), n_base)[0])
    truth = query_labels, base_labels, neighbors
    with context.using(n_jobs=n_jobs):
        tally = take(query_codes, base_codes, *truth, device, ties=ties, cuts=[cut])
    return counted.average_precision(tally, cut, divide_by)


def distance_histogram(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    n_bits: int | None = None,
    device: DeviceName = "cpu",
) -> tuple[Counts, Counts]:
    """Number of base points, and of relevant ones, at each distance from each query.

    Both are of shape (n_queries, n_bits + 1).
    """
    truth = query_labels, base_labels, neighbors
    with context.using(n_jobs=n_jobs):
        tally = take(query_codes, base_codes, *truth, device, n_bits)
    return tally.points, tally.hits


def code_utilization(codes: ArrayLike) -> float:
    """Effective number of bits b_eff: the entropy, in bits, of the codes' distribution.

    It is at most min(n_bits, log2 n), see `utilization_bound`, and 0 where all codes are equal
    (the paper's appendix A, "Comparison using code utilization").
    """
    words = to_words(_check_any(as_packed(codes)))
    flat = words[:, 0] if words.shape[1] == 1 else words.view(f"V{8 * words.shape[1]}").ravel()
    _, counts = np.unique(flat, return_counts=True)
    share = counts / len(words)
    return float(abs((share * np.log2(share)).sum()))


def utilization_bound(n_bits: int, n: int) -> float:
    """Return the largest possible code_utilization of n codes of n_bits bits."""
    n_bits, n = checks.integer("n_bits", n_bits, 1), checks.integer("n", n, 1)
    return float(min(n_bits, np.log2(n)))


def bit_balance(codes: ArrayLike, n_bits: int | None = None) -> Array:
    """Per bit (n_bits,), the share of the codes in which it is +1; 1/2 is balanced."""
    share: Array = _bits(codes, n_bits).mean(axis=0)
    return share


def bit_correlation(
    codes: ArrayLike, n_bits: int | None = None, n_jobs: int | None = None
) -> Array:
    """Correlations (n_bits, n_bits) of the bits; 0 between a constant bit and any other."""
    bits = _bits(codes, n_bits)

    def count(rows: slice) -> Single:
        ones = bits[rows].astype(np.float32)  # counts are exact up to 2^24
        return ones.T @ ones

    with context.using(n_jobs=n_jobs), threads.pool() as run:
        parts = run(count, threads.chunks(len(bits), CODES_PER_TASK))
    both = np.sum(parts, axis=0, dtype=np.float64)
    n, ones = len(bits), np.diag(both)
    spread = np.sqrt(ones * (n - ones))  # n times the standard deviation, from whole numbers
    scale = np.outer(spread, spread)
    correlation = counted.ratio(n * both - np.outer(ones, ones), scale)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def evaluate(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    *,
    neighbors: ArrayLike | None = None,
    k: Ranks = (1, 10, 100, 1000),
    n_bits: int | None = None,
    ties: Ties = "expected",
    divide_by: DivideBy = "possible",
    protocol: Mapping[str, object] | None = None,
    n_jobs: int | None = None,
    device: DeviceName = "cpu",
) -> Evaluation:
    """Compute all measures in one pass, in an `Evaluation` that also says how they were measured.

    Args:
        k: ranks; those beyond the base are left out, and None takes all of 1..n_base. mAP at k
            is computed for up to 64 ranks.
        n_bits: number of bits used of packed codes; all, by default.
        protocol: what is needed to compare the numbers: data_set, split, overlap (of base and
            training points), seed, and anything else. Of the four, missing ones are "not given".
    """
    checks.one_of("divide_by", divide_by, get_args(DivideBy))
    n_base = len(np.asarray(base_codes))
    ranks = _ranks(k, n_base, drop=True)
    few = len(ranks) <= MAX_SEPARATE_RANKS
    truth = query_labels, base_labels, neighbors
    cuts = np.union1d(ranks, [n_base]) if few else [n_base]
    with context.using(n_jobs=n_jobs):
        tally = take(query_codes, base_codes, *truth, device, n_bits, ties, cuts)
        n_bits = tally.points.shape[1] - 1
        correlation = np.abs(bit_correlation(base_codes, n_bits))[~np.eye(n_bits, dtype=bool)]
    radius_precision, radius_recall = counted.by_radius(tally)
    return Evaluation(
        k=ranks,
        precision=counted.precision(tally, ranks),
        recall=counted.recall(tally, ranks),
        average_precision=np.array(
            [counted.average_precision(tally, int(cut), divide_by) for cut in ranks]
        )
        if few
        else None,
        mean_average_precision=counted.average_precision(tally, n_base, divide_by),
        radius_precision=radius_precision,
        radius_recall=radius_recall,
        retrieved=np.cumsum(tally.points, axis=1).mean(axis=0),
        utilization=code_utilization(base_codes),
        utilization_bound=utilization_bound(n_bits, n_base),
        balance=bit_balance(base_codes, n_bits),
        correlation=float(correlation.mean()) if correlation.size else 0.0,
        protocol={
            **dict.fromkeys(("data_set", "split", "overlap", "seed"), "not given"),
            **(protocol or {}),
            "ground_truth": tally.rule,
            "n_queries": len(tally.points),
            "n_base": n_base,
            "n_bits": n_bits,
            "without_relevant": int((tally.relevant == 0).sum()),
            "ties": ties,
            "average_precision_over": divide_by,
        },
    )


def _at(k: Ranks, tally: Tally, measure: Callable[[Tally, Counts], Array]) -> float | Array:
    values = measure(tally, _ranks(k, tally.n_base))
    return float(values[0]) if isinstance(k, (int, np.integer)) else values


def _ranks(k: Ranks, n_base: int, drop: bool = False) -> Counts:
    """Return k as an array of ranks; `drop` sorts them and leaves out those beyond the base."""
    if k is None:
        return np.arange(1, n_base + 1)
    ranks = np.atleast_1d(np.asarray(k))
    if ranks.ndim != 1 or not len(ranks) or not np.issubdtype(ranks.dtype, np.integer):
        raise ValueError(f"k must be a whole number, several, or None (all); got {k!r}")
    if drop:
        ranks = np.unique(ranks[ranks <= n_base])
    if not (len(ranks) and ranks.min() >= 1 and ranks.max() <= n_base):
        raise ValueError(f"k must be between 1 and {n_base}, the number of base points; got {k!r}")
    return ranks.astype(np.int64)


def _bits(codes: ArrayLike, n_bits: int | None) -> NDArray[np.uint8]:
    """Return the codes as bits 0 and 1, (n, n_bits)."""
    n_bits = common_bits(codes=codes) if n_bits is None else n_bits
    packed = _check_any(as_packed(codes, n_bits=n_bits))
    return np.unpackbits(packed, axis=1, count=n_bits, bitorder="little")


def _check_any(packed: Packed) -> Packed:
    """Return the codes; ValueError if there are none."""
    if not len(packed):
        raise ValueError("codes must hold at least one code")
    return packed
