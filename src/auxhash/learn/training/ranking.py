"""One run of training for rank, from checked points to a hash function; see `refine.rank`.

    points -> a sample of them, their neighbours, features -> a linear start -> gradient steps

The steps are a generator, as MAC's are: checkpoints, the progress bar and Ctrl-C consume it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import approximate, clock, context, neighbors, threads, underway
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.bars import new_bar
from auxhash.compute.checks import integer, number
from auxhash.compute.device import CPU, Device
from auxhash.compute.neighbors import Metric
from auxhash.compute.registry import register
from auxhash.learn.smooth.gradient import GradientDescent
from auxhash.learn.smooth.rank import Rank
from auxhash.learn.smooth.similar import Partners
from auxhash.learn.training import interrupt
from auxhash.learn.training.checkpoint import Checkpoint, RunIdentity
from auxhash.learn.training.progress import getting_ready
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import HashFunction, SmoothHashFunction, started

REPORTS = 50  # times that the rank is measured, and that a run can be stopped or go on
STEEPNESS = 1.0, 10.0  # of tanh, in the first step and in the last
RATE = 0.01  # length of the first step


@register("RankStep")
@dataclass(frozen=True)
class RankStep:
    """Report after some gradient steps."""

    step: int  # gradient steps made so far
    rank: float  # typical rank of a similar point with these codes: the geometric mean
    seconds: float  # since the last such report; NaN in a model that was loaded

    def check_read(self) -> None:
        integer("step", self.step, 0)
        number("rank", self.rank, 0)
        if not isinstance(self.seconds, (int, float)):
            raise ValueError(f"seconds must be a number, got {self.seconds!r}")


@register("RankCheckpoint")
@dataclass(frozen=True)
class RankSaved:
    """The content of a checkpoint: the parameters with Adam's means, and the generator."""

    run: RunIdentity
    generators: list[np.random.Generator]  # one per part, as the run began
    rng: np.random.Generator
    history: list[RankStep]
    parameters: list[Single]
    mean: list[Single]
    square: list[Single]


@dataclass(frozen=True)
class RankSettings:
    """Settings of a run. The estimator has checked every field."""

    n_bits: int
    hash_function: SmoothHashFunction  # to be prepared; see `hashfunctions.check_started`
    metric: Metric
    n_neighbors: int
    n_steps: int
    max_points: int | None  # a random sample of so many is learnt from
    device: Device = CPU
    verbose: int = 0


class RankResult(NamedTuple):
    """The result of a run."""

    h: HashFunction
    history: list[RankStep]
    n_learnt: int  # points that were learnt from
    interrupted: bool


N_GENERATORS = 4  # of random numbers, one for each part of a run that draws some


class RankTraining:
    """A run that is ready to start: its points are chosen and their neighbours found."""

    def __init__(
        self,
        settings: RankSettings,
        X: NDArray[Any],
        nearest: Numbers | None,
        generators: list[np.random.Generator],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        if checkpoint is not None:
            generators = checkpoint.generators(generators)
        choosing, preparing, self.rng, measuring = generators
        self.settings, self.checkpoint = settings, checkpoint
        max_points = settings.max_points
        if max_points is not None and nearest is None and len(X) > max_points:
            X = X[np.sort(choosing.permutation(len(X))[:max_points])]
        if nearest is None:
            with getting_ready(bool(settings.verbose)) as now:
                now("nearest neighbours")
                nearest = self._nearest(X)
        h = settings.hash_function.prepare(X, preparing)
        F = h.features(X)
        hashfunctions.with_defaults(h).check_bits(F, settings.n_bits)
        self.h = started(h, F, settings.n_bits, preparing)
        self.objective = Rank(Partners.of_table(nearest), device=settings.device)
        device = settings.device
        with threads.pool():
            self.smooth = device.carry(self.h).smooth(device.put(F), self.rng)
        self.descent = GradientDescent(
            self.smooth, self.objective, settings.n_steps, STEEPNESS, RATE, self.rng
        )
        self.measured = next(self.objective.batches(measuring))
        self.n_points = len(X)
        if checkpoint is not None:
            checkpoint.check(self.h)

    def _nearest(self, X: NDArray[Any]) -> Numbers:
        settings = self.settings
        X = X.reshape(len(X), -1)  # of pictures, the pixels
        k = min(settings.n_neighbors, len(X) - 1)
        if settings.device is not CPU:
            return neighbors.nearest_on(settings.device, X, k, settings.metric)
        return approximate.near(X, k, settings.metric)

    def run(self) -> RankResult:
        """Make all steps, or those until Ctrl-C."""
        saved = None if self.checkpoint is None else self.checkpoint.saved
        history: list[RankStep] = [] if saved is None else list(saved.history)
        if saved is not None:
            self._restore(saved)
        listener = context.Listener() if self.settings.verbose else None
        with interrupt.watching() as watch, context.using(listener=listener):
            steps = self._shown(self._checkpointed(self._steps(history)), listener)
            for step in watch.until_pressed(steps):
                history.append(step)
        weights = [self.settings.device.fetch(each) for each in self.smooth.weights()]
        h = self.h.moved(weights)
        return RankResult(h, history, self.n_points, watch.pressed)

    def _steps(self, history: list[RankStep]) -> Iterator[RankStep]:
        """The reports that are still to come."""
        n_steps = self.settings.n_steps
        done = history[-1].step if history else 0
        ends = np.unique(np.linspace(0, n_steps, REPORTS + 1).astype(int))
        for start, stop in pairwise(ends.tolist()):
            if start < done:
                continue
            began = clock.seconds()
            self.descent.begin(self.rng)
            with threads.pool() as run:
                for t in underway.each("gradient steps", range(start, stop)):
                    self.descent.move(t, run)
                rank = self._rank(run)
            yield RankStep(stop, rank, clock.seconds() - began)

    def _rank(self, run: threads.Run) -> float:
        return self.objective.typical(lambda rows: self.smooth.outputs(rows, run), self.measured)

    def _checkpointed(self, steps: Iterable[RankStep]) -> Iterator[RankStep]:
        """Pass the steps on once they are on disk, if there is a checkpoint."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            yield from steps
            return
        history = [] if checkpoint.saved is None else list(checkpoint.saved.history)
        for step in steps:
            history.append(step)
            run = checkpoint.run, checkpoint.began, self.rng
            checkpoint.write(RankSaved(*run, history, *self.descent.state()))
            yield step

    def _restore(self, saved: RankSaved) -> None:
        self.rng.bit_generator.state = saved.rng.bit_generator.state
        self.descent.restore(saved.parameters, saved.mean, saved.square)

    def _shown(
        self, steps: Iterable[RankStep], listener: context.Listener | None
    ) -> Iterator[RankStep]:
        """Pass the steps on, and show them in a progress bar if that is wanted."""
        if not self.settings.verbose:
            yield from steps
            return
        with new_bar(listener=listener) as bar:
            total, stage = self.settings.n_steps, "learning"
            task = bar.add_task("", total=total, stage=stage, stride=total / REPORTS)
            for step in steps:
                description = f"a neighbour's rank {step.rank:,.1f}"
                bar.update(task, completed=step.step, description=description)
                yield step
