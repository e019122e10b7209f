"""The method of auxiliary coordinates: Z step and h step in turn while mu grows (fig. 1).

    for mu = 0 < mu_1 < mu_1 alpha < ...:  Z step; stop if Z = h(X); h step

`MAC.steps` is a generator. Progress bars, checkpoints and plots consume it; it knows none of them.
Equations and figures are numbered as in the paper.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from auxhash.checks import flag, whole
from auxhash.codes import Codes, sign
from auxhash.compute import clock
from auxhash.compute.arrays import Array
from auxhash.hashfunctions import HashFunction, h_step
from auxhash.storage.encoding import register
from auxhash.zstep import Penalty, Problem, Solver, Start, first_codes, z_step

Validate = Callable[[HashFunction], float]

FIRST_SHARE = 0.01  # of the entries of Z that differ from h(X): those that flip at mu_1
LARGEST_MU = 1e150


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
    seconds: float  # NaN in a model that was loaded: equal models are equal files

    def check_read(self) -> None:
        for name in ("iteration", "violations"):
            whole(name, getattr(self, name), 0)
        for name in ("mu", "loss", "free_loss", "penalized_loss", "score", "seconds"):
            if not isinstance(getattr(self, name), (int, float)):
                raise ValueError(f"{name} must be a number, got {getattr(self, name)!r}")
        flag("accepted", self.accepted)


@register("State")
@dataclass(frozen=True)
class State:
    """Where the algorithm stands: all that the next iteration needs."""

    h: HashFunction
    H: Codes  # h(X)
    Z: Codes
    trained: Codes  # (n, b): the targets that each bit of h was last trained on
    multipliers: Array | None  # of the augmented Lagrangian
    score: float = math.nan  # validation precision of h
    matched: bool = False  # whether the last Z step ended with Z = h(X), where MAC stops


@dataclass(frozen=True)
class MAC:
    """The algorithm's settings.

    `mu` is mu_1, or "auto": the mu at which Z starts to change towards h(X), raised where necessary
    so that `max_iter` iterations reach the mu past which nothing can change. `start` says where the
    free codes of mu = 0 start from: "random" from the codes given to `steps`; otherwise a first
    pass makes them bit after bit (`zstep.first_codes`), which counts as one of the `max_sweeps`.
    """

    solver: Solver
    mu: float | Literal["auto"] = "auto"
    alpha: float = 1.4
    max_iter: int = 50
    max_sweeps: int = 2
    penalty: Literal["quadratic", "augmented"] = "quadratic"
    start: Start = "random"

    def steps(
        self,
        problem: Problem,
        F: Array,
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
        state, free_loss = self._two_step(problem, F, h, Z, rng, free)
        state = replace(state, score=validate(state.h) if validate else math.nan)
        loss = problem.loss(state.H)
        violations = int((state.Z != state.H).sum())
        seconds = clock.seconds() - began
        step = Step(0, 0.0, loss, free_loss, free_loss, violations, state.score, True, seconds)
        yield step, state
        yield from self.path(problem, F, step, state, rng, validate)

    def path(
        self,
        problem: Problem,
        F: Array,
        step: Step,
        state: State,
        rng: np.random.Generator,
        validate: Validate | None = None,
    ) -> Iterator[tuple[Step, State]]:
        """The steps that follow `step`, which led to `state` and left `rng` as it is."""
        mu = step.mu
        for iteration in range(step.iteration + 1, self.max_iter + 1):
            if state.matched:
                break
            began = clock.seconds()
            mu = mu * self.alpha if iteration > 1 else self.first_mu(problem, state, rng)
            if mu > LARGEST_MU:  # products with it would leave the double range
                break
            new, free_loss, value = self._iterate(problem, F, state, mu, rng)
            loss = problem.loss(new.H)
            violations = int((new.Z != new.H).sum())
            if validate and not new.matched:  # where it matched, h is the same
                new = replace(new, score=validate(new.h))
            accepted = not new.score < state.score
            if accepted:
                state = new
            seconds = clock.seconds() - began
            step = Step(
                iteration, mu, loss, free_loss, value, violations, new.score, accepted, seconds
            )
            yield step, state

    def _two_step(
        self,
        problem: Problem,
        F: Array,
        h: HashFunction,
        Z: Codes,
        rng: np.random.Generator,
        free: bool,
    ) -> tuple[State, float]:
        """Two-step hashing: MAC at mu = 0."""
        if free:
            sweeps = self.max_sweeps
            if self.start != "random":
                Z, sweeps = first_codes(problem, self.start, self.solver, rng), sweeps - 1
            found = z_step(problem, Z, Penalty(Z, 0.0), self.solver, sweeps, rng)
            Z, free_loss = found.Z, found.free_loss
        else:
            free_loss = problem.loss(Z)
        h, H = h_step(h, None, F, Z, np.arange(problem.n_bits), None, problem.n_jobs)
        multipliers = np.zeros(Z.shape) if self.penalty == "augmented" else None
        return State(h, H, Z, Z, multipliers), free_loss

    def _iterate(
        self, problem: Problem, F: Array, state: State, mu: float, rng: np.random.Generator
    ) -> tuple[State, float, float]:
        """Z step, then h step unless Z = h(X); also L(Z) and L_P at the end."""
        penalty = Penalty(state.H, mu, state.multipliers)
        found = z_step(problem, state.Z, penalty, self.solver, self.max_sweeps, rng)
        Z = found.Z
        # Not after the h step: a Z step that max_sweeps cut short can still have flips to make.
        if np.array_equal(Z, state.H):
            return replace(state, Z=Z, matched=True), found.free_loss, found.value
        if state.multipliers is None:
            target, weight = Z, None
            bits = np.flatnonzero((state.trained != Z).any(axis=0))
        else:
            pull = Z + state.multipliers / (2 * mu)
            target, weight = sign(pull), np.abs(pull)
            bits = np.arange(problem.n_bits)
        h, H = h_step(state.h, state.H, F, target, bits, weight, problem.n_jobs)
        value = found.free_loss + replace(penalty, H=H).value(Z)
        multipliers = state.multipliers
        if multipliers is not None:
            multipliers = multipliers + 2 * mu * (Z.astype(np.float64) - H)
        return State(h, H, Z, target, multipliers), found.free_loss, value

    def first_mu(self, problem: Problem, state: State, rng: np.random.Generator) -> float:
        """mu_1: as given, or the mu at which entries of Z start to flip to those of h(X).

        The first entry flips at a mu too small to be of use, so we take the mu at which
        FIRST_SHARE of the entries that differ from h(X) flip, not counting those that flip at
        mu = 0 already because the free codes were not at an optimum.
        """
        if self.mu != "auto":
            return float(self.mu)
        # Below this, max_iter iterations would not reach the mu past which nothing changes.
        least = problem.last_mu * self.alpha ** (1 - self.max_iter)
        alone = problem.flip_thresholds(state.Z, state.H)
        alone = alone[alone > 0]
        if not len(alone):
            return least or problem.last_mu
        mu = max(least, float(np.quantile(alone, FIRST_SHARE)))
        if not getattr(self.solver, "single_flips", False):
            # A solver that flips several points together does so at a lower mu than one by one.
            seed = int(rng.integers(2**63))
            few = self._flipped(problem, state, 0.0, seed) + FIRST_SHARE * len(alone)
            while mu / 2 > least and self._flipped(problem, state, mu, seed) > few:
                mu /= 2
        return mu

    def _flipped(self, problem: Problem, state: State, mu: float, seed: int) -> int:
        """How many entries of Z one sweep at this mu flips to those of h(X)."""
        penalty = Penalty(state.H, mu, state.multipliers)
        Z = z_step(problem, state.Z, penalty, self.solver, 1, np.random.default_rng(seed)).Z
        return int(((Z == state.H) & (state.Z != state.H)).sum())


def lowest(steps: Iterable[tuple[Step, State]]) -> tuple[Step, State]:
    """The accepted step with the lowest L(h), the two-step solution included."""
    accepted = (pair for pair in steps if pair[0].accepted)
    return min(accepted, key=lambda pair: pair[0].loss)
