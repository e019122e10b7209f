"""Retrieval measured from one histogram of Hamming distances a query.

Codes tie heavily, and the order of ties is arbitrary: every measure here is, by default, its
expected value over all orders of the ties, exactly and with no sorting; `ties="index"` keeps ties
in the order of the base instead. The base points at distance d of a query are a bucket of n
points, r of them relevant, behind N nearer points, H of them relevant. In a random order:

- the first k points hold, of a bucket that they cut, (k - N) r / n relevant ones;
- the point at place j = 1..n of the bucket is relevant with probability r / n, and then has
  (j - 1) a relevant ones before it in the bucket, a = (r - 1) / (n - 1). So the places 1..m add

      (r / n) sum_j (H + 1 + (j - 1) a) / (N + j)
          = (r / n) (a m + (H + 1 - a (N + 1)) (h(N + m) - h(N)))

  to the sum of average precision, with harmonic numbers h. All buckets have m = n, but the one
  that rank K cuts, which has m = K - N.

What is relevant to a query comes by label, query_labels and base_labels of shape (n,) or
indicators (n, n_labels) where one shared label is enough, or as `neighbors` (n_queries, K), the
positions in the base of the query's nearest neighbours in the original space. A query without any
relevant point counts as 0 everywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from auxhash import checks
from auxhash.codes import Packed, as_packed, common_bits, to_words
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.metrics.evaluation import Evaluation
from auxhash.metrics.tally import Counts, Tally, Ties, take

DivideBy = Literal["possible", "relevant", "found"]

MOST_SEPARATE = 64  # ranks that are looked at one by one

__all__ = [
    "Evaluation",
    "bit_balance",
    "bit_correlation",
    "code_utilization",
    "distance_histogram",
    "evaluate",
    "mean_average_precision",
    "precision_at_k",
    "precision_recall_by_radius",
    "recall_at_k",
    "utilization_bound",
]


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
) -> float: ...


@overload
def precision_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: Sequence[int] | NDArray[Any] | None = ...,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
) -> Array: ...


def precision_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: int | Sequence[int] | NDArray[Any] | None = 100,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
) -> float | Array:
    """Mean share of relevant points among the k nearest, in Hamming distance.

    k is one number (the result is a float), several (an array), or None: all of 1..n_base.
    """
    tally = take(
        query_codes,
        base_codes,
        query_labels,
        base_labels,
        neighbors,
        ties=ties,
        n_jobs=n_jobs,
    )
    values = _precision(tally, _ranks(k, tally.n_base))
    return float(values[0]) if isinstance(k, (int, np.integer)) else values


def recall_at_k(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    k: int | Sequence[int] | NDArray[Any] | None = 100,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    ties: Ties = "expected",
) -> float | Array:
    """Mean share of the relevant points that the k nearest hold; k as in precision_at_k."""
    tally = take(
        query_codes,
        base_codes,
        query_labels,
        base_labels,
        neighbors,
        ties=ties,
        n_jobs=n_jobs,
    )
    values = _recall(tally, _ranks(k, tally.n_base))
    return float(values[0]) if isinstance(k, (int, np.integer)) else values


def precision_recall_by_radius(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    n_bits: int | None = None,
) -> tuple[Array, Array]:
    """Mean precision and recall (n_bits + 1,) of what lies within Hamming radius 0..n_bits.

    Where nothing lies within a radius, the query's precision is 0, as the paper demands.
    """
    tally = take(
        query_codes,
        base_codes,
        query_labels,
        base_labels,
        neighbors,
        n_bits,
        n_jobs=n_jobs,
    )
    return _by_radius(tally)


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
) -> float:
    """Mean over the queries of the average precision (mAP) of the k nearest; None takes all.

    The precisions at the ranks of relevant points, up to k, are added and divided by the number
    of relevant points: all there are ("relevant"), as many as k places can hold ("possible": k or
    all, whichever is less), or those among the k nearest ("found", as much published code does).
    For k = None the three are one.
    """
    if divide_by not in ("possible", "relevant", "found"):
        raise ValueError(f'divide_by must be "possible", "relevant" or "found", got {divide_by!r}')
    n_base = len(np.asarray(base_codes))
    cut = n_base if k is None else int(_ranks(checks.whole("k", k, 1), n_base)[0])
    tally = take(
        query_codes,
        base_codes,
        query_labels,
        base_labels,
        neighbors,
        ties=ties,
        cuts=[cut],
        n_jobs=n_jobs,
    )
    return _mean_average_precision(tally, cut, divide_by)


def distance_histogram(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    n_jobs: int | None = None,
    *,
    neighbors: ArrayLike | None = None,
    n_bits: int | None = None,
) -> tuple[Counts, Counts]:
    """How many base points, and how many relevant ones, lie at each distance of each query.

    Both of shape (n_queries, n_bits + 1).
    """
    tally = take(
        query_codes, base_codes, query_labels, base_labels, neighbors, n_bits, n_jobs=n_jobs
    )
    return tally.found, tally.hits


def code_utilization(codes: ArrayLike) -> float:
    """Effective number of bits b_eff: the entropy, in bits, of the codes' distribution.

    At most min(n_bits, log2 n), see `utilization_bound`; a code of which all points are alike
    has 0.
    """
    words = to_words(_some(as_packed(codes)))
    whole = words[:, 0] if words.shape[1] == 1 else words.view(f"V{8 * words.shape[1]}").ravel()
    _, counts = np.unique(whole, return_counts=True)
    share = counts / len(words)
    return float(abs((share * np.log2(share)).sum()))


def utilization_bound(n_bits: int, n: int) -> float:
    """What code_utilization cannot exceed for n codes of n_bits bits."""
    n_bits, n = checks.whole("n_bits", n_bits, 1), checks.whole("n", n, 1)
    return float(min(n_bits, np.log2(n)))


def bit_balance(codes: ArrayLike, n_bits: int | None = None) -> Array:
    """Share of the codes (n_bits,) in which each bit is +1; 1/2 is balanced."""
    share: Array = _bits(codes, n_bits).mean(axis=0)
    return share


def bit_correlation(
    codes: ArrayLike, n_bits: int | None = None, n_jobs: int | None = None
) -> Array:
    """Correlations (n_bits, n_bits) of the bits; a bit that is constant has 0 with all others."""
    bits = _bits(codes, n_bits)

    def count(rows: slice) -> NDArray[np.float32]:
        some = bits[rows].astype(np.float32)  # counts, exact up to 2^24
        both: NDArray[np.float32] = some.T @ some
        return both

    with threads.pool(n_jobs) as run:
        both = np.sum(run(count, threads.chunks(len(bits), 1 << 13)), axis=0, dtype=np.float64)
    n, ones = len(bits), np.diag(both)
    spread = np.sqrt(ones * (n - ones))  # n times the standard deviation, of whole numbers
    scale = np.outer(spread, spread)
    correlation = _ratio(n * both - np.outer(ones, ones), scale)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def evaluate(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    *,
    neighbors: ArrayLike | None = None,
    k: int | Sequence[int] | NDArray[Any] | None = (1, 10, 100, 1000),
    n_bits: int | None = None,
    ties: Ties = "expected",
    divide_by: DivideBy = "possible",
    protocol: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Every measure from one pass, in an object that tells how it was measured.

    Args:
        k: ranks; those beyond the base are left out, and None takes all of 1..n_base. mAP at k
            is given for up to 64 ranks.
        n_bits: bits of packed codes that are used; all, by default.
        protocol: what the numbers need to be compared: data_set, split, overlap (of base and
            training points), seed, and whatever else. What is missing is shown as "not given".
    """
    n_base = len(np.asarray(base_codes))
    ranks = _ranks(k, n_base, drop=True)
    few = len(ranks) <= MOST_SEPARATE
    tally = take(
        query_codes,
        base_codes,
        query_labels,
        base_labels,
        neighbors,
        n_bits,
        ties,
        np.union1d(ranks, [n_base]) if few else [n_base],
        n_jobs,
    )
    n_bits = tally.found.shape[1] - 1
    correlation = np.abs(bit_correlation(base_codes, n_bits, n_jobs))[~np.eye(n_bits, dtype=bool)]
    radius_precision, radius_recall = _by_radius(tally)
    return Evaluation(
        k=ranks,
        precision=_precision(tally, ranks),
        recall=_recall(tally, ranks),
        average_precision=np.array(
            [_mean_average_precision(tally, int(cut), divide_by) for cut in ranks]
        )
        if few
        else None,
        mean_average_precision=_mean_average_precision(tally, n_base, divide_by),
        radius_precision=radius_precision,
        radius_recall=radius_recall,
        retrieved=np.cumsum(tally.found, axis=1).mean(axis=0),
        utilization=code_utilization(base_codes),
        utilization_bound=utilization_bound(n_bits, n_base),
        balance=bit_balance(base_codes, n_bits),
        correlation=float(correlation.mean()) if correlation.size else 0.0,
        protocol={
            **dict.fromkeys(("data_set", "split", "overlap", "seed"), "not given"),
            **(protocol or {}),
            "ground_truth": tally.rule,
            "n_queries": len(tally.found),
            "n_base": n_base,
            "n_bits": n_bits,
            "without_relevant": int((tally.relevant == 0).sum()),
            "ties": ties,
            "average_precision_over": divide_by,
        },
    )


