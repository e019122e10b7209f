"""One Z step: sweeps over the bits, in which an update that does not lower L_P is skipped."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from auxhash.codes import Codes, Words
from auxhash.compute import threads, underway
from auxhash.compute.arrays import Array
from auxhash.compute.checks import one_of
from auxhash.mac.zstep.cut import Cut
from auxhash.mac.zstep.descent import BitDescent, Descent
from auxhash.mac.zstep.problem import ENERGY_TOLERANCE, BitProblem, Penalty, Problem
from auxhash.mac.zstep.quad import Quad


class BitSolver(Protocol):
    """Returns a z of lower E(z) for one bit of all points, starting from z; it need not succeed."""

    def __call__(self, bit: BitProblem, z: Codes, rng: np.random.Generator) -> Codes: ...


@runtime_checkable
class SweepSolver(Protocol):
    """Makes a whole sweep itself: changes `words` in place, never raises L_P, returns the flips."""

    def sweep(
        self, problem: Problem, words: Words, c: Array, run: threads.Run, rng: np.random.Generator
    ) -> int: ...


Solver = BitSolver | SweepSolver
SOLVERS: dict[str, type] = {
    "cut": Cut,
    "quad": Quad,
    "descent": Descent,
    "descent-bits": BitDescent,
}


def get(solver: "str | Solver") -> Solver:
    """Return the solver of that name, or the solver itself."""
    if isinstance(solver, str):
        named: Solver = SOLVERS[one_of("z_step", solver, SOLVERS, "a solver")]()
        return named
    if not (callable(solver) or isinstance(solver, SweepSolver)):
        raise TypeError(f"z_step must be a name or a solver, got {type(solver).__name__}")
    return solver


@dataclass(frozen=True)
class ZStep:
    """The result of a Z step."""

    Z: Codes
    value: float  # L_P
    free_loss: float  # L(Z)
    sweeps: int
    converged: bool  # the last sweep changed nothing
    skipped: int  # updates of a bit not made, as they would have raised L_P


def z_step(
    problem: Problem,
    Z: Codes,
    penalty: Penalty,
    solver: Solver,
    max_sweeps: int,
    rng: np.random.Generator,
) -> ZStep:
    """Lower L_P(Z), eq. (5), for a fixed hash function, by at most `max_sweeps` sweeps from Z."""
    words = problem.to_words(Z)
    c = penalty.linear()
    changed, sweeps, skipped = 1, 0, 0
    with threads.pool() as run:
        while changed and sweeps < max_sweeps:
            if isinstance(solver, SweepSolver):
                changed = solver.sweep(problem, words, c, run, rng)
            else:
                changed, more = _sweep_bits(problem, words, c, penalty.mu, solver, run, rng)
                skipped += more
            sweeps += 1
    Z = problem.to_codes(words)
    free_loss = problem.loss(Z)
    return ZStep(Z, free_loss + penalty.value(Z), free_loss, sweeps, not changed, skipped)


def _sweep_bits(
    problem: Problem,
    words: Words,
    c: Array,
    mu: float,
    solver: BitSolver,
    run: threads.Run,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Solve the problem of each bit in turn, eq. (8).

    Returns how many entries of Z changed, and of how many bits the update would have raised L_P.
    """
    changed = skipped = 0
    for k in underway.each("Z step", range(problem.n_bits)):
        word, mask = k // 64, np.uint64(1 << (k % 64))
        z = np.where(words[:, word] & mask, 1, -1).astype(np.int8)
        bit = problem.bit(words, k, c[:, k], mu, run)
        new, raised = improved(solver, bit, z, rng)
        differ = new != z
        words[differ, word] ^= mask
        changed += int(differ.sum())
        skipped += raised
    return changed, skipped


def improved(
    solver: BitSolver, bit: BitProblem, z: Codes, rng: np.random.Generator
) -> tuple[Codes, bool]:
    """Return the solver's z, or z itself if E is not lower there; and True if it was higher."""
    new = np.asarray(solver(bit, z, rng))
    if new.shape != z.shape or not np.all(np.abs(new) == 1):
        raise ValueError(f"the solver must return {len(z)} values of -1 and +1")
    if np.array_equal(new, z):
        return z, False
    before, after = bit.energy(z), bit.energy(new)
    if after < before - ENERGY_TOLERANCE * abs(before):
        return new, False
    return z, after > before + ENERGY_TOLERANCE * abs(before)
