"""choose: settings for a data set, by precision on points held out of it.

One choice after another, each with the best values so far: first the loss together with the hash
function, then how many pairs to draw, then the number of bits. Of settings that are about
equally good the cheapest is taken, since more bits nearly always help a little.

Each choice is made by halving, where there are many points: all candidates are tried briefly on few
points, and only the best third of them on all. The best of each hash function is among these: a
network needs more points and steps than others to show what it can do.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import train_test_split

from auxhash.compute import checks, clock
from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.compute.checks import ArgumentError, unknown
from auxhash.compute.words import count
from auxhash.learn.estimators import MACHash
from auxhash.learn.hasher import Hasher, OutweighingRow
from auxhash.learn.smooth import Refine
from auxhash.learn.training.progress import new_bar
from auxhash.model.identity import in_words

Parameters = dict[str, Any]

LOSSES = ("ksh", "hinge", "esplh", "ee")  # on labels, bre is a quarter of ksh
HASH_FUNCTIONS = ("linear", "rbf", "network")
PAIRS = ((20, 100), (100, 500), (200, 1000))  # similar and dissimilar, for each point
BITS = (8, 16, 32, 64)
MAX_POINTS = 5_000  # training points of a trial
BRIEF_POINTS = 500  # training points of a brief trial
MIN_CLASS_SIZE = 5  # points that share a label in a brief trial; it takes more points for it
BRIEF = {"max_iter": 10, "refine": Refine(n_steps=200)}  # settings of a brief trial
CANDIDATES_PER_FINALIST = 3  # tried briefly, for each that goes on to all points
MAX_QUERIES = 1_000  # points held out
HELD_OUT_SHARE = 0.2  # of all points, up to MAX_QUERIES
PRECISION_TOLERANCE = 0.01  # below the best, within which the cheapest is taken
K = 100


@dataclass(frozen=True)
class Choice:
    """Chosen settings, and all that were tried.

    Each row holds settings, their precision, the `points` that were learnt from and the seconds.
    """

    settings: Parameters
    rows: list[dict[str, Any]]
    protocol: str


class Trial(NamedTuple):
    """Points to learn from in a trial, and the rank k at which precision is measured."""

    rows: Numbers
    k: int
    settings: Parameters  # in place of MACHash's defaults


def choose(
    X: AnyArray,
    y: ArrayLike,
    fixed: Parameters | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    seconds: float | None = None,
    verbose: int = 0,
) -> Choice:
    """Choose n_bits, loss, hash_function, n_similar and n_dissimilar of MACHash for X and y.

    Args:
        fixed: values of parameters that are not to be varied, of these five or any others.
        seconds: no candidate is begun when so much time has passed, except the first; the choice
            then depends on how fast the machine is.
        verbose: 1 shows a progress bar.
    """
    fixed = checked(fixed, MACHash())
    X = np.asarray(X)
    labels = checks.classes("y", y, len(X))
    random_state = checks.integer("random_state", random_state, 0)
    if seconds is not None:
        checks.number("seconds", seconds, 0, strict=True)
    with _Search(X, labels, fixed, random_state, n_jobs, seconds, verbose) as search:
        for stage in _stages(fixed):
            search.choose_among(stage)
    return search.choice()


class _Search:
    """Settings tried so far, and the best of them. A context manager, for its progress bar."""

    def __init__(
        self,
        X: AnyArray,
        labels: AnyArray,
        fixed: Parameters,
        seed: int,
        n_jobs: int | None,
        seconds: float | None,
        verbose: int,
    ) -> None:
        train, self.held_out = _split(len(X), labels, seed)
        self.X, self.labels, self.fixed, self.seed, self.n_jobs = X, labels, fixed, seed, n_jobs
        self.full = _trial(train, labels, {})
        self.brief = _brief_trial(train, labels, fixed)
        self.best: Parameters = {"n_bits": 32, "loss": "ksh", "hash_function": "linear"}
        self.best |= {"n_similar": 100, "n_dissimilar": 500, **fixed}
        self.rows: dict[str, dict[str, Any]] = {}  # by their settings in words
        self.seconds, self.began, self.skipped = seconds, clock.seconds(), 0
        self.bar = new_bar(disable=not verbose)
        self.task = self.bar.add_task("", total=self._n_trials(), stage="choosing")

    def __enter__(self) -> "_Search":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def choose_among(self, stage: list[Parameters]) -> None:
        """Try the settings of a stage, and take the cheapest among the best of them."""
        going_on = stage
        if self.brief is not None and len(stage) > 1:
            tried = self._try(stage, self.brief)
            ranked = sorted(tried, key=lambda settings: -self._row(settings)["precision"])
            going_on = _promising(ranked)
        self._try(going_on, self.full)
        tried = [settings for settings in stage if self._words(settings) in self.rows]
        # Precision among few points and among all cannot be compared.
        most_points = max((self._row(settings)["points"] for settings in tried), default=0)
        last = [settings for settings in tried if self._row(settings)["points"] == most_points]
        if last:
            best = max(self._row(settings)["precision"] for settings in last)
            enough = best - PRECISION_TOLERANCE
            self.best |= next(s for s in last if self._row(s)["precision"] >= enough)

    def choice(self) -> Choice:
        """The best settings, with all that were tried."""
        settings = {name: value for name, value in self.best.items() if name not in self.fixed}
        return Choice(settings, [*self.rows.values()], self._protocol())

    def _try(self, stage: list[Parameters], trial: Trial) -> list[Parameters]:
        """Measure those of the settings that were not, while there is time; return all measured."""
        measured = []
        for settings in stage:
            known = self.rows.get(self._words(settings))
            if known is None or known["points"] < len(trial.rows):
                if self._time_is_up():
                    self.skipped += 1
                    continue
                self._measure({**self.best, **settings}, trial)
            measured.append(settings)
            self.bar.update(self.task, advance=1, description=self._best_so_far())
        return measured

    def _measure(self, values: Parameters, trial: Trial) -> None:
        brief = {name: value for name, value in trial.settings.items() if name not in self.fixed}
        hasher = MACHash(random_state=self.seed, n_jobs=self.n_jobs, **{**brief, **values})
        began = clock.seconds()
        with warnings.catch_warnings():  # do not warn of small classes; of anything else, once
            warnings.filterwarnings("ignore", "of .* points have fewer than n_")
            warnings.simplefilter("ignore", OutweighingRow)  # a row of the trial's; fit tells which
            if self.rows:
                warnings.simplefilter("ignore", UserWarning)
            hasher.fit(self.X[trial.rows], self.labels[trial.rows])
        seconds = clock.seconds() - began
        precision = hasher.score(self.X[self.held_out], self.labels[self.held_out], trial.k)
        result = {"precision": precision, "points": len(trial.rows), "seconds": seconds}
        self.rows[in_words(values)] = values | result

    def _words(self, settings: Parameters) -> str:
        return in_words({**self.best, **settings})

    def _row(self, settings: Parameters) -> dict[str, Any]:
        return self.rows[self._words(settings)]

    def _time_is_up(self) -> bool:
        if self.seconds is None or not self.rows:
            return False
        return clock.seconds() - self.began >= self.seconds

    def _n_trials(self) -> int:
        stages = [*_stages(self.fixed)]
        n = sum(len(stage) for stage in stages)
        if self.brief is not None:
            n += sum(len(_promising(stage)) for stage in stages if len(stage) > 1)
        return n

    def _best_so_far(self) -> str:
        row = max(self.rows.values(), key=lambda row: (row["points"], row["precision"]))
        chosen = (row["hash_function"], row["loss"], count(row["n_bits"], "bit"))
        names = ", ".join(part if isinstance(part, str) else "your own" for part in chosen)
        return f"best {row['precision']:.3f}: {names}"

    def _protocol(self) -> str:
        protocol = (
            f"precision at {self.full.k} of {len(self.held_out)} held-out points among "
            f"{len(self.full.rows)}, ties by their expected value, seed {self.seed}. Loss and hash "
            "function were chosen first, then pairs, then bits: each time the cheapest within "
            f"{PRECISION_TOLERANCE} of the best"
        )
        if self.brief is not None:
            protocol += (
                f". All were tried briefly among {len(self.brief.rows)} points, with precision at "
                f"{self.brief.k}, and the best third, but two or more, and the best of each hash "
                "function, among all"
            )
        if self.skipped:
            protocol += (
                f". The {self.seconds:g} s for it were spent: {self.skipped} of up to "
                f"{self._n_trials()} trials were not made"
            )
        return protocol


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


def _stages(fixed: Parameters) -> Iterator[list[Parameters]]:
    """The settings to try at each stage, from cheap to expensive."""

    def open_to(names: Sequence[str], values: Sequence[Any]) -> list[Parameters]:
        settings = [dict(zip(names, value, strict=True)) for value in values]
        free = [{n: v for n, v in each.items() if n not in fixed} for each in settings]
        return [each for i, each in enumerate(free) if each not in free[:i]]

    yield open_to(("hash_function", "loss"), list(product(HASH_FUNCTIONS, LOSSES)))
    yield open_to(("n_similar", "n_dissimilar"), PAIRS)
    yield open_to(("n_bits",), [(bits,) for bits in BITS])


def _split(n: int, labels: AnyArray, seed: int) -> tuple[AnyArray, AnyArray]:
    """Row numbers to learn from, in random order, and those held out."""
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
    return train[:MAX_POINTS], np.sort(held_out)


def _trial(train: AnyArray, labels: AnyArray, settings: Parameters) -> Trial:
    return Trial(np.sort(train), min(K, _typical_class(labels[train])), settings)


def _brief_trial(train: AnyArray, labels: AnyArray, fixed: Parameters) -> Trial | None:
    """A brief trial; None if it would take all points."""
    n = BRIEF_POINTS
    while n < len(train) and _typical_class(labels[train[:n]]) < MIN_CLASS_SIZE:
        n *= 2
    if n >= len(train):
        return None
    smooth = fixed.get("hash_function", "linear") in HASH_FUNCTIONS  # what `refine` needs
    return _trial(train[:n], labels, BRIEF if smooth else {"max_iter": BRIEF["max_iter"]})


def _promising(ranked: list[Parameters]) -> list[Parameters]:
    """Candidates, of those ranked from the best on, that go on to all points."""
    kinds = [settings.get("hash_function") for settings in ranked]
    firsts = [settings for i, settings in enumerate(ranked) if kinds[i] not in kinds[:i]]
    others = [settings for settings in ranked if settings not in firsts]
    n = max(2, len(firsts), math.ceil(len(ranked) / CANDIDATES_PER_FINALIST))
    return [*firsts, *others][:n]


def _typical_class(labels: AnyArray) -> int:
    """The median number of points that share a label, so that precision can reach 1."""
    single = labels.ndim == 1
    sizes = np.unique(labels, return_counts=True)[1] if single else labels.sum(axis=0)
    return max(1, int(np.median(sizes)))
