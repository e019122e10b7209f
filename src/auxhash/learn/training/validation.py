"""Points held out of the training, and their precision as queries among the training points."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes, Packed
from auxhash.compute import checks, threads
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, ArrayLike, Matrix, Numbers
from auxhash.compute.neighbors import nearest
from auxhash.compute.peers import peers
from auxhash.compute.registry import register
from auxhash.mac.affinity import Affinity
from auxhash.mac.hashfunctions import HashFunction, codes
from auxhash.mac.loop import Validate
from auxhash.search import metrics
from auxhash.search.metrics import counted, tally
from auxhash.search.metrics.truth import Truth

SCORE_K = 100
PAIRS_PER_CHUNK = 1 << 16  # pairs whose codes are compared at once


@register("Validation")
@dataclass(frozen=True, eq=False)  # arrays have no equality of one value
class Validation:
    """Settings of validation: the points that judge the steps of the training, and how.

    Args:
        points: the fraction of the training points to hold out; or (X, y), held out already; or,
            with `neighbors`, X alone.
        k: a query's nearest training points whose relevance is counted.
        neighbors: None takes points of the same label as relevant or, without labels, the pairs of
            the affinity; a number takes as many true nearest training points, by Euclidean
            distance (of pictures, that of their pixels).
    """

    points: Any
    k: int = SCORE_K
    neighbors: int | None = None

    def __post_init__(self) -> None:
        checks.integer("k", self.k, 1)
        if self.neighbors is not None:
            checks.integer("neighbors", self.neighbors, 1, instead=" or None")

    def check_points(self) -> None:
        """Raise unless `points` are a fraction, a pair (X, y), or X alone with `neighbors`."""
        points = self.points
        if isinstance(points, tuple):
            if len(points) != 2:
                raise ValueError("validation must be a fraction or a pair (X, y)")
            if self.neighbors is not None:
                raise ValueError(
                    "validation by neighbors needs no labels: give X alone, not (X, y)"
                )
        elif hasattr(points, "__len__") and not isinstance(points, str):
            if self.neighbors is None:
                raise ValueError(
                    "validation must be a fraction, a pair (X, y) or, for X alone, "
                    "Validation(X, neighbors=...)"
                )
        else:
            checks.number("validation", points, 0, strict=True)
            if points >= 1:
                raise ValueError(
                    f"validation must be a fraction below 1 or a pair (X, y), got {points}"
                )


ValidationLike = float | tuple[ArrayLike, ArrayLike] | Validation | None


class HeldOut(NamedTuple):
    """Points held out: features, labels and judged pairs; None where there are none."""

    X: AnyArray
    y: AnyArray | None
    pairs: "JudgedPairs | None"


class JudgedPairs(NamedTuple):
    """Pairs of a held-out point (`query`) and a training point, and whether they are similar."""

    query: Numbers
    partner: Numbers
    similar: NDArray[np.bool_]


class TrainingPoints(NamedTuple):
    """Training points: features (n, D), labels, affinity and codes; None where there are none."""

    X: AnyArray
    y: AnyArray | None
    affinity: Affinity | None
    init: Codes | None = None  # (n, n_bits), in place of the free codes of mu = 0

    def take(self, rows: Numbers) -> "TrainingPoints":
        y, init = (None if part is None else part[rows] for part in (self.y, self.init))
        affinity = None if self.affinity is None else self.affinity.subset(rows)
        return TrainingPoints(self.X[rows], y, affinity, init)


def hold_out(
    points: TrainingPoints, validation: Validation | None, rng: np.random.Generator
) -> tuple[TrainingPoints, HeldOut | None]:
    """The points to learn from, and those to validate on: a fraction of each part, joined."""
    if validation is None:
        return points, None
    if isinstance(validation.points, tuple):
        X, y = validation.points
        if points.y is None and y is not None:
            raise ValueError("validation on (X, y) compares labels and needs y of the points, too")
        return points, HeldOut(X, y, None)
    n = len(points.X)
    n_held_out = round(validation.points * n)
    if not 1 <= n_held_out <= n - 2:
        share = validation.points
        raise ValueError(f"validation={share} of {n} points would hold out {n_held_out}")
    order = rng.permutation(n)
    held_out, training = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    y = None if points.y is None else peers().join(points.y[held_out])
    pairs = None
    if points.affinity is not None and y is None and validation.neighbors is None:
        pairs = judged_pairs(points.affinity, held_out, training)
    return points.take(training), HeldOut(peers().join(points.X[held_out]), y, pairs)


def judged_pairs(affinity: Affinity, held_out: Numbers, training: Numbers) -> JudgedPairs:
    """The pairs between held-out and training points, each numbered in its own order.

    Similar is what has a similarity above 0; where a pair is listed with several y, their mean.
    """
    place = np.empty(affinity.n_points, np.int64)
    place[held_out], place[training] = np.arange(len(held_out)), np.arange(len(training))
    is_held_out = np.zeros(affinity.n_points, bool)
    is_held_out[held_out] = True
    across = is_held_out[affinity.i] != is_held_out[affinity.j]
    i, j = affinity.i[across], affinity.j[across]
    swap = is_held_out[j]
    query, partner = place[np.where(swap, j, i)], place[np.where(swap, i, j)]
    value = (affinity.read_as("similarity") * affinity.weight)[across]
    key, pair = np.unique(query * len(training) + partner, return_inverse=True)
    similar = np.bincount(pair, value, len(key)) > 0
    if not similar.any():
        raise ValueError(
            "no point held out for validation has a similar partner among the others; hold out "
            "others, or more"
        )
    query, partner = np.divmod(key, len(training))
    return JudgedPairs(query, partner, similar)


def precision_of(
    held_out: HeldOut,
    validation: Validation,
    points: TrainingPoints,
    base: Matrix,
    queries: Matrix,
) -> Validate:
    """The precision that judges a hash function; base and queries are features of the points."""
    if held_out.pairs is not None:
        return PairPrecision(base, queries, held_out.pairs)
    truth = None
    if validation.neighbors is not None:
        k_nearest = min(int(validation.neighbors), len(base))
        base_points = points.X.reshape(len(points.X), -1)  # of pictures, the pixels
        query_points = held_out.X.reshape(len(held_out.X), -1)
        truth = nearest(base_points, query_points, k_nearest)[0]
    labels = (held_out.y, points.y) if truth is None else (None, None)
    k = min(int(validation.k), peers().sum(len(base)))
    return Precision(base, queries, *labels, truth, k)


class Precision:
    """Precision at k of held-out queries among the training points, for any hash function."""

    def __init__(
        self,
        base: Matrix,
        queries: Matrix,
        query_labels: AnyArray | None,
        base_labels: AnyArray | None,
        neighbors: Numbers | None,
        k: int,
    ) -> None:
        self.base, self.queries, self.k = base, queries, k
        self.truth = query_labels, base_labels, neighbors
        Truth(*self.truth, len(queries), len(base))  # or raise at once

    def __call__(self, h: HashFunction) -> float:
        both = (codes(h, F) for F in (self.queries, self.base))
        queries, base = (devices.of(part).fetch(part) for part in both)
        part = tally.take(queries, base, *self.truth)
        counts, n_base = peers().sum(np.stack([part.points, part.hits])), peers().sum(len(base))
        total = replace(part, points=counts[0], hits=counts[1], n_base=n_base)
        return float(counted.precision(total, np.array([self.k]))[0])


class PairPrecision:
    """Precision of held-out queries among their judged partners, for any hash function.

    Of the R nearest partners of a query, R being the number of its similar ones, the share that is
    similar: 1 if all similar partners are nearer than all others. Ties count by expectation.
    Queries without similar partners do not count.
    """

    def __init__(self, base: Matrix, queries: Matrix, pairs: JudgedPairs) -> None:
        self.base, self.queries, self.pairs = base, queries, pairs

    def __call__(self, h: HashFunction) -> float:
        both = (codes(h, F) for F in (self.queries, self.base))
        queries, base = (devices.of(part).fetch(part) for part in both)
        n, levels = len(queries), queries.shape[1] + 1
        every, similar = np.zeros(n * levels), np.zeros(n * levels)
        for rows in threads.chunks(len(self.pairs.query), PAIRS_PER_CHUNK):
            query = self.pairs.query[rows]
            d = (queries[query] != base[self.pairs.partner[rows]]).sum(axis=1)
            cell = query * levels + d
            every += np.bincount(cell, minlength=n * levels)
            similar += np.bincount(cell, self.pairs.similar[rows], n * levels)
        every, similar = every.reshape(n, levels), similar.reshape(n, levels)
        wanted = similar.sum(axis=1)
        nearer = np.cumsum(every, axis=1) - every
        # The share of the partners at each distance that are among the R nearest.
        taken = np.clip((wanted[:, None] - nearer) / np.maximum(every, 1), 0, 1)
        counts = wanted > 0
        return float(((similar * taken).sum(axis=1)[counts] / wanted[counts]).mean())


def precision_among(
    queries: Codes | Packed,
    base: Codes | Packed,
    query_labels: ArrayLike,
    base_labels: ArrayLike,
    k: int | None,
) -> float:
    """Precision at k of queries among the training points, k capped by their number.

    None takes 100, or as many as a class typically has where these are fewer.
    """
    if k is None:
        k = min(SCORE_K, typical_class(checks.labels("labels", base_labels)))
    return metrics.precision_at_k(queries, base, query_labels, base_labels, min(k, len(base)))


def typical_class(labels: AnyArray) -> int:
    """The median number of points that share a label: up to it, precision can reach 1."""
    single = labels.ndim == 1
    sizes = np.unique(labels, return_counts=True)[1] if single else labels.sum(axis=0)
    return max(1, int(np.median(sizes)))