# The measures of one tally.


def _precision(tally: Tally, ranks: Counts) -> Array:
    return _hits(tally, ranks, np.ones(len(tally.found))) / (ranks * len(tally.found))


def _recall(tally: Tally, ranks: Counts) -> Array:
    return _hits(tally, ranks, _ratio(1.0, tally.relevant)) / len(tally.found)


def _hits(tally: Tally, ranks: Counts, weight: Array) -> Array:
    """Relevant points among the first `ranks`, summed over the queries with weights 1 or 1/R."""
    if tally.walk is not None:
        at = tally.walk.hits if (weight == 1).all() else tally.walk.gains
        summed: Array = np.cumsum(at)[ranks - 1].astype(np.float64)
        return summed
    share = _share(tally)
    before = tally.before
    if len(ranks) <= MOST_SEPARATE:
        wanted = (np.clip(rank - before, 0, tally.found) for rank in ranks)
        return np.array([weight @ (some * share).sum(axis=1) for some in wanted])
    # Hits rise by r / n a place inside a bucket: add up where the slope changes.
    change, places = (weight[:, None] * share).ravel(), tally.n_base + 1
    slope = np.zeros(places)
    slope += np.bincount(before.ravel(), change, places)
    slope -= np.bincount((before + tally.found).ravel(), change, places)
    curve: Array = np.cumsum(np.cumsum(slope[:-1]))[ranks - 1]
    return curve


