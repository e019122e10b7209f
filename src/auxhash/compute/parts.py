"""The training points, cut into fixed parts.

Everything that training computes from the data is local to a part (features, outputs, margins) or
a sum over the parts (gradients, products with the Hessian). Parts are chunks of the rows that are
here, one per task of a thread; where others train on rows of their own (`peers`), a sum is over
theirs, too. The result depends, to the last bit, on the parts alone, not on who computes them.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from auxhash.compute import threads
from auxhash.compute.peers import peers


class Parts(Protocol):
    """Operations over the parts; the function is called with the rows of one part."""

    def each(self, function: Callable[[slice], Any]) -> None:
        """Call the function for every part that is here, for its side effects."""

    def join(self, function: Callable[[slice], Any]) -> Any:
        """The function's arrays of all parts that are here, one row per point, joined in order."""

    def sum(self, function: Callable[[slice], Any]) -> Any:
        """The sum of the function's arrays over all parts, always in the same order."""

    def sum_here(self, function: Callable[[slice], Any]) -> Any:
        """The same over the parts that are here."""


class Chunks:
    """n rows in parts of `size`, computed on the threads of a pool."""

    def __init__(self, n: int, size: int, run: threads.Run) -> None:
        self.rows, self.run = threads.chunks(n, size), run

    def each(self, function: Callable[[slice], Any]) -> None:
        self.run(function, self.rows)

    def join(self, function: Callable[[slice], Any]) -> Any:
        return np.concatenate(self.run(function, self.rows))

    def sum(self, function: Callable[[slice], Any]) -> Any:
        return peers().sum(self.sum_here(function))

    def sum_here(self, function: Callable[[slice], Any]) -> Any:
        first, *others = self.run(function, self.rows)
        return sum(others, start=first) if others else first
