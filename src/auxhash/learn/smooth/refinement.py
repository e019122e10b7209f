"""Refinement: train the hash function itself, with tanh in place of the sign.

It starts from MAC's result (`MAC.iterate`), and follows the gradient of an
objective while the steepness of tanh grows (`gradient`): the loss L(h), eq. (1), or the rank of
similar points. L(h) is measured N_REPORTS times.

Which step counts in the end? With keep="lower" the one with the lowest L(h), MAC's included. But
where points are few, MAC's classifiers overfit the given pairs, and a hash function refined
on fresh pairs ranks new points better though its L(h) is higher: keep="refined" takes the last.

Where the points are in several parts, an objective is that of one part, and the parts take turns:
each step follows the gradient of a batch of the next part. (With more steps on one part before the
next, the hash function overfits its points, and L(h) of the others rises.)
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from auxhash.compute import checks, clock, threads, underway
from auxhash.compute.arrays import Matrix
from auxhash.compute.neighbors import nearest
from auxhash.compute.peers import peers
from auxhash.compute.registry import register
from auxhash.learn.smooth.classes import BATCH_SIZE as CLASS_BATCH_SIZE
from auxhash.learn.smooth.classes import ClassCodes
from auxhash.learn.smooth.gradient import RATE, DescentState, GradientDescent, Objective
from auxhash.learn.smooth.pairs import (
    BATCH_SIZE,
    PairSource,
    classes_of,
    fresh_classes,
    objective_for,
)
from auxhash.learn.smooth.rank import BATCH_SIZE as RANK_BATCH_SIZE
from auxhash.learn.smooth.rank import Rank
from auxhash.learn.smooth.similar import Both, Partners, SameClass, Similar
from auxhash.mac.hashfunctions import (
    HashFunction,
    NetworkHash,
    SmoothHashFunction,
    SVMHash,
    alternatives,
    codes,
    is_shared,
    is_smooth,
)
from auxhash.mac.loop import Returned, State, Step, Validate
from auxhash.mac.zstep import Problem

N_NEAREST = 10  # neighbours in feature space, of each point
RANK_DECAY = 25  # times the weight decay of the loss, whose slopes are smaller
N_REPORTS = 10  # times that L(h) is measured
N_STEPS, N_USUAL = (1000, 10_000), 10_000  # usual steps and the most; points up to which they do
# Of a training without MAC: rounds over the points, steps at least, and the steepness for classes.
N_ROUNDS_ALONE, MIN_STEPS_ALONE = 30, 1000
GENTLE_STEEPNESS = 1.0, 4.0
# Of the choice between networks on points held out: shares of the steps, and steps at least.
TRIAL_SHARES, MIN_TRIAL_STEPS = (0.1, 0.25), 20
# Of a network: steps at least and at most, and rounds over the points between these.
NETWORK_STEPS, NETWORK_ROUNDS = (1000, 3000), 600


@register("Refine")
@dataclass(frozen=True)
class Refine:
    """Settings of the refinement.

    Args:
        objective: "loss", that of MAC, over pairs; "rank", that of points of the same class, or
            of similar pairs, among all others; or "classes", which takes points of one class
            together, and the classes as far apart as so many can be (`refine.classes`).
        n_steps: gradient steps.
        batch: points per step; None takes 2,000 for the loss, 1,024 for the rank and 512 for the
            classes.
        pairs: for the loss, "given" takes the pairs of the affinity; "fresh" all pairs of a batch,
            with the weights that draws have in expectation, and generalises better; "auto" is
            "fresh" if the affinity was drawn from few enough classes, else "given".
        steepness: s in the first step and in the last; it grows geometrically.
        rate: length of the first step; it falls linearly to 0. A PyTorch module has a rate and a
            schedule of its own; they are taken for 0.02, and other values are relative to it.
        neighbors: for the rank, the share of similar points that are one of the 10 nearest in
            feature space in place of one of the same class: for classes that are not among the
            labels.
        cross_entropy: for the classes, the weight of a cross-entropy that is added.
        keep: "lower" ends with the lowest L(h), MAC's included, so that refinement never raises it;
            "refined" with the last step.
    """

    n_steps: int = 1000
    batch: int | None = None
    pairs: PairSource = "auto"
    steepness: tuple[float, float] = (2.0, 20.0)
    rate: float = RATE
    objective: Literal["loss", "rank", "classes"] = "loss"
    keep: Literal["lower", "refined"] = "lower"
    neighbors: float = 0.0
    cross_entropy: float = 0.0

    def __post_init__(self) -> None:
        checks.integer("n_steps", self.n_steps, 1)
        if self.batch is not None:
            checks.integer("batch", self.batch, 1)
        checks.one_of("objective", self.objective, ("loss", "rank", "classes"))
        checks.number("cross_entropy", self.cross_entropy, 0)
        if self.cross_entropy and self.objective != "classes":
            raise ValueError('cross_entropy is for objective="classes"')
        checks.number("neighbors", self.neighbors, 0)
        if self.neighbors > (self.objective == "rank"):
            raise ValueError(
                f'neighbors is a share, from 0 to 1, for objective="rank"; got {self.neighbors}'
            )
        checks.one_of("keep", self.keep, ("lower", "refined"))
        checks.one_of("pairs", self.pairs, ("auto", "given", "fresh"))
        if not (len(self.steepness) == 2 and 0 < self.steepness[0] <= self.steepness[1] < np.inf):
            raise ValueError(f"steepness must be two rising positive numbers, got {self.steepness}")
        checks.number("rate", self.rate, 0, strict=True)

    def check_gradient(self, h: HashFunction) -> None:
        """Raise TypeError if h has no gradient; it need not be prepared."""
        if not is_smooth(h):
            raise TypeError(f"{type(h).__name__} has no gradient to refine it by; set refine=None")

    def check(self, h: HashFunction, problem: Problem) -> None:
        """Raise, before anything is trained, if h could not be refined."""
        self.check_gradient(h)
        if self.neighbors and is_shared(h):
            raise TypeError(
                f"neighbors are those of fixed features, and {type(h).__name__} learns its own; "
                "leave it at 0"
            )
        if self.objective == "loss":
            fresh_classes(problem, self.pairs, self.batch or BATCH_SIZE)
        elif self.objective == "classes":
            if classes_of(problem.affinity) is None:
                raise ValueError(
                    'objective="classes" needs an affinity drawn from classes '
                    "(affinity.from_labels with one label per point)"
                )
        elif not len(_similar(problem).usable()):
            raise ValueError('objective="rank" needs similar pairs, and there are none')

    @classmethod
    def suited_to(cls, problem: Problem, h: HashFunction) -> "Refine":
        """The settings of "auto".

        Where pairs can be drawn anew, the last step is kept even if its L(h) is not the lowest.
        """
        fresh = fresh_classes(problem, "auto", BATCH_SIZE) is not None
        if not peers().least(int(fresh)):
            return cls()
        if isinstance(h, NetworkHash):
            return cls.for_network(peers().sum(problem.n_points))
        return cls.for_many(problem.n_points) if peers().n == 1 else cls(keep="refined")

    @classmethod
    def for_many(cls, n: int) -> "Refine":
        """The settings of "auto" for n points and fresh pairs.

        From many points more can be learnt, and it takes more steps. (Where the points are in
        several parts, a step takes a round of messages: they make do with the usual number.)
        """
        usual, most = N_STEPS
        return cls(n_steps=int(min(most, usual * max(1.0, n / N_USUAL) ** 0.5)), keep="refined")

    @classmethod
    def for_network(cls, n: int) -> "Refine":
        """The settings of "auto" for a network, n points and fresh pairs.

        A network that has to do without some of its units learns more slowly.
        """
        least, most = NETWORK_STEPS
        return cls(n_steps=min(most, max(least, n * NETWORK_ROUNDS // BATCH_SIZE)), keep="refined")

    @classmethod
    def alone(cls, problem: Problem) -> "Refine":
        """The settings of "auto" where there is no MAC before: all comes from these steps."""
        n_steps = max(MIN_STEPS_ALONE, N_ROUNDS_ALONE * problem.n_points // CLASS_BATCH_SIZE)
        pairs = cls(n_steps=n_steps, batch=CLASS_BATCH_SIZE, keep="refined")
        if classes_of(problem.affinity) is None:
            return pairs
        return replace(pairs, objective="classes", steepness=GENTLE_STEEPNESS)

    def _objective(self, problem: Problem, F: Matrix) -> Objective:
        if self.objective == "loss":
            return objective_for(problem, self.pairs, self.batch or BATCH_SIZE)
        classes = classes_of(problem.affinity)
        if self.objective == "classes":
            assert classes is not None  # `check` has seen to it
            batch = self.batch or CLASS_BATCH_SIZE
            return ClassCodes(classes, problem.n_bits, batch, self.cross_entropy, problem.device)
        similar = _similar(problem)
        if self.neighbors:
            k = min(N_NEAREST, len(F) - 1)
            parts = threads.chunks(len(F), problem.device.rows(BATCH_SIZE, F.shape[1]))
            points = np.concatenate([problem.device.fetch(F[rows]) for rows in parts])[:, :-1]
            near = Partners.of_table(nearest(points, k=k)[0])
            similar = Both(similar, near, self.neighbors)
        return Rank(similar, self.batch or RANK_BATCH_SIZE, device=problem.device)

    def after(
        self,
        steps: Iterable[tuple[Step, State]],
        problem: Problem,
        F: Matrix,
        rng: np.random.Generator,
        validate: Validate | None = None,
        requested: HashFunction | None = None,
        resumable: bool = False,
        iterate: Returned = "lowest",
    ) -> Iterator[tuple[Step, State]]:
        """The steps of MAC, then those of the refinement of that of `iterate` among them.

        `requested` is the hash function as the user asked for it: what it leaves open (a network's
        dropout and noise) is chosen by `validate`. With `resumable`, states tell where to go on.
        """
        best: tuple[Step, State] | None = None
        last = 0
        for step, state in steps:
            yield step, state
            last = step.iteration
            lower = step.accepted and (best is None or step.loss < best[0].loss)
            if lower or iterate == "last":  # of an ignored step, the state is the one before
                best = step, state
        if best is not None:
            step, state = best
            step = replace(step, iteration=last)
            yield from self.steps(step, state, problem, F, rng, validate, requested, resumable)

    def steps(
        self,
        step: Step,
        state: State,
        problem: Problem,
        F: Matrix,
        rng: np.random.Generator,
        validate: Validate | None = None,
        requested: HashFunction | None = None,
        resumable: bool = False,
    ) -> Iterator[tuple[Step, State]]:
        """Go on from `state`, which `step` led to. As Z = h(X) throughout, mu is infinite."""
        began = clock.seconds()
        h = state.h if state.position is None else state.position.h
        if not is_smooth(h):
            raise TypeError(f"{type(h).__name__} has no gradient to refine it by")
        if state.position is None and validate is not None and requested is not None:
            h = self._chosen(alternatives(h, requested), problem, F, rng, validate)
        descent = self._descent(h, problem, F, rng)
        n_reports = 0
        if state.position is not None:
            descent.go_on(state.position, rng)
            n_reports = state.position.reports
        ends = np.linspace(0, self.n_steps, N_REPORTS + 1).astype(int)
        for report, (start, stop) in enumerate(pairwise(ends[n_reports:]), n_reports + 1):
            with threads.pool() as run:
                _move(descent, range(start, stop), run, rng)
            h = h.moved(descent.smooth.weights())
            H = codes(h, F)
            loss = peers().sum(problem.loss(H))
            new_score = validate(h) if validate else float("nan")
            accepted = not new_score < state.score
            if accepted:
                state = replace(state, h=h, H=H, Z=H, trained=H, score=new_score)
            if resumable:
                state = replace(state, position=descent.position(report, h, rng))
            took = clock.seconds() - began, 0.0, 0.0  # no Z step, no h step
            at = step.iteration + report - n_reports
            yield Step(at, np.inf, loss, loss, loss, 0, new_score, accepted, *took), state
            began = clock.seconds()

    def _descent(
        self, h: SmoothHashFunction, problem: Problem, F: Matrix, rng: np.random.Generator
    ) -> GradientDescent:
        objective = self._objective(problem, F)
        if self.objective == "rank" and isinstance(h, SVMHash | NetworkHash):
            h = replace(h, decay=RANK_DECAY * h.decay)
        with threads.pool():
            smooth = h.smooth(F, rng)
        return GradientDescent(smooth, objective, self.n_steps, self.steepness, self.rate, rng)

    def _chosen(
        self,
        candidates: list[SmoothHashFunction],
        problem: Problem,
        F: Matrix,
        rng: np.random.Generator,
        validate: Validate,
    ) -> SmoothHashFunction:
        """The candidate that is best on points held out, after fewer steps than all.

        By halving: the better half after one share of the steps goes on to the next. All have the
        same random numbers, and so has the refinement that follows.
        """
        for share in TRIAL_SHARES:
            if len(candidates) == 1:
                break
            short = replace(self, n_steps=max(MIN_TRIAL_STEPS, int(share * self.n_steps)))
            scores = [short._score(h, problem, F, deepcopy(rng), validate) for h in candidates]
            order = sorted(range(len(scores)), key=lambda at: -scores[at])
            candidates = [candidates[at] for at in order[: (len(order) + 1) // 2]]
        return candidates[0]

    def _score(
        self,
        h: SmoothHashFunction,
        problem: Problem,
        F: Matrix,
        rng: np.random.Generator,
        validate: Validate,
    ) -> float:
        """Score h by `validate` after all these steps."""
        descent = self._descent(h, problem, F, rng)
        with threads.pool() as run:
            _move(descent, range(self.n_steps), run, rng)
        return validate(h.moved(descent.smooth.weights()))


def _move(
    descent: GradientDescent, steps: range, run: threads.Run, rng: np.random.Generator
) -> None:
    """Make these steps; where the points are in several parts, on each part in turn."""
    if peers().n == 1:
        for t in underway.each("gradient steps", steps):
            descent.move(t, run)
        return
    # A part that was lost is told where these steps led, and draws on from there.
    seed = int(rng.integers(2**63))
    descent.restore(*peers().once(partial(_in_turn, descent, steps, run, seed)))


def _in_turn(descent: GradientDescent, steps: range, run: threads.Run, seed: int) -> DescentState:
    """Make these steps, each on the next part of the points; return the state, the same in all."""
    descent.begin(np.random.default_rng(seed))
    for t in steps:
        gradients = peers().by(t % peers().n, partial(descent.gradients, t, run))
        descent.follow(t, gradients)
    return descent.state()


def _similar(problem: Problem) -> Similar:
    """Points of the same class, or else of the similar pairs."""
    classes = classes_of(problem.affinity)
    return Partners.of_affinity(problem.affinity) if classes is None else SameClass(classes)