def _share(tally: Tally) -> Array:
    """r / n of every bucket, 0 for an empty one."""
    return _ratio(tally.hits, tally.found)


def _by_radius(tally: Tally) -> tuple[Array, Array]:
    found, hits = np.cumsum(tally.found, axis=1), np.cumsum(tally.hits, axis=1)
    precision: Array = _ratio(hits, found).mean(axis=0)
    recall: Array = _ratio(hits, tally.relevant[:, None]).mean(axis=0)
    return precision, recall


def _mean_average_precision(tally: Tally, cut: int, divide_by: DivideBy) -> float:
    relevant = tally.relevant
    over = np.minimum(relevant, cut) if divide_by == "possible" else relevant
    whole = cut >= tally.n_base
    if tally.walk is not None:
        column = int(np.flatnonzero(tally.cuts == cut)[0])
        sums = tally.walk.precisions[:, column]
        if divide_by == "found":
            over = tally.walk.seen[:, column]
    elif divide_by == "found" and not whole:
        return float(np.mean([_average_over_found(tally, q, cut) for q in range(len(relevant))]))
    else:
        sums = _precision_sums(tally, cut).sum(axis=1)
    return float(_ratio(sums, over).mean())


def _precision_sums(tally: Tally, cut: int) -> Array:
    """What each bucket (n_queries, n_bits + 1) adds to the sum of average precision, expected."""
    n, r, N = tally.found, tally.hits, tally.before
    H = np.cumsum(r, axis=1) - r
    m = np.clip(cut - N, 0, n)
    a = _ratio(r - 1, n - 1)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, tally.n_base + 1))])
    rise = harmonic[N + m] - harmonic[N]
    sums: Array = _share(tally) * (a * m + (H + 1 - a * (N + 1)) * rise)
    return sums


