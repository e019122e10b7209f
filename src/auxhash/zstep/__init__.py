"""The Z step: optimise the codes Z given the hash function h."""

from auxhash.zstep.cut import Cut
from auxhash.zstep.problem import BitProblem, Penalty, Problem
from auxhash.zstep.quad import Quad
from auxhash.zstep.sweep import SOLVERS, BitSolver, Solver, SweepSolver, ZStep, get, z_step

__all__ = [
    "SOLVERS",
    "BitProblem",
    "BitSolver",
    "Cut",
    "Penalty",
    "Problem",
    "Quad",
    "Solver",
    "SweepSolver",
    "ZStep",
    "get",
    "z_step",
]
