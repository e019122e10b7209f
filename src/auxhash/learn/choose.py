"""choose: settings for a data set, by precision on points held out of it.

One choice after another, each with the best values so far: the hash function, then the loss, then
how many pairs to draw. Each trial is a training in full, as long as the others: a network needs
points and steps to show what it can do. The number of bits is not chosen: more of them are nearly
always better, and what they cost is for the user to weigh.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from auxhash.compute import checks, clock, deadline
from auxhash.compute.arrays import AnyArray, ArrayLike, Numbers
from auxhash.compute.bars import new_bar
from auxhash.compute.checks import ArgumentError, unknown
from auxhash.compute.words import count
from auxhash.learn.estimators import MACHash
from auxhash.learn.hasher import Hasher, OutweighingRow
from auxhash.learn.neighborhash import NeighborHash
from auxhash.learn.training.validation import SCORE_K, typical_class
from auxhash.model.identity import in_words

Parameters = dict[str, Any]

LOSSES = ("ksh", "hinge", "esplh", "ee")  # on labels, bre is a quarter of ksh
HASH_FUNCTIONS = ("linear", "rbf", "network")
PAIRS = ((20, 100), (100, 500), (200, 1000))  # similar and dissimilar, for each point
MAX_POINTS = 5_000  # training points of a trial
MAX_QUERIES = 1_000  # points held out
HELD_OUT_SHARE = 0.2  # of all points, up to MAX_QUERIES


@dataclass(frozen=True)
class Choice:
    """Chosen settings, and all that were tried.

    Each row holds settings, their precision, the `points` that were learnt from and the seconds.
    """

    settings: Parameters
    rows: list[dict[str, Any]]
    protocol: str


def choose(
    X: AnyArray,
    y: ArrayLike,
    fixed: Parameters | None = None,
    random_state: int = 0,
    seconds: float | None = None,
    verbose: int = 0,
) -> Choice:
    """Choose loss, hash_function, n_similar and n_dissimilar of MACHash for X and y.

    Args:
        fixed: values of parameters that are not to be varied, of these four or any others.
        seconds: the time for it; a trial that is under way then is given up. The choice then
            depends on how fast the machine is, and is that of MACHash's defaults if no trial ended.
        verbose: 1 shows a progress bar.
    """
    fixed = checked(fixed, MACHash())
    X = np.asarray(X)
    labels = checks.classes("y", y, len(X))
    random_state = checks.integer("random_state", random_state, 0)
    search = _Search(X, labels, fixed, random_state)
    stages = _stages(fixed)
    with within(seconds), new_bar(disable=not verbose) as bar:
        task = bar.add_task("", total=sum(map(len, stages)), stage="choosing")
        for stage in stages:
            search.choose_among(stage, lambda best: bar.update(task, advance=1, description=best))
    return search.choice(seconds)


def within(seconds: float | None) -> AbstractContextManager[None]:
    """Set a timeout for the work of this context; None sets none."""
    if seconds is None:
        return nullcontext()
    return deadline.within(checks.number("seconds", seconds, 0, strict=True))


def untried_in_words(settings: Sequence[Parameters], seconds: float | None) -> str:
    """Describe the candidates that the time was too short for; "" if there are none."""
    if not settings:
        return ""
    each = [" with ".join(f"{name} {value}" for name, value in one.items()) for one in settings]
    return f". The {seconds:g} s for it were too short for {', '.join(filter(None, each)) or 'it'}"


class _Search:
    """Settings tried so far, and the best of them."""

    def __init__(self, X: AnyArray, labels: AnyArray, fixed: Parameters, seed: int) -> None:
        self.train, self.held_out = _split(len(X), labels, seed)
        self.k = min(SCORE_K, typical_class(labels[self.train]))
        self.X, self.labels, self.fixed, self.seed = X, labels, fixed, seed
        self.best: Parameters = {"loss": "ksh", "hash_function": "linear"}
        self.best |= {"n_similar": 100, "n_dissimilar": 500, **fixed}
        self.rows: dict[str, dict[str, Any]] = {}  # by their settings in words
        self.untried: list[Parameters] = []

    def choose_among(self, stage: list[Parameters], report: Callable[[str], object]) -> None:
        """Try the settings of a stage, and take the best of them; of equals, the cheapest."""
        tried = []
        for settings in stage:
            values = {**self.best, **settings}
            words = in_words(values)
            try:
                if words not in self.rows:
                    self.rows[words] = self._measured(values)
            except deadline.DeadlineError:
                self.untried.append(settings)
                continue
            tried.append((self.rows[words]["precision"], settings))
            report(self._best_so_far())
        if tried:
            self.best |= max(tried, key=itemgetter(0))[1]

    def choice(self, seconds: float | None) -> Choice:
        """The best settings, with all that were tried."""
        settings = {name: value for name, value in self.best.items() if name not in self.fixed}
        protocol = (
            f"precision at {self.k} of {len(self.held_out)} held-out points among "
            f"{len(self.train)}, ties by their expected value, seed {self.seed}. The hash function "
            "was chosen first, then the loss, then pairs: each time the best"
        )
        protocol += untried_in_words(self.untried, seconds)
        return Choice(settings, [*self.rows.values()], protocol)

    def _measured(self, values: Parameters) -> dict[str, Any]:
        hasher = MACHash(random_state=self.seed, **values)
        data = self.X[self.train], self.labels[self.train]
        seconds = timed_fit(hasher, not self.rows, *data)
        precision = hasher.score(self.X[self.held_out], self.labels[self.held_out], self.k)
        result = {"precision": precision, "points": len(self.train), "seconds": seconds}
        return {"n_bits": hasher.n_bits, **values, **result}

    def _best_so_far(self) -> str:
        row = max(self.rows.values(), key=itemgetter("precision"))
        chosen = (row["hash_function"], row["loss"])
        names = ", ".join(part if isinstance(part, str) else "your own" for part in chosen)
        return f"best {row['precision']:.3f}: {names}"


def timed_fit(hasher: MACHash | NeighborHash, first: bool, *data: Any) -> float:
    """Fit the hasher to the data of a trial; return the seconds it took."""
    deadline.check()
    began = clock.seconds()
    with warnings.catch_warnings():  # do not warn of small classes; of anything else, once
        warnings.filterwarnings("ignore", "of .* points have fewer than n_")
        warnings.simplefilter("ignore", OutweighingRow)  # a row of the trial's; fit tells which
        if not first:
            warnings.simplefilter("ignore", UserWarning)
        hasher.fit(*data)
    if hasher.interrupted_:
        raise KeyboardInterrupt  # half a training is no trial
    return clock.seconds() - began


def checked(fixed: Parameters | None, hasher: Hasher) -> Parameters:
    """Check values for parameters of `hasher`: any but those that are arguments of `choose`."""
    parameters = dict(fixed or {})
    known = hasher.get_params(deep=False)
    for name in parameters:
        if name in ("random_state", "n_jobs"):
            raise ArgumentError(f"fixed must not hold {name}, which is an argument beside it")
        if name not in known:
            raise unknown("fixed", name, known)
    return parameters


def _stages(fixed: Parameters) -> list[list[Parameters]]:
    """The settings to try at each stage, from cheap to expensive."""

    def open_to(names: Sequence[str], values: Sequence[tuple[object, ...]]) -> list[Parameters]:
        settings = [dict(zip(names, value, strict=True)) for value in values]
        free = [{n: v for n, v in each.items() if n not in fixed} for each in settings]
        return [each for i, each in enumerate(free) if each not in free[:i]]

    return [
        open_to(("hash_function",), [(name,) for name in HASH_FUNCTIONS]),
        open_to(("loss",), [(name,) for name in LOSSES]),
        open_to(("n_similar", "n_dissimilar"), PAIRS),
    ]


def _split(n: int, labels: AnyArray, seed: int) -> tuple[Numbers, Numbers]:
    """Row numbers to learn from, and those held out."""
    n_held_out = min(MAX_QUERIES, round(HELD_OUT_SHARE * n))
    if not 1 <= n_held_out <= n - 2:
        raise ValueError(f"{count(n, 'point')} are too few to hold some out and choose by them")
    stratify = labels if labels.ndim == 1 else None
    if stratify is not None:
        counts = np.unique(labels, return_counts=True)[1]
        if counts.min() < 2 or n_held_out < len(counts):
            stratify = None
    train, held_out = train_test_split(
        np.arange(n), test_size=n_held_out, random_state=seed, stratify=stratify
    )
    return np.sort(train[:MAX_POINTS]), np.sort(held_out)
