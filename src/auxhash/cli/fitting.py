"""One training of `fit`: which hasher learns, from what, and what is to be expected of it."""

import warnings
from datetime import timedelta
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from auxhash.cli import inputs
from auxhash.cli.fitoptions import OPTIONS, FitOptions
from auxhash.cli.options import DEFAULT_LABEL, Reading
from auxhash.cli.output import as_json, number, tell
from auxhash.compute import clock, context
from auxhash.compute.arrays import AnyArray
from auxhash.compute.checks import unknown
from auxhash.compute.words import count
from auxhash.files.rows import Rows
from auxhash.learn import baselines
from auxhash.learn.choose import Choice, Parameters, choose
from auxhash.learn.chooseneighbors import choose_neighbors
from auxhash.learn.classneighbors import same_class
from auxhash.learn.estimators import MACHash
from auxhash.learn.hasher import Hasher
from auxhash.learn.loading import load
from auxhash.learn.neighborhash import NAMES, NeighborHash
from auxhash.learn.smooth import Refine
from auxhash.learn.training import estimate, interrupt
from auxhash.learn.training.checkpoint import seconds_before
from auxhash.learn.training.validation import SCORE_K, typical_class
from auxhash.mac import affinity, hashfunctions
from auxhash.mac.affinity import Affinity
from auxhash.search.expected import ExpectedRecall
from auxhash.search.metrics import recall

OF_NEIGHBOURS = ("metric", "query_function", "prefixes", "quality")  # parameters of NeighborHash
PICTURE_STEPS = 500  # twice as many find no more pictures of the class of a new one
MIN_POINTS = 3  # that neighbours are learnt from


class HeldOutPrecision(NamedTuple):
    """Precision at k of held-out points among those learnt from."""

    precision: float
    k: int
    n_queries: int
    n_base: int

    def __str__(self) -> str:
        return (
            f"{self.precision:.3f} of the first {self.k} of {self.n_base:,} codes share the label "
            f"of a query ({self.n_queries:,} queries)"
        )


