"""The points of a training, cut into fixed parts.

Everything that training needs of the data is local to a part (features, outputs, margins) or a
sum over the parts (gradients, products with the Hessian). Code written with `Parts` knows nothing
of where a part lies: here the parts are chunks of rows on threads; elsewhere they could be on
other machines. The parts define the result, to the last bit, and not who works on them.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from auxhash.compute import threads


class Parts(Protocol):
    """What can be asked of the parts; a function is given the rows of one part."""

    def each(self, function: Callable[[slice], Any]) -> None:
        """Call the function for every part, for what it writes."""

    def join(self, function: Callable[[slice], Any]) -> Any:
        """The function's arrays, one row per point, one part after another."""

    def sum(self, function: Callable[[slice], Any]) -> Any:
        """The sum of the function's arrays over the parts, always in the same order."""


class Chunks:
    """Parts of `size` rows of n on the threads of a pool."""

    def __init__(self, n: int, size: int, run: threads.Run) -> None:
        self.rows, self.run = threads.chunks(n, size), run

    def each(self, function: Callable[[slice], Any]) -> None:
        self.run(function, self.rows)

    def join(self, function: Callable[[slice], Any]) -> Any:
        return np.concatenate(self.run(function, self.rows))

    def sum(self, function: Callable[[slice], Any]) -> Any:
        return sum(self.run(function, self.rows))
