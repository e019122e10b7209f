"""State of gradient steps on a hash function, to go on from after an interruption."""

from dataclasses import dataclass

import numpy as np

from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.checks import integer
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions.protocol import HashFunction


@register("Position")
@dataclass(frozen=True)
class Position:
    """State that the next gradient step depends on."""

    reports: int  # of L(h), made so far
    h: HashFunction  # as these steps have left it
    rng: np.random.Generator
    parameters: list[Single]
    mean: list[Single]
    square: list[Single]
    order: Numbers  # of the points in this round over them
    used: int  # points of `order` that were in a step
    drawn: list[Single]  # random numbers that several steps use
    objective: list[Single]  # state of the objective itself

    def check_read(self) -> None:
        integer("reports", self.reports, 0)
        integer("used", self.used, 0, len(self.order))
