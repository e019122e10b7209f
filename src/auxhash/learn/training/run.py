"""One run of training, from checked points to the best hash function found.

    points -> some held out -> pairs, features, first codes -> steps of MAC -> refinement

An estimator makes a `Training`, runs it, and reads the `Result`. The steps are a generator;
checkpoints, the progress bar and Ctrl-C are consumers of it.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Literal, NamedTuple

import numpy as np

from auxhash.codes import Codes
from auxhash.compute import clock, context
from auxhash.compute.arrays import AnyArray
from auxhash.compute.device import CPU, Device
from auxhash.compute.peers import peers
from auxhash.learn.smooth import N_REPORTS, Refine
from auxhash.learn.training import interrupt, progress
from auxhash.learn.training.checkpoint import Checkpoint, Saved
from auxhash.learn.training.validation import (
    HeldOut,
    TrainingPoints,
    Validation,
    hold_out,
    precision_of,
)
from auxhash.mac import affinity as affinities
from auxhash.mac import hashfunctions, loop, zstep
from auxhash.mac.affinity import Affinity, gpu
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.loop import MAC, State, Step, Validate
from auxhash.mac.losses import LossLike

Steps = Iterable[tuple[Step, State]]

MIN_GAIN = 0.001  # share of L(h), gained by an iteration of MAC, for another to follow
N_GENERATORS = 6  # of random numbers, one for each part of a run that draws some


@dataclass(frozen=True)
class Settings:
    """Settings of a run. The estimator has checked every field."""

    n_bits: int
    loss: LossLike
    algorithm: MAC
    hash_function: HashFunction  # to be prepared; or learnt before, to go on from
    n_similar: int | None = 100
    n_dissimilar: int | None = 500
    refine: Refine | Literal["auto"] | None = None
    two_step: bool = False  # whether to stop at mu = 0
    end_to_end: bool = False  # whether refinement is all there is, from the start of h
    going_on: bool = False  # whether hash_function was learnt before
    tol: float | Literal["auto"] | None = "auto"  # of MAC; "auto" depends on what follows it
    learnt_from: int = 0  # other points that it was learnt from
    validation: Validation | None = None
    device: Device = CPU
    verbose: int = 0


class Result(NamedTuple):
    """The result of a run."""

    h: HashFunction  # of the accepted step of lowest L(h), or of the last; or refined
    codes: Codes  # h(X) of the training points
    loss: float  # L(h)
    two_step: HashFunction  # h at mu = 0
    history: list[Step]
    labels: AnyArray | None  # of the training points
    affinity: Affinity
    interrupted: bool


class Training:
    """A run that is ready to start: everything has been checked, and nothing is trained yet."""

    def __init__(
        self,
        settings: Settings,
        points: TrainingPoints,
        generators: list[np.random.Generator],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        if checkpoint is not None:
            generators = checkpoint.generators(generators)
        draws, codes, centres, self.solving, holding, self.refining = generators
        self.starting = codes
        self.settings, self.checkpoint = settings, checkpoint
        self.points, held_out = hold_out(points, settings.validation, holding)
        with progress.getting_ready(bool(settings.verbose)) as now:
            self._prepare(draws, codes, centres, now)
        self.validate = self._validation(held_out)
        self.refine = self._refinement()
        self._check_penalty()
        self.algorithm = replace(settings.algorithm, tol=self._tol())
        if checkpoint is not None:
            checkpoint.check(settings.device.bring(self.h))

    def _prepare(
        self,
        draws: np.random.Generator,
        codes: np.random.Generator,
        centres: np.random.Generator,
        now: Callable[[str], None],
    ) -> None:
        """Make pairs, features, the codes to start from, and the problem of the Z step."""
        settings = self.settings
        now("pairs")
        self.affinity = self._pairs(draws)
        now("features")
        device, self.h = settings.device, settings.device.carry(settings.hash_function)
        X = device.points(self.points.X)
        if not settings.going_on:
            self.h = self.h.prepare(X, centres)
        self.F = hashfunctions.training_features(self.h, X)
        hashfunctions.with_defaults(self.h).check_bits(self.F, settings.n_bits)
        self.Z = self._first_codes(codes)
        now("lists of partners")
        self.problem = zstep.problem_on(device, self.affinity, settings.loss, settings.n_bits)

    def run(self) -> Result:
        """Train, and return the best that was found."""
        saved = None if self.checkpoint is None else self.checkpoint.saved
        history = [] if saved is None else list(saved.history)
        first: list[HashFunction] = []
        bring = self.settings.device.bring
        listener = context.Listener() if self.settings.verbose else None
        with interrupt.watching() as watch, context.using(listener=listener):
            steps = watch.until_pressed(_reported(self._consumed(listener), watch))
            best = self._chosen(_record(steps, history, first), history)
        if self.settings.going_on and self.points.init is None:
            best = self._with_what_was_learnt(*best)
        h, codes, loss = best
        learnt = bring(h), bring(codes), loss, bring(first[0])
        return Result(*learnt, history, self.points.y, self.affinity.on_processor(), watch.pressed)

    def _chosen(self, steps: Steps, history: list[Step]) -> tuple[HashFunction, Codes, float]:
        """h, h(X) and L(h): of the lowest accepted step, or of the last, if that is to be kept."""
        last: list[State] = []
        step, state = loop.lowest(_noted(steps, last))
        completed = sum(past.mu == np.inf for past in history) == N_REPORTS
        refined = completed and self.refine is not None and self.refine.keep == "refined"
        if refined or self._returns_last():
            [state] = last
            return state.h, state.H, self._loss(state.H)
        return state.h, state.H, step.loss

    def _returns_last(self) -> bool:
        """Tell whether MAC's last iterate is the result, whatever its L(h)."""
        return self.refine is None and self.algorithm.iterate == "last"

    def _with_what_was_learnt(
        self, h: HashFunction, H: Codes, loss: float
    ) -> tuple[HashFunction, Codes, float]:
        """Choose the hash function to keep: the one before, the new one, or their average.

        These points alone would make it forget what others have taught: the average is kept,
        weighted by the numbers of points, unless L(h) on these points is higher than before.
        Where there are no others, or no average can be taken, the lower L(h) decides. Where the
        last iterate is the result, L(h) decides nothing.
        """
        before = math.inf if self._returns_last() else self._loss(self.Z)
        others = self.settings.learnt_from
        middle: HashFunction | None = None
        if others:
            n = peers().sum(len(self.points.X))
            old, new = (hashfunctions.with_defaults(each) for each in (self.h, h))
            middle = old.average(new, n / (n + others), self.F)
        if middle is not None:
            codes = hashfunctions.codes(middle, self.F)
            new_loss = self._loss(codes)
            return (middle, codes, new_loss) if new_loss <= before else (self.h, self.Z, before)
        return (self.h, self.Z, before) if before <= loss else (h, H, loss)

    def _loss(self, Z: Codes) -> float:
        """L(Z) over all parts of the points."""
        return peers().sum(self.problem.loss(Z))

    def steps(self) -> Steps:
        """MAC and refinement, from the beginning or from where an interrupted run stopped."""
        algorithm, settings = self.algorithm, self.settings
        saved: Saved | None = None if self.checkpoint is None else self.checkpoint.saved
        steps: Steps
        pairs = [] if saved is None else self._carried(saved.pairs)
        if saved is not None and saved.finished:
            return pairs
        requested, resumable = settings.hash_function, self.checkpoint is not None
        to_refine = self.problem, self.F, self.refining, self.validate, requested, resumable
        if self.refine is not None and pairs and pairs[-1][1].position is not None:
            step, state = pairs[-1]
            return chain(pairs, self.refine.steps(step, state, *to_refine))
        if settings.end_to_end:
            steps = pairs or [self._untrained()]
        elif saved is None:
            steps = algorithm.steps(
                self.problem, self.F, self.h, self.Z, self.solving,
                self.points.init is None, self.validate,
            )  # fmt: skip
        else:
            self.solving = saved.rng
            later = algorithm.path(self.problem, self.F, *pairs[-1], self.solving, self.validate)
            steps = chain(pairs, later)
        if settings.two_step:
            return islice(steps, 1)
        if self.refine is None:
            return steps
        return self.refine.after(steps, *to_refine, iterate=algorithm.iterate)

    def _carried(self, pairs: list[tuple[Step, State]]) -> list[tuple[Step, State]]:
        """Steps from a file, their states on the device of this run."""
        return [(step, self.settings.device.carry(state)) for step, state in pairs]

    def _untrained(self) -> tuple[Step, State]:
        """The hash function as it starts, in place of the steps of MAC."""
        began = clock.seconds()
        h = self.h
        if not self.settings.going_on:
            h = hashfunctions.started(h, self.F, self.settings.n_bits, self.starting)
        H = hashfunctions.codes(h, self.F)
        loss, score = self._loss(H), self.validate(h) if self.validate else math.nan
        step = Step(0, 0.0, loss, loss, loss, 0, score, True, clock.seconds() - began, 0.0, 0.0)
        return step, State(h, H, H, H, None, score, ended=True)

    def _consumed(self, listener: context.Listener | None) -> Steps:
        """The steps, passed through the checkpoint and the progress bar, if there are any."""
        steps = self.steps()
        if self.checkpoint is not None:
            steps = self.checkpoint.keep(steps, self.solving, self.settings.device)
        if self.settings.verbose:
            algorithm = self.algorithm
            more = 0 if self.refine is None else N_REPORTS
            alone = self.settings.two_step or self.settings.end_to_end
            max_iter = 0 if alone else algorithm.max_iter
            path = self.problem.last_mu, algorithm.alpha, max_iter
            ends_early = algorithm.tol is not None
            steps = progress.show(steps, *path, more, listener, ends_early)
        return steps

    def _pairs(self, rng: np.random.Generator) -> Affinity:
        if self.points.affinity is not None:
            if not len(self.points.affinity):
                raise ValueError("the points held out leave no pairs of affinity to learn from")
            return self.points.affinity
        settings = self.settings
        assert self.points.y is not None  # the estimator has seen to it
        if settings.device is not CPU:
            return gpu.from_labels(
                settings.device, self.points.y, settings.n_similar, settings.n_dissimilar, rng,
            )  # fmt: skip
        return affinities.from_labels(self.points.y, settings.n_similar, settings.n_dissimilar, rng)

    def _first_codes(self, rng: np.random.Generator) -> Codes:
        """The codes `init`, those of the hash function to go on from, or random ones."""
        settings, shape = self.settings, (len(self.points.X), self.settings.n_bits)
        if self.points.init is not None:
            return settings.device.put(self.points.init)
        if settings.going_on:
            old = hashfunctions.codes(self.h, self.F)
            if old.shape != shape:
                raise ValueError(
                    f"warm_start goes on from {old.shape[1]} bits; n_bits is {shape[1]} now"
                )
            return old
        random = settings.device.put(rng.integers(0, 2, shape, dtype=np.int8))
        return (2 * random - 1).astype(np.int8)

    def _validation(self, held_out: HeldOut | None) -> Validate | None:
        validation = self.settings.validation
        if held_out is None or validation is None:
            return None
        queries = self.h.features(self.settings.device.put(held_out.X))
        return precision_of(held_out, validation, self.points, self.F, queries)

    def _refinement(self) -> Refine | None:
        refine = self.settings.refine
        if self.settings.two_step:
            return None
        if self.settings.end_to_end:
            hashfunctions.check_started(self.h)
            if refine is None:
                raise ValueError('refine is all of this training: it must be "auto" or a Refine')
            if refine == "auto":
                refine = Refine.alone(self.problem)
        if refine == "auto":
            smooth = hashfunctions.is_smooth(self.h)
            refine = Refine.suited_to(self.problem, self.h) if smooth else None
        if refine is not None:
            refine.check(self.h, self.problem)
        return refine

    def _check_penalty(self) -> None:
        """Raise, before anything is trained, if the h steps could not weight the points."""
        settings = self.settings
        mac = not (settings.two_step or settings.end_to_end)
        weighted = mac and settings.algorithm.penalty == "augmented"
        if weighted and isinstance(self.h, hashfunctions.ClassifierHash):
            self.h.check_weighted()

    def _tol(self) -> float | None:
        """The share of L(h) that an iteration of MAC must gain for another one to follow.

        Refinement gains far more, wherever MAC leaves it to start. Not so for a module of many
        layers, for which every h step is a training that counts.
        """
        if self.settings.tol != "auto":
            return self.settings.tol
        alone = self.refine is None or hashfunctions.is_shared(self.h)
        return None if alone else MIN_GAIN


def _record(
    steps: Steps, history: list[Step], first: list[HashFunction]
) -> Iterator[tuple[Step, State]]:
    """Pass the steps on; append to `history` those not in it yet, to `first` the h of mu = 0."""
    for step, state in steps:
        if step.iteration == 0:
            first.append(state.h)
        if step.iteration >= len(history):
            history.append(step)
        yield step, state


def _reported(steps: Steps, watch: interrupt.Watch) -> Iterator[tuple[Step, State]]:
    """Pass the steps on; report each to the watcher of this part, who can stop it."""
    for step, state in steps:
        watch.pressed |= peers().tell(step)
        yield step, state


def _noted(steps: Steps, last: list[State]) -> Iterator[tuple[Step, State]]:
    """Pass the steps on; `last` holds the state after the last of them."""
    for step, state in steps:
        last[:] = [state]
        yield step, state
