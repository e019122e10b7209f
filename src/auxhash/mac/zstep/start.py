"""The first codes, made bit after bit by the solver itself."""

from typing import Literal

import numpy as np

from auxhash.codes import Codes, Words, codes_to_words, words_to_codes
from auxhash.compute import threads, underway
from auxhash.compute.checks import ArgumentError
from auxhash.mac.zstep.problem import Later, Problem
from auxhash.mac.zstep.sweep import Solver, improved

Start = Literal["random", "bitwise", "zeros"]
STARTS = ("random", "bitwise", "zeros")
LATER: dict[str, Later] = {"bitwise": "absent", "zeros": "zero"}


def check_start(start: str, solver: Solver) -> None:
    """Raise if the solver cannot solve for one bit alone, which codes bit after bit need."""
    if start != "random" and not callable(solver):
        raise ArgumentError(
            f"start={start!r} needs a z_step that can be called for one bit, as cut, quad and "
            f"descent can; {type(solver).__name__} only makes whole sweeps"
        )


def first_codes(problem: Problem, start: str, solver: Solver, rng: np.random.Generator) -> Codes:
    """Return codes (n, b) solved bit after bit, each from all +1, given the bits before it."""
    words = codes_to_words(np.ones((problem.n_points, problem.n_bits), np.int8))
    with threads.pool() as run:
        for k in underway.each("Z step", range(problem.n_bits)):
            z = next_bit(problem, words, k, LATER[start], solver, 1, run, rng)
            words[z < 0, k // 64] ^= np.uint64(1 << (k % 64))
    return words_to_codes(words, problem.n_bits)


def next_bit(
    problem: Problem,
    words: Words,
    k: int,
    later: Later,
    solver: Solver,
    passes: int,
    run: threads.Run,
    rng: np.random.Generator,
) -> Codes:
    """Solve bit k (n,) from all +1, given bits 0..k-1, by a limited number of passes."""
    assert callable(solver)  # see `check_start`
    bit = problem.first_bits(words, k, later, run)
    z = np.ones(len(words), np.int8)
    for _ in range(passes):
        new, _ = improved(solver, bit, z, rng)
        if new is z:
            break
        z = new
    return z
