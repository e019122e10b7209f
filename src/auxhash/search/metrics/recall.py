"""Recall of the nearest neighbours in feature space: what codes lose, measured without labels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from auxhash.codes import Packed
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array, Numbers, Single
from auxhash.compute.neighbors import Metric, nearest
from auxhash.compute.words import count
from auxhash.search.expected import NEAREST, ExpectedRecall
from auxhash.search.index.tables import tables_from_outputs
from auxhash.search.metrics.ranks import NeighborRanks, TablesOf, by_hamming, by_tables

RECALL_RANKS = (10, 100, 1000)  # points among which they are looked for
RECALL_RANKS_OF_ONE = (1, 10, 100)  # the same for the nearest neighbour alone
MIN_POINTS = 2 * NEAREST  # to hold queries out of, and have neighbours left
# Recall depends on the number of points, so that only figures of the same number compare.
BASE_SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
MAX_HELD_OUT = 500  # queries of `expected_recall`
POINTS_PER_HELD_OUT = 20  # one of them is a query
MIN_HELD_OUT = 10  # fewer say nothing
N_STANDARD_ERRORS = 2  # by which two figures differ beyond chance


def figures(ranks: NeighborRanks, n_base: int) -> dict[str, float]:
    """Mean recall over the queries; NaN where the base has fewer points.

    "10@k" is the share of the 10 nearest that are among the first k; "R@k" the share of queries
    whose nearest is. `error` is the standard error of 10@10. The 10 nearest of the first 100 come
    first once these are re-ranked by the vectors: recall is 10@100 then.
    """
    values = {f"{NEAREST}@{k}": _mean(ranks.within(k), k, n_base) for k in RECALL_RANKS}
    values |= {f"R@{k}": _mean(ranks.within(k, 1), k, n_base) for k in RECALL_RANKS_OF_ONE}
    return values | {"error": standard_error(ranks.within(NEAREST))}


def _mean(shares: Array, k: int, n_base: int) -> float:
    return float(shares.mean()) if k <= n_base else math.nan


def standard_error(values: Array) -> float:
    """Standard error of the mean over queries; NaN of one query."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def checked_points(X: AnyArray, name: str, least: int = MIN_POINTS) -> AnyArray:
    """X (n, D), if its neighbours can be looked for: finite, enough rows, and no column of ids."""
    if X.ndim != 2 or X.dtype.kind not in "iuf" or not X.size:
        raise checks.ArgumentError(
            f"{name} must be numbers of shape (n, D), got {X.dtype} of shape {X.shape}"
        )
    if len(X) < least:
        reason = f", for {NEAREST} neighbours of held-out queries" if least == MIN_POINTS else ""
        raise checks.ArgumentError(
            f"{name} must hold at least {count(least, 'point')}{reason}, got {len(X)}"
        )
    if len(X) >= MIN_POINTS and (column := _column_of_ids(X)) is not None:
        raise checks.ArgumentError(
            f"column {column} of {name} numbers the rows ({X[0, column]:.0f}, "
            f"{X[1, column]:.0f}, ...): an id is no feature; leave it out, or call it id"
        )
    return X


def _column_of_ids(X: AnyArray) -> int | None:
    """First column that counts the rows or, beside real numbers, holds distinct whole ones."""
    first = np.asarray(X[:MIN_POINTS], np.float64)
    integral = (first == np.rint(first)).all(axis=0)

    def is_id(values: Array) -> bool:
        distinct = not integral.all() and len(np.unique(values)) == len(values)
        is_integral = bool((values == np.rint(values)).all())
        return is_integral and (distinct or bool((np.diff(values) == 1).all()))

    for column in np.flatnonzero(integral):
        if is_id(first[:, column]) and is_id(np.asarray(X[:, column], np.float64)):
            return int(column)
    return None


