"""The method of auxiliary coordinates: Z step and h step in turn while mu grows (fig. 1).

    for mu = 0 < mu_1 < mu_1 alpha < ...:  Z step; stop if Z = h(X); h step

It solves min L(Z) such that Z = h(X), eq. (4), by the penalty of eq. (5).

`MAC.steps` is a generator. Progress bars, checkpoints and plots consume it; it knows none of them.
Where others train on points of their own (`compute.peers`), Z steps are local, and every number is
one of all points.
Equations and figures are numbered as in the paper.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from auxhash.codes import Codes, sign
from auxhash.compute import clock
from auxhash.compute import device as devices
from auxhash.compute.arrays import Array, Matrix
from auxhash.compute.checks import flag, integer
from auxhash.compute.peers import peers, quantile
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions import HashFunction, codes, h_step
from auxhash.mac.hashfunctions.position import Position
from auxhash.mac.zstep import Penalty, Problem, Solver, Start, ZStep, first_codes, z_step

Validate = Callable[[HashFunction], float]
HStep = Literal["monotone", "plain"]
Returned = Literal["lowest", "last"]
H_STEPS, RETURNED = get_args(HStep), get_args(Returned)

START_WEIGHT = (
    0.01  # of points for the hash function that the other parts start from: a rough one will do
)
FLIPPED_SHARE = 0.01  # of the entries of Z that differ from h(X): those that flip at mu_1
LARGEST_MU = 1e150
NUMBERS = (
    *("mu", "loss", "free_loss", "penalized_loss", "score"),
    *("seconds", "z_seconds", "h_seconds"),
)


@register("Step")
@dataclass(frozen=True)
class Step:
    """The numbers of one iteration."""

    iteration: int  # 0 is the two-step solution, at mu = 0
    mu: float
    loss: float  # L(h), eq. (1): the loss of the codes h(X)
    free_loss: float  # L(Z), eq. (10)
    penalized_loss: float  # L_P(h, Z; mu), eq. (5)
    violations: int  # entries of Z that differ from h(X)
    score: float  # validation precision; NaN without validation
    accepted: bool
    seconds: float  # in all; NaN in a model that was loaded: equal models are equal files
    z_seconds: float = math.nan  # of the Z step; NaN as above
    h_seconds: float = math.nan  # of the h step; NaN as above
    skipped: int = 0  # updates of a bit in the Z step not made, as they would have raised L_P

    def check_read(self) -> None:
        for name in ("iteration", "violations", "skipped"):
            integer(name, getattr(self, name), 0)
        for name in NUMBERS:
            if not isinstance(getattr(self, name), (int, float)):
                raise ValueError(f"{name} must be a number, got {getattr(self, name)!r}")
        flag("accepted", self.accepted)


@register("State")
@dataclass(frozen=True)
class State:
    """State of the algorithm, from which the next iteration starts."""

    h: HashFunction
    H: Codes  # h(X)
    Z: Codes
    trained: Codes  # (n, b): the targets that each bit of h was last trained on
    multipliers: Array | None  # of the augmented Lagrangian
    score: float = math.nan  # validation precision of h
    ended: bool = False  # whether MAC stops here: Z = h(X), or the step gained too little
    position: Position | None = None  # of a refinement under way


@dataclass(frozen=True)
class Iterate:
    """Result of a Z step and an h step, and the time that they took."""

    state: State
    free_loss: float  # L(Z)
    penalized_loss: float  # L_P
    z_seconds: float
    h_seconds: float
    skipped: int  # as in Step


@dataclass(frozen=True)
class MAC:
    """The algorithm's settings.

    `mu` is mu_1, or "auto": the mu at which Z starts to change towards h(X), raised where necessary
    so that `max_iter` iterations reach the mu past which nothing can change. `start` says where the
    free codes of mu = 0 start from: "random" from the codes given to `steps`; otherwise a first
    pass makes them bit after bit (`zstep.first_codes`), which counts as one of the `max_sweeps`.
    `tol` ends MAC after an accepted step that lowers L(h) by less than this share of it; None, as
    in the paper, goes on until Z = h(X). `h_step` "plain" fits every classifier to (X, Z_i) without
    a condition, as sec. 3.2 and fig. 1 do; "monotone" keeps a bit's old one where it is better.
    `iterate` says which accepted step is the result: that of "lowest" L(h), or, as in fig. 1, the
    "last".
    """

    solver: Solver
    mu: float | Literal["auto"] = "auto"
    alpha: float = 1.4
    max_iter: int = 50
    max_sweeps: int = 2
    penalty: Literal["quadratic", "augmented"] = "quadratic"
    start: Start = "random"
    tol: float | None = None
    h_step: HStep = "monotone"
    iterate: Returned = "lowest"

    def steps(
        self,
        problem: Problem,
        F: Matrix,
        h: HashFunction,
        Z: Codes,
        rng: np.random.Generator,
        free: bool = True,
        validate: Validate | None = None,
    ) -> Iterator[tuple[Step, State]]:
        """Run from codes Z and features F = h.features(X); yield each step and its state.

        Args:
            free: whether the Z step at mu = 0 is made, starting from Z. If False, Z is taken as
                its result.
            validate: precision of a hash function on held-out data; a step that lowers it is not
                accepted: the state stays as it was, and the next mu is tried.
        """
        began = clock.seconds()
        iterate = self.two_step(problem, F, h, Z, rng, free)
        score = validate(iterate.state.h) if validate else math.nan
        iterate = replace(iterate, state=replace(iterate.state, score=score))
        step = _step(0, 0.0, problem, iterate, True, began)
        yield step, iterate.state
        yield from self.path(problem, F, step, iterate.state, rng, validate)

    def path(
        self,
        problem: Problem,
        F: Matrix,
        step: Step,
        state: State,
        rng: np.random.Generator,
        validate: Validate | None = None,
    ) -> Iterator[tuple[Step, State]]:
        """Yield the steps that follow `step`, which led to `state` and left `rng` as it is."""
        mu = step.mu
        loss = step.loss if step.accepted else peers().sum(problem.loss(state.H))
        for iteration in range(step.iteration + 1, self.max_iter + 1):
            if state.ended:
                break
            began = clock.seconds()
            mu = mu * self.alpha if iteration > 1 else self.first_mu(problem, state, rng)
            if mu > LARGEST_MU:  # products with it would leave the double range
                break
            iterate = self._iterate(problem, F, state, mu, rng)
            if validate and not iterate.state.ended:  # where Z = h(X), h is the same
                score = validate(iterate.state.h)
                iterate = replace(iterate, state=replace(iterate.state, score=score))
            accepted = not iterate.state.score < state.score
            step = _step(iteration, mu, problem, iterate, accepted, began)
            if accepted:
                gained, loss = loss - step.loss, step.loss
                little = self.tol is not None and gained < self.tol * abs(loss)
                state = replace(iterate.state, ended=iterate.state.ended or little)
            yield step, state

    def two_step(
        self,
        problem: Problem,
        F: Matrix,
        h: HashFunction,
        Z: Codes,
        rng: np.random.Generator,
        free: bool,
    ) -> Iterate:
        """Run two-step hashing, where MAC starts: the step at mu = 0.

        A subclass may find it in another way, as `learn.baselines.stagewise` does.
        """
        began, skipped = clock.seconds(), 0.0
        if free:
            result = self._free_codes(problem, F, h, Z, rng)
            Z, free_loss, skipped = result.Z, result.free_loss, result.skipped
        else:
            free_loss = problem.loss(Z)
        free_loss, skipped = _totals(free_loss, skipped)
        between = clock.seconds()
        h, H = h_step(h, None, F, Z, np.arange(problem.n_bits))
        ended = clock.seconds()
        multipliers = np.zeros_like(Z, np.float64) if self.penalty == "augmented" else None
        state = State(h, H, Z, Z, multipliers)
        took = between - began, ended - between
        return Iterate(state, free_loss, free_loss, *took, int(skipped))

    def _free_codes(
        self, problem: Problem, F: Matrix, h: HashFunction, Z: Codes, rng: np.random.Generator
    ) -> ZStep:
        """Run the Z step at mu = 0.

        Where there are several parts, and no pairs between them, each would end with bits of its
        own choice, and no hash function could serve them all. So the first part goes ahead, and the
        others start from the codes that a hash function trained on its points gives them.
        """
        if peers().place == 0:
            sweeps = self.max_sweeps
            if self.start != "random":
                Z, sweeps = first_codes(problem, self.start, self.solver, rng), sweeps - 1
            result = z_step(problem, Z, Penalty(Z, 0.0), self.solver, sweeps, rng)
            if peers().n == 1:
                return result
            Z = result.Z
        weight = np.full(Z.shape, START_WEIGHT * (peers().place == 0))
        bits = np.arange(problem.n_bits)
        like = codes(h.refit(F, Z, bits, weight), F)
        if peers().place == 0:
            return result
        result = z_step(problem, like, Penalty(like, 0.0), self.solver, self.max_sweeps, rng)
        # A solver may begin anew; a bit that is opposite for all points has the same L(Z).
        opposite = (result.Z != like).mean(axis=0) > 0.5
        return replace(result, Z=np.where(opposite, -result.Z, result.Z).astype(np.int8))

    def _iterate(
        self, problem: Problem, F: Matrix, state: State, mu: float, rng: np.random.Generator
    ) -> Iterate:
        """Run a Z step, then an h step unless Z = h(X)."""
        began = clock.seconds()
        penalty = Penalty(state.H, mu, state.multipliers)
        result = z_step(problem, state.Z, penalty, self.solver, self.max_sweeps, rng)
        Z = result.Z
        free_loss, penalized, skipped, differing = _totals(
            result.free_loss, result.value, result.skipped, (Z != state.H).sum()
        )
        between = clock.seconds()
        # Not after the h step: a Z step that max_sweeps cut short can still have flips to make.
        if not differing:
            state = replace(state, Z=Z, ended=True)
            took = between - began, 0.0
            return Iterate(state, free_loss, penalized, *took, int(skipped))
        if state.multipliers is None:
            target, weight = Z, None
            changed = peers().sum((state.trained != Z).sum(axis=0))
            bits = np.flatnonzero(devices.of(changed).fetch(changed))
        else:
            pull = Z + state.multipliers / (2 * mu)
            target, weight = sign(pull), np.abs(pull)
            bits = np.arange(problem.n_bits)
        monotone = self.h_step == "monotone"
        h, H = h_step(state.h, state.H, F, target, bits, weight, monotone)
        took = between - began, clock.seconds() - between
        penalized = free_loss + peers().sum(replace(penalty, H=H).value(Z))
        multipliers = state.multipliers
        if multipliers is not None:
            multipliers = multipliers + 2 * mu * (Z.astype(np.float64) - H)
        state = State(h, H, Z, target, multipliers)
        return Iterate(state, free_loss, penalized, *took, int(skipped))

    def first_mu(self, problem: Problem, state: State, rng: np.random.Generator) -> float:
        """Return mu_1: as set, or the mu at which entries of Z start to flip to those of h(X).

        The first entry flips at a mu too small to be of use, so we take the mu at which
        FLIPPED_SHARE of the entries that differ from h(X) flip, not counting those that flip at
        mu = 0 already because the free codes were not at an optimum.
        """
        if self.mu != "auto":
            return float(self.mu)
        # Below this, max_iter iterations would not reach the mu past which nothing changes.
        last_mu = peers().most(problem.last_mu)
        least = last_mu * self.alpha ** (1 - self.max_iter)
        alone = problem.flip_thresholds(state.Z, state.H)
        alone = alone[alone > 0]
        n_alone = peers().sum(len(alone))
        if not n_alone:
            return least or last_mu
        mu = max(least, quantile(alone, FLIPPED_SHARE))
        if not getattr(self.solver, "single_flips", False):
            # A solver that flips several points together does so at a lower mu than one by one.
            seed = int(rng.integers(2**63))
            few = self._flipped(problem, state, 0.0, seed) + FLIPPED_SHARE * n_alone
            while mu / 2 > least and self._flipped(problem, state, mu, seed) > few:
                mu /= 2
        return mu

    def _flipped(self, problem: Problem, state: State, mu: float, seed: int) -> int:
        """Count the entries of Z that one sweep at this mu flips to those of h(X)."""
        penalty = Penalty(state.H, mu, state.multipliers)
        Z = z_step(problem, state.Z, penalty, self.solver, 1, np.random.default_rng(seed)).Z
        return peers().sum(int(((Z == state.H) & (state.Z != state.H)).sum()))


def _step(
    iteration: int, mu: float, problem: Problem, iterate: Iterate, accepted: bool, began: float
) -> Step:
    """Return the numbers of an iteration that began at `began` and ends now."""
    state = iterate.state
    loss, violations = _totals(problem.loss(state.H), (state.Z != state.H).sum())
    return Step(
        iteration,
        mu,
        loss,
        iterate.free_loss,
        iterate.penalized_loss,
        int(violations),
        state.score,
        accepted,
        clock.seconds() - began,
        iterate.z_seconds,
        iterate.h_seconds,
        iterate.skipped,
    )


def _totals(*numbers: float) -> list[float]:
    """Return the sum of each number over all parts of the points."""
    plain = [float(number) for number in numbers]  # a GPU's are arrays
    totals: list[float] = peers().sum(np.array(plain)).tolist()
    return totals


def lowest(steps: Iterable[tuple[Step, State]]) -> tuple[Step, State]:
    """Return the accepted step with the lowest L(h), the two-step solution included."""
    accepted = (pair for pair in steps if pair[0].accepted)
    return min(accepted, key=lambda pair: pair[0].loss)