class Task:
    """A hasher, and the points that it learns from, as the options and the files have it."""

    def __init__(
        self, features: str, labels: str | None, options: FitOptions, reading: Reading
    ) -> None:
        self.options, self.parameters = options, options.parameters()
        self.hasher, self.points = _start(features, reading, options.init, self.parameters)
        self.learnt_from: dict[str, Any] = {}  # by the names of the arguments of its `fit`
        y, known = _similarity(self.points, labels, options.pairs, reading)
        if y is not None and known is not None:
            tell("pairs and labels: the pairs are learnt from, the labels only judge the result")
        self._decide(y, known)
        self.X = self.every = self.points.all()
        if isinstance(self.hasher, NeighborHash):
            recall.checked_points(self.X, self.points.name, MIN_POINTS)
        self.held_out: AnyArray | None = None  # rows of `every`; NeighborHash chooses its own
        if self.learnt_from or options.method is not None:
            self._hold_out()
        self.most, self.is_sample = self._most_points()
        self.choice: Choice | None = None

    def _decide(self, y: AnyArray | None, known: Affinity | None) -> None:
        """Take the hasher that is asked for, or that learns from what there is."""
        name, steps = self.points.name, self.options.steps
        self.learnt_from = {"y": y, "affinity": known}
        if self.options.method is not None:
            self.hasher, self.learnt_from = self._by_name(self.options.method, y, known)
        elif y is None and known is None:
            self.hasher, self.learnt_from = self._neighbor_hash(), {}
            limits = {"n_steps": steps, "max_points": self.options.sample}
            self.parameters |= {key: value for key, value in limits.items() if value is not None}
        elif isinstance(self.hasher, NeighborHash):
            raise ValueError(
                f"--init: {self.options.init} was learnt from neighbours, and {name} has labels or "
                "pairs: learn anew, from the old points and the new ones together"
            )
        elif self._by_look(y, known):
            self.hasher = self._picture_hash()
        elif other := next((key for key in OF_NEIGHBOURS if key in self.parameters), None):
            option = OPTIONS.get(other, other)
            raise ValueError(f"--{option} is for points without labels and pairs")
        else:
            self._set_steps(fresh=y is not None and known is None)

    def _set_steps(self, fresh: bool) -> None:
        """Set the gradient steps of MACHash; `fresh` tells that pairs are drawn anew for each.

        Raises ValueError where steps are asked for that the hash function cannot make.
        """
        steps = self.options.steps
        if self.options.refined or steps is not None:
            known = self.hasher.get_params(deep=False) | self.parameters
            h = known["hash_function"]
            if not hashfunctions.is_smooth(hashfunctions.get(h, known["C"])):
                option = "--refine" if steps is None else "--steps"
                name = h if isinstance(h, str) else type(h).__name__
                raise ValueError(f"{option} is for linear, rbf and network: {name} has no gradient")
        if steps is not None:
            if self.options.refined is False:
                raise click.UsageError(
                    "--steps are those of the refinement, and --no-refine makes none"
                )
            self.parameters["refine"] = Refine(n_steps=steps, keep="refined" if fresh else "lower")

    def _by_name(
        self, method: str, y: AnyArray | None, known: Affinity | None
    ) -> tuple[Hasher, dict[str, Any]]:
        """The baseline of this name, and what it learns from beside the points."""
        names = {each.lower(): each for each in baselines.__all__}
        if method.lower() not in names:
            raise unknown("--method", method, baselines.__all__)
        hasher: Hasher = getattr(baselines, names[method.lower()])()
        steps = [] if self.options.steps is None else ["steps"]
        for parameter in (*self.parameters, *steps):
            if parameter not in hasher.get_params(deep=False):
                option = OPTIONS.get(parameter, parameter)
                raise ValueError(f"--{option} is not for --method {method}")
        if known is not None:
            if "affinity" not in signature(hasher.fit).parameters:
                raise ValueError(f"--pairs are not for --method {method}")
            return hasher, {"y": y, "affinity": known}
        if y is None and hasher.__sklearn_tags__().target_tags.required:
            name = self.points.name
            raise ValueError(f"--method {method} learns from labels, and {name} has none")
        return hasher, {} if y is None else {"y": y}

    def _neighbor_hash(self) -> NeighborHash:
        """The hasher for points without labels and pairs: that of --init, if there is one."""
        name, init = self.points.name, self.options.init
        if init is not None and not isinstance(self.hasher, NeighborHash):
            raise ValueError(
                f"--init: {init} was learnt from labels or pairs, and {name} has none: learn anew, "
                "from the old points and the new ones together"
            )
        hasher = self.hasher if isinstance(self.hasher, NeighborHash) else NeighborHash()
        known = hasher.get_params(deep=False)
        for parameter in self.parameters:
            if parameter not in known:
                option = OPTIONS.get(parameter, parameter)
                raise ValueError(f"--{option} is for labels or pairs, and {name} has none")
        metric = self.parameters.get("metric", hasher.metric)
        tell(
            f"{name}: no labels, so that codes are learnt which rank its {metric} neighbours first"
        )
        return hasher

    def _by_look(self, y: AnyArray | None, known: Affinity | None) -> bool:
        """True for pictures of classes, unless options ask for what MACHash alone has."""
        if self.points.names is None or y is None or y.ndim > 1 or known is not None:
            return False
        if self.options.init or self.options.auto:
            return False
        here = {"n_bits", "hash_function", *OF_NEIGHBOURS}
        kind = self.parameters.get("hash_function", "linear")
        return here.issuperset(self.parameters) and kind in NAMES

    def _picture_hash(self) -> NeighborHash:
        """The hasher for pictures of classes: from labels alone, most of a class would coincide."""
        steps = self.options.steps
        self.parameters["n_steps"] = PICTURE_STEPS if steps is None else steps
        tell(
            f"{self.points.name}: codes are learnt which rank pictures of the same class first, "
            "the most similar before the others (--loss ksh learns from classes alone)"
        )
        return NeighborHash(hash_function="linear", query_function=None, max_points=None)

    def _hold_out(self) -> None:
        """Hold points out, to measure what to expect; learn from the others, or from a sample."""
        options = self.options
        validated = "validation" in self.parameters
        rows, self.held_out = rows_to_learn(
            len(self.X), self.learnt_from, options.sample, options.seed, validated
        )
        self.asked = None if self.y is None else self.y[self.held_out]  # labels of those
        if len(rows) < len(self.X):
            self.X = self.X[rows]
            self.learnt_from = {
                name: value if value is None else value[rows]
                for name, value in self.learnt_from.items()
            }

    @property
    def y(self) -> AnyArray | None:
        """The labels that are learnt from, if any."""
        return self.learnt_from.get("y")

    def _most_points(self) -> tuple[int, bool]:
        """The number of points to learn from, and whether they are a sample, which is said at once.

        Points held out to measure what to expect, here or by NeighborHash, make no sample.
        """
        n = len(self.points)
        most = self.options.sample or getattr(self.hasher, "max_points", None) or n
        is_sample = most < n
        own = n - recall.n_held_out(n) if isinstance(self.hasher, NeighborHash) else n
        most = min(most, len(self.X), own)
        if is_sample:
            tell(
                f"{self.points.name}: a sample of {most:,} of {n:,} points is learnt from "
                "(--sample)"
            )
        return most, is_sample

    def choose(self) -> None:
        """Choose the parameters that no option sets."""
        options, verbose = self.options, int(not as_json())
        trial = options.seed, options.auto_seconds, verbose
        if self.y is not None:
            self.choice = choose(self.X, self.y, self.parameters, *trial)
        elif self.learnt_from.get("affinity") is not None:
            raise ValueError("--auto measures precision, and needs labels")
        else:
            codes_only = {**self.parameters, "query_function": None}  # tables change nothing of it
            self.choice = choose_neighbors(self.X, codes_only, *trial)
        self.parameters |= self.choice.settings
        if self.y is not None and (line := _time_by_trial(self.choice, len(self.X))):
            tell(line)

    def learn(self) -> float:
        """Fit the hasher; return the seconds that it took, those before a kill included."""
        options, hasher = self.options, self.hasher
        technical = {"random_state": options.seed, "device": options.device}
        technical["verbose"] = int(not as_json())
        self._set_known(self.parameters | technical)
        if isinstance(hasher, NeighborHash) and self.held_out is None:
            hasher.set_params(max_points=self.most)
        elif isinstance(hasher, NeighborHash):
            assert self.y is not None
            near = same_class(self.X, self.y, hasher.metric)
            self.learnt_from = {"y": self.y, "neighbors": near}
        time = None
        if not (options.auto or as_json() or self.learnt_from.get("affinity") is not None):
            time = estimate.expected_time(hasher, self.X, self.y)
        if time is not None:
            left = timedelta(seconds=round(time.before + time.steps))
            tell(f"training will take about {left}, by what small parts of it take")
        began = clock.seconds()
        more = {}
        if options.checkpoint is not None:
            more["checkpoint"] = options.checkpoint
            began -= seconds_before(options.checkpoint)
        warnings.simplefilter("ignore", interrupt.TrainingInterrupted)  # reported by the command
        self._names = self.points.columns or getattr(hasher, "feature_names_in_", None)
        with context.using(expected=time):
            hasher.fit(self.X, **self.learnt_from, **more)
        return clock.seconds() - began

    def _set_known(self, values: Parameters) -> None:
        """Set those of the values that are parameters of the hasher."""
        known = self.hasher.get_params(deep=False)
        self.hasher.set_params(**{name: value for name, value in values.items() if name in known})

    def expected(self) -> tuple[list[ExpectedRecall], HeldOutPrecision | None]:
        """Recall, or precision of points with labels, of those that were not learnt from."""
        hasher, held_out = self.hasher, self.held_out
        if held_out is None or self.y is None:
            return self._recall(), None
        if not len(held_out):
            return [], None
        assert hasher.labels_ is not None
        assert self.asked is not None
        k = min(SCORE_K, typical_class(hasher.labels_))
        precision = hasher.score(self.every[held_out], self.asked, k)
        return [], HeldOutPrecision(precision, k, len(held_out), len(hasher.codes_))

    def _recall(self) -> list[ExpectedRecall]:
        """Recall of points held out here, or of those that NeighborHash has chosen."""
        hasher, seed = self.hasher, self.options.seed
        functions = hasher.encode, hasher.decision_function
        if isinstance(hasher, NeighborHash):
            tables = None if hasher.tables_ is None else hasher.tables
            rows, metric, codes = hasher.held_out_, hasher.metric, hasher.codes_
            return recall.expected_recall(
                *functions, self.every, rows, metric, codes, seed, tables=tables
            )
        return recall.expected_recall(*functions, self.every, self.held_out, "cosine", seed=seed)

    def save(self, path: Path, expected: list[ExpectedRecall]) -> None:
        """Write the model, with all that is known of its features."""
        hasher = self.hasher
        if expected:
            hasher.expected_recall_ = expected
        if self.points.feature is not None:
            hasher.image_feature_ = self.points.feature
        if self._names is not None:
            hasher.feature_names_in_ = np.array(self._names, object)
        # How it was fitted is no part of the model: the file is the same on any number of threads.
        self._set_known({"n_jobs": None, "verbose": 0, "device": "cpu", "warm_start": False})
        hasher.save(path)