def _average_over_found(tally: Tally, q: int, cut: int) -> float:
    """Expected average precision of one query over the relevant points found up to the cut.

    Their number is random where the cut goes through a bucket: x of its r relevant points come to
    lie in its first m places with hypergeometric probability. Given x, those m places are a
    bucket of their own, and what comes before does not depend on x.
    """
    n, r = tally.found[q], tally.hits[q]
    before = np.cumsum(n) - n
    d = int(np.flatnonzero((before < cut) & (n > 0))[-1])  # the bucket of rank `cut`
    N, H, m = before[d], r[:d].sum(), cut - before[d]
    one = Tally(n[None], r[None], tally.n_base, tally.rule, None, tally.cuts)
    whole = _precision_sums(one, cut)[0, :d].sum()
    x = np.arange(max(0, m - (n[d] - r[d])), min(r[d], m) + 1)
    chance = np.exp(_choose(r[d], x) + _choose(n[d] - r[d], m - x) - _choose(n[d], m))
    a = (x - 1) / max(1, m - 1)
    rise = (1 / np.arange(N + 1, cut + 1)).sum()
    sums = whole + (x / m) * (a * m + (H + 1 - a * (N + 1)) * rise)
    return float(chance @ _ratio(sums, H + x))


def _choose(n: Any, k: Any) -> Any:
    """Logarithm of the binomial coefficient."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _ratio(part: Any, counts: NDArray[Any]) -> Array:
    """part / counts, and 0 where the count is 0."""
    shape = np.broadcast_shapes(np.shape(part), counts.shape)
    ratio: Array = np.divide(part, counts, out=np.zeros(shape), where=counts > 0)
    return ratio


def _ranks(k: int | Sequence[int] | NDArray[Any] | None, n_base: int, drop: bool = False) -> Counts:
    """Rising ranks; `drop` leaves out those beyond the base instead of refusing them."""
    if k is None:
        return np.arange(1, n_base + 1)
    ranks = np.atleast_1d(np.asarray(k))
    if ranks.ndim != 1 or not len(ranks) or not np.issubdtype(ranks.dtype, np.integer):
        raise ValueError(f"k must be a whole number, several, or None (all); got {k!r}")
    if drop:
        ranks = np.unique(ranks)[: np.searchsorted(np.unique(ranks), n_base, side="right")]
    if not (len(ranks) and ranks.min() >= 1 and ranks.max() <= n_base):
        raise ValueError(f"k must be between 1 and {n_base}, the number of base points; got {k!r}")
    return ranks.astype(np.int64)


def _bits(codes: ArrayLike, n_bits: int | None) -> NDArray[np.uint8]:
    """0 and 1, (n, n_bits)."""
    n_bits = common_bits(codes=codes) if n_bits is None else n_bits
    packed = _some(as_packed(codes, n_bits=n_bits))
    return np.unpackbits(packed, axis=1, count=n_bits, bitorder="little")


def _some(packed: Packed) -> Packed:
    if not len(packed):
        raise ValueError("codes must hold at least one code")
    return packed