def n_held_out(n: int) -> int:
    """Return how many of n points to hold out for `expected_recall`; 0 where n is too small."""
    held_out = min(MAX_HELD_OUT, n // POINTS_PER_HELD_OUT)
    return held_out if held_out >= MIN_HELD_OUT else 0


def expected_recall(
    encode: Callable[[AnyArray], Packed],
    outputs: Callable[[AnyArray], Array],
    X: AnyArray,
    held_out: Numbers | None = None,
    metric: Metric = "cosine",
    codes: Packed | None = None,
    seed: int = 0,
    tables: Callable[[AnyArray], Single] | None = None,
) -> list[ExpectedRecall]:
    """Recall to expect of codes, for each of BASE_SIZES that X fills, and for all of X last.

    Up to 500 queries are drawn from the rows `held_out` of X (n, D), by default from all rows; the
    other rows, up to 100,000 of them, are searched. Empty where X has fewer than 200 points.

    Args:
        encode, outputs: packed codes (n, n_bytes), and real outputs (n, n_bits), of points.
        codes: packed codes of X, where they are known already.
        tables: learnt tables of queries, (n, n_bytes, 256), if the model has them.
    """
    n_queries = n_held_out(len(X)) if held_out is None else min(MAX_HELD_OUT, len(held_out))
    if n_queries < MIN_HELD_OUT:
        return []
    rng = np.random.default_rng(seed)
    candidates = np.arange(len(X)) if held_out is None else held_out
    queries = np.sort(rng.permutation(candidates)[:n_queries])
    others = np.setdiff1d(np.arange(len(X)), queries)
    largest = min(len(others), BASE_SIZES[-1])
    order = rng.permutation(others)[:largest]
    asked, searched = X[queries], X[order]
    base = encode(searched) if codes is None else codes[order]
    query_codes, real = encode(asked), outputs(asked)

    def measured(n: int) -> ExpectedRecall:
        near = nearest(searched[:n], asked, NEAREST, metric)[0]
        by_codes = by_hamming(query_codes, base[:n], near, real.shape[1]).within(NEAREST)
        kinds: list[TablesOf] = [lambda rows: tables_from_outputs(real[rows])]
        if tables is not None:
            kinds.append(lambda rows: tables(asked[rows]))
        shares = [by_codes, *(by_tables(kind, base[:n], near).within(NEAREST) for kind in kinds)]
        means = (part for s in shares for part in (float(s.mean()), standard_error(s)))
        return ExpectedRecall(n, n_queries, *means)

    return [measured(n) for n in (*(size for size in BASE_SIZES if size < largest), largest)]


@dataclass(frozen=True)
class Drift:
    """Recall of new points beside what was expected, at the same number of points searched.

    It is by tables, if the model has learnt any, and by Hamming distance otherwise.
    """

    expected: ExpectedRecall
    now: ExpectedRecall

    @property
    def by(self) -> str:
        return "tables" if None not in (self.expected.tables, self.now.tables) else "hamming"

    @property
    def shares(self) -> tuple[float, float]:
        """Recall as it was expected, and now."""
        return getattr(self.expected, self.by), getattr(self.now, self.by)

    @property
    def change(self) -> float:
        """Recall now, less the expected one."""
        expected, now = self.shares
        return now - expected

    @property
    def error(self) -> float:
        """Standard error of the change."""
        return math.hypot(
            *(getattr(each, f"{self.by}_error") for each in (self.expected, self.now))
        )

    @property
    def lower(self) -> bool:
        """True if recall is lower than expected by more than chance explains."""
        return self.change < -N_STANDARD_ERRORS * self.error

    def __str__(self) -> str:
        verdict = "lower than expected" if self.lower else "not lower than expected"
        how = "tables" if self.by == "tables" else "Hamming distance"
        expected, now = self.shares
        return (
            f"recall is {verdict}: {now:.3f} of the {NEAREST} nearest by {how} among "
            f"{self.now.n_base:,} points, and {expected:.3f} at training time (change "
            f"{self.change:+.3f}, standard error {self.error:.3f})"
        )


def drift(expected: Sequence[ExpectedRecall], now: Sequence[ExpectedRecall]) -> Drift | None:
    """Compare recall at the largest number of points that both have; None where there is none."""
    before = {each.n_base: each for each in expected}
    pairs = [Drift(before[each.n_base], each) for each in now if each.n_base in before]
    return max(pairs, key=lambda pair: pair.now.n_base, default=None)