def rows_to_learn(
    n: int, learnt_from: dict[str, Any], sample: int | None, seed: int, validated: bool
) -> tuple[AnyArray, AnyArray]:
    """Rows to learn from, at most `sample`, and rows held out to measure what to expect.

    None are held out where there are few points, where pairs name rows of all points, or where
    `validated` on points held out already. The first point of each class is learnt from.
    """
    none, y = np.empty(0, np.int64), learnt_from.get("y")
    if learnt_from.get("affinity") is not None:
        if sample is not None and sample < n:
            raise ValueError("--sample is not for --pairs: they name rows of all points")
        return np.arange(n), none
    order = np.random.default_rng(seed).permutation(n)
    first = none if y is None or y.ndim > 1 else np.unique(y, return_index=True)[1]
    free = order[~np.isin(order, first)]
    held_out = none if validated else np.sort(free[: recall.n_held_out(n)])
    return np.sort(order[~np.isin(order, held_out)][:sample]), held_out


def _start(
    features: str, reading: Reading, init: str | None, parameters: Parameters
) -> tuple[Hasher, Rows]:
    """A hasher to fit, and the points to fit it to."""
    if init is None:
        return MACHash(), inputs.points(features, reading)
    model = load(init)
    if not isinstance(model, MACHash | NeighborHash):
        kind = type(model).__name__
        raise ValueError(
            f"{init} holds a model of {kind}, and only those of MACHash and NeighborHash can go "
            "on: learn anew, from the old points and the new ones together"
        )
    for option, name in (("--bits", "n_bits"), ("--hash-function", "hash_function")):
        old = getattr(model, name)
        if parameters.get(name, old) != old:
            raise ValueError(
                f"--init goes on with {old} for {option}, which {init} was learnt with; "
                f"got {parameters[name]}"
            )
    model.set_params(warm_start=True, n_jobs=None)
    if isinstance(model, MACHash):
        model.set_params(init=None)  # codes to start from would be those of other points
    else:
        model.set_params(max_points=NeighborHash.max_points)  # the model's was for other points
    return model, inputs.points_for(model.model_, features, reading)


def _similarity(
    points: Rows, labels: str | None, pairs: str | None, reading: Reading
) -> tuple[AnyArray | None, Affinity | None]:
    """Labels and None, or with `pairs` the labels, if any, and the affinity of the pairs.

    None and None for points of a file that has no labels, if none were asked for.
    """
    asked = labels is not None or reading.label != DEFAULT_LABEL or points.names is not None
    if pairs is None and not asked and points.labels is None:
        return None, None
    if pairs is None:
        return inputs.labels_to_learn(points, labels, "LABELS or --pairs", reading), None
    i, j, y = inputs.pairs(pairs, reading.header)
    try:
        known = affinity.from_pairs(i, j, y, n_points=len(points))
    except ValueError as error:
        raise ValueError(f"{pairs}: {error}") from error
    return inputs.labels_of(points, labels, reading), known


def _time_by_trial(choice: Choice, n: int) -> str:
    """The time that training on n points will take, judged by the trial of the same settings."""
    for row in choice.rows:
        if choice.settings.items() <= row.items():
            seconds = row["seconds"] * n / row["points"]
            return f"training on {count(n, 'point')} will take about {number(seconds)} s"
    return ""
