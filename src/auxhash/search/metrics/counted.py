"""Measures computed from the counts of one tally, with ties counted by their exact expectation.

The base points at distance d from a query are a bucket of n points, r of them relevant, behind N
nearer points, H of them relevant. In a random order of the ties, expected values are:

- where rank k lies in the bucket, the first k points hold (k - N) r / n of its relevant points;
- the point at place j = 1..n of the bucket is relevant with probability r / n; before it the bucket
  then has a (j - 1) relevant points, a = (r - 1) / (n - 1). So the places 1..m add

      (r / n) sum_j (H + 1 + (j - 1) a) / (N + j)
          = (r / n) (a m + (H + 1 - a (N + 1)) (h(N + m) - h(N)))

  to the sum of average precision, with harmonic numbers h. Up to rank K, a bucket before K has
  m = n, the bucket that K cuts has m = K - N, and buckets beyond it have m = 0.
"""

from typing import Literal

import numpy as np

from auxhash.compute.arrays import AnyArray, Array, ArrayLike
from auxhash.search.metrics.tally import Tally
from auxhash.search.metrics.truth import Counts

DivideBy = Literal["possible", "relevant", "found"]

MAX_SEPARATE_RANKS = 64  # computed one by one; more are read off the curve over all ranks


def precision(tally: Tally, ranks: Counts) -> Array:
    """Return the mean precision at each rank."""
    return _hits(tally, ranks, np.ones(len(tally.points))) / (ranks * len(tally.points))


def recall(tally: Tally, ranks: Counts) -> Array:
    """Return the mean recall at each rank."""
    return _hits(tally, ranks, ratio(1.0, tally.relevant)) / len(tally.points)


def _hits(tally: Tally, ranks: Counts, weight: Array) -> Array:
    """Return relevant points up to each rank, summed over the queries with weights 1 or 1/R."""
    if tally.walk is not None:
        at = tally.walk.hits if (weight == 1).all() else tally.walk.gains
        return np.cumsum(at)[ranks - 1].astype(np.float64)
    share = _share(tally)
    before = tally.before
    if len(ranks) <= MAX_SEPARATE_RANKS:
        wanted = (np.clip(rank - before, 0, tally.points) for rank in ranks)
        return np.array([weight @ (taken * share).sum(axis=1) for taken in wanted])
    # Inside a bucket, hits rise by r / n per place: sum up the changes of this slope.
    change, places = (weight[:, None] * share).ravel(), tally.n_base + 1
    slope = np.zeros(places)
    slope += np.bincount(before.ravel(), change, places)
    slope -= np.bincount((before + tally.points).ravel(), change, places)
    return np.cumsum(np.cumsum(slope[:-1]))[ranks - 1]


def _share(tally: Tally) -> Array:
    """Return r / n of every bucket, 0 for an empty one."""
    return ratio(tally.hits, tally.points)


def by_radius(tally: Tally) -> tuple[Array, Array]:
    """Return mean precision and recall within each radius 0..n_bits."""
    points, hits = np.cumsum(tally.points, axis=1), np.cumsum(tally.hits, axis=1)
    within: Array = ratio(hits, points).mean(axis=0)
    reached: Array = ratio(hits, tally.relevant[:, None]).mean(axis=0)
    return within, reached


def average_precision(tally: Tally, cut: int, divide_by: DivideBy) -> float:
    """Return the mean over the queries of the average precision (mAP) up to rank `cut`."""
    relevant = tally.relevant
    over = np.minimum(relevant, cut) if divide_by == "possible" else relevant
    if tally.walk is not None:
        column = int(np.flatnonzero(tally.cuts == cut)[0])
        sums = tally.walk.precisions[:, column]
        if divide_by == "found":
            over = tally.walk.seen[:, column]
    elif divide_by == "found" and cut < tally.n_base:
        return float(np.mean([_average_precision_at(tally, q, cut) for q in range(len(relevant))]))
    else:
        sums = _precision_sums(tally, cut).sum(axis=1)
    return float(ratio(sums, over).mean())


def _precision_sums(tally: Tally, cut: int) -> Array:
    """Return each bucket's expected part (n_queries, n_bits + 1) in average precision's sum."""
    n, r, N = tally.points, tally.hits, tally.before
    H = np.cumsum(r, axis=1) - r
    m = np.clip(cut - N, 0, n)
    a = ratio(r - 1, n - 1)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, tally.n_base + 1))])
    rise = harmonic[N + m] - harmonic[N]
    sums: Array = _share(tally) * (a * m + (H + 1 - a * (N + 1)) * rise)
    return sums


def _average_precision_at(tally: Tally, q: int, cut: int) -> float:
    """Return query q's expected average precision, divided by the relevant points up to `cut`.

    Their number is random where the cut goes through a bucket: x of its r relevant points are in
    its first m places, with hypergeometric probability. Given x, those m places are a bucket of
    their own, and the buckets before do not depend on x.
    """
    n, r = tally.points[q], tally.hits[q]
    before = np.cumsum(n) - n
    d = int(np.flatnonzero((before < cut) & (n > 0))[-1])  # the bucket of rank `cut`
    N, H, m = before[d], r[:d].sum(), cut - before[d]
    one = Tally(n[None], r[None], tally.n_base, tally.rule, None, tally.cuts)
    nearer = _precision_sums(one, cut)[0, :d].sum()
    x = np.arange(max(0, m - (n[d] - r[d])), min(r[d], m) + 1)
    chance = np.exp(_choose(r[d], x) + _choose(n[d] - r[d], m - x) - _choose(n[d], m))
    a = (x - 1) / max(1, m - 1)
    rise = (1 / np.arange(N + 1, cut + 1)).sum()
    sums = nearer + (x / m) * (a * m + (H + 1 - a * (N + 1)) * rise)
    return float(chance @ ratio(sums, H + x))


def _choose(n: Counts | np.int64, k: Counts | np.int64) -> Array:
    """Return the logarithm of the binomial coefficient."""
    from scipy.special import gammaln  # here: `auxhash inspect` does without, and starts quicker

    logarithm: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return logarithm


def ratio(part: ArrayLike, counts: AnyArray) -> Array:
    """Return part / counts, and 0 where the count is 0."""
    shape = np.broadcast_shapes(np.shape(part), counts.shape)
    return np.divide(part, counts, out=np.zeros(shape), where=counts > 0)
