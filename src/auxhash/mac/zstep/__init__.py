"""The Z step: optimise the codes Z given the hash function h."""

from auxhash.mac.zstep.cut import Cut
from auxhash.mac.zstep.gpu import problem_on
from auxhash.mac.zstep.problem import BitProblem, Penalty, Problem
from auxhash.mac.zstep.quad import Quad
from auxhash.mac.zstep.start import STARTS, Start, check_start, first_codes
from auxhash.mac.zstep.sweep import SOLVERS, BitSolver, Solver, SweepSolver, ZStep, get, z_step

__all__ = [
    "SOLVERS",
    "STARTS",
    "BitProblem",
    "BitSolver",
    "Cut",
    "Penalty",
    "Problem",
    "Quad",
    "Solver",
    "Start",
    "SweepSolver",
    "ZStep",
    "check_start",
    "first_codes",
    "get",
    "problem_on",
    "z_step",
]
