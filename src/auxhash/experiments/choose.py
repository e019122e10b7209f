"""choose: settings for a data set, by precision on points held out of it.

One thing after another, each at the best values so far: first the loss together with the hash
function, then how many pairs to draw, then the number of bits. Of two settings about as good, the
cheaper one is taken: more bits nearly always help a little.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import train_test_split

from auxhash import checks
from auxhash.checks import ArgumentError, unknown
from auxhash.estimators import MACHash
from auxhash.storage.identity import in_words

Parameters = dict[str, Any]

LOSSES = ("ksh", "hinge", "esplh", "ee")  # of labels, bre is a quarter of ksh
HASH_FUNCTIONS = ("linear", "rbf", "network")
PAIRS = ((20, 100), (100, 500), (200, 1000))  # similar and dissimilar, for each point
BITS = (8, 16, 32, 64)
MOST_POINTS = 5_000  # learnt from, to choose
MOST_QUERIES = 1_000
HELD_OUT = 0.2
ABOUT_AS_GOOD = 0.01  # of precision
K = 100


@dataclass(frozen=True)
class Choice:
    """The chosen settings and all that were tried, each with its precision."""

    settings: Parameters
    rows: list[dict[str, Any]]
    protocol: str


def choose(
    X: NDArray[Any],
    y: ArrayLike,
    fixed: Parameters | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Choice:
    """Choose n_bits, loss, hash_function, n_similar and n_dissimilar of MACHash for X and y.

    Args:
        fixed: parameters that are settled, with their values; of the five, they are not varied.
    """
    fixed = _checked(fixed)
    X = np.asarray(X)
    labels = checks.labels("y", y, len(X))
    random_state = checks.whole("random_state", random_state, 0)
    train, held = _split(len(X), labels, random_state)
    k = min(K, _typical_class(labels[train]))
    points = X[train], labels[train], X[held], labels[held]
    rows: dict[str, dict[str, Any]] = {}  # by their settings in words
    best: Parameters = {"n_bits": 32, "loss": "ksh", "hash_function": "linear"}
    best |= {"n_similar": 100, "n_dissimilar": 500, **fixed}
    for stage in _stages(fixed):
        tried = []
        for settings in stage:
            values = {**best, **settings}
            words = in_words(values)
            if words not in rows:
                hasher = MACHash(random_state=random_state, n_jobs=n_jobs, **values)
                rows[words] = values | _measured(hasher, *points, k)
            tried.append((settings, rows[words]["precision"]))
        enough = max(precision for _, precision in tried) - ABOUT_AS_GOOD
        best |= next(settings for settings, precision in tried if precision >= enough)
    protocol = (
        f"precision at {k} of {len(held)} held-out points among {len(train)}, "
        f"ties by their expected value, seed {random_state}. Loss and hash function were chosen "
        f"first, then pairs, then bits: each time the cheapest within {ABOUT_AS_GOOD} of the best"
    )
    return Choice(
        {name: best[name] for name in best if name not in fixed}, [*rows.values()], protocol
    )


def _checked(fixed: Parameters | None) -> Parameters:
    given = dict(fixed or {})
    for name in given:
        if name in ("random_state", "n_jobs"):
            raise ArgumentError(f"fixed must not hold {name}, which is an argument beside it")
        if name not in MACHash().get_params(deep=False):
            raise unknown("fixed", name, MACHash().get_params(deep=False))
    return given


def _stages(fixed: Parameters) -> Iterator[list[Parameters]]:
    """What is varied at one time, from cheap to dear."""

    def open_to(names: Sequence[str], values: Sequence[Any]) -> list[Parameters]:
        settings = [dict(zip(names, value, strict=True)) for value in values]
        free = [{n: v for n, v in each.items() if n not in fixed} for each in settings]
        return [each for i, each in enumerate(free) if each not in free[:i]]

    yield open_to(("hash_function", "loss"), list(product(HASH_FUNCTIONS, LOSSES)))
    yield open_to(("n_similar", "n_dissimilar"), PAIRS)
    yield open_to(("n_bits",), [(bits,) for bits in BITS])


def _measured(
    hasher: MACHash, X: Any, y: Any, held: Any, held_labels: Any, k: int
) -> dict[str, float]:
    clock = perf_counter()
    with warnings.catch_warnings():  # that classes are small need not be said at every trial
        warnings.filterwarnings("ignore", "of .* points have fewer than n_")
        hasher.fit(X, y)
    seconds = perf_counter() - clock
    return {"precision": hasher.score(held, held_labels, k), "seconds": seconds}


def _split(n: int, labels: NDArray[Any], seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Row numbers to learn from, and held out."""
    n_held = min(MOST_QUERIES, round(HELD_OUT * n))
    if not 1 <= n_held <= n - 2:
        raise ValueError(f"{n} points are too few to hold some out and choose by them")
    stratify = labels if labels.ndim == 1 else None
    if stratify is not None:
        counts = np.unique(labels, return_counts=True)[1]
        if counts.min() < 2 or n_held < len(counts):
            stratify = None
    train, held = train_test_split(
        np.arange(n), test_size=n_held, random_state=seed, stratify=stratify
    )
    return np.sort(train[:MOST_POINTS]), np.sort(held)


def _typical_class(labels: NDArray[Any]) -> int:
    """The median number of points that share a label, so that precision can reach 1."""
    single = labels.ndim == 1
    sizes = np.unique(labels, return_counts=True)[1] if single else labels.sum(axis=0)
    return max(1, int(np.median(sizes)))
