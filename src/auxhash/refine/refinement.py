"""Refinement: minimise L(h) itself, eq. (1), with tanh in place of the sign.

It starts from the accepted step of MAC with the lowest L(h), and follows the gradient of the smooth
loss while the steepness of tanh grows (`gradient`). L(h) itself is measured REPORTS times, and the
lowest, MAC's included, is what counts, so that refinement never raises it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from auxhash import checks
from auxhash.compute import clock, threads
from auxhash.compute.arrays import Array
from auxhash.hashfunctions import HashFunction, codes, is_smooth
from auxhash.mac import State, Step, Validate
from auxhash.refine.gradient import GradientDescent
from auxhash.refine.pairs import BATCH, PairSource, objective_for
from auxhash.storage.encoding import register
from auxhash.zstep import Problem

REPORTS = 10  # times that L(h) is measured


@register("Refine")
@dataclass(frozen=True)
class Refine:
    """Settings of the refinement.

    Args:
        n_steps: gradient steps.
        batch: points per step.
        pairs: "given" takes the pairs of the affinity; "fresh" all pairs of a batch, with the
            weights that draws have in expectation, and generalises better; "auto" is "fresh" if
            the affinity was drawn from few enough classes, else "given".
        steepness: s in the first step and in the last; it grows geometrically.
        rate: length of the first step; it falls linearly to 0.
    """

    n_steps: int = 1000
    batch: int = BATCH
    pairs: PairSource = "auto"
    steepness: tuple[float, float] = (2.0, 20.0)
    rate: float = 0.02

    def __post_init__(self) -> None:
        checks.whole("n_steps", self.n_steps, 1)
        checks.whole("batch", self.batch, 1)
        if self.pairs not in ("auto", "given", "fresh"):
            raise ValueError(f'pairs must be "auto", "given" or "fresh", got {self.pairs!r}')
        if not (len(self.steepness) == 2 and 0 < self.steepness[0] <= self.steepness[1] < np.inf):
            raise ValueError(f"steepness must be two rising positive numbers, got {self.steepness}")
        checks.number("rate", self.rate, 0, strict=True)

    def check(self, h: HashFunction, problem: Problem) -> None:
        """Raise, before anything is trained, if h could not be refined."""
        if not is_smooth(h):
            raise TypeError(f"{type(h).__name__} has no gradient to refine it by; set refine=None")
        objective_for(problem, self.pairs, self.batch)

    def after(
        self,
        steps: Iterable[tuple[Step, State]],
        problem: Problem,
        F: Array,
        rng: np.random.Generator,
        validate: Validate | None = None,
    ) -> Iterator[tuple[Step, State]]:
        """The steps of MAC, then those of the refinement of the best among them."""
        best: tuple[Step, State] | None = None
        last = 0
        for step, state in steps:
            yield step, state
            last = step.iteration
            if step.accepted and (best is None or step.loss < best[0].loss):
                best = step, state
        if best is not None:
            step, state = best
            step = replace(step, iteration=last)
            yield from self.steps(problem, F, step, state, rng, validate)

    def steps(
        self,
        problem: Problem,
        F: Array,
        step: Step,
        state: State,
        rng: np.random.Generator,
        validate: Validate | None = None,
    ) -> Iterator[tuple[Step, State]]:
        """Go on from `state`, which `step` led to. As Z = h(X) throughout, mu is infinite."""
        began = clock.seconds()
        objective = objective_for(problem, self.pairs, self.batch)
        h = state.h
        if not is_smooth(h):
            raise TypeError(f"{type(h).__name__} has no gradient to refine it by")
        with threads.pool(problem.n_jobs):
            smooth = h.smooth(F, rng)
        descent = GradientDescent(smooth, objective, self.n_steps, self.steepness, self.rate, rng)
        ends = np.linspace(0, self.n_steps, REPORTS + 1).astype(int)
        for iteration, (start, stop) in enumerate(pairwise(ends), step.iteration + 1):
            with threads.pool(problem.n_jobs) as run:
                for t in range(start, stop):
                    descent.move(t, run)
            h = h.moved(smooth.weights())
            H = codes(h, F, problem.n_jobs)
            loss = problem.loss(H)
            new_score = validate(h) if validate else float("nan")
            accepted = not new_score < state.score
            if accepted:
                state = replace(state, h=h, H=H, Z=H, trained=H, score=new_score)
            took = clock.seconds() - began, 0.0, 0.0  # no Z step, no h step
            yield Step(iteration, np.inf, loss, loss, loss, 0, new_score, accepted, *took), state
            began = clock.seconds()
