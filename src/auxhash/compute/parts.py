"""The training points, cut into fixed parts.

Everything that training computes from the data is local to a part (features, outputs, margins) or
a sum over the parts (gradients, products with the Hessian). Parts are chunks of the rows that are
here, one per task of a thread; where others train on rows of their own (`peers`), a sum is over
theirs, too. The result depends, to the last bit, on the parts alone, not on who computes them.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray
from auxhash.compute.peers import peers

Term = TypeVar("Term")  # an array, or a tuple of sums


class Chunks:
    """n rows in parts of `size`, computed on the threads of a pool.

    A function is called with the rows of one part.
    """

    def __init__(self, n: int, size: int, run: threads.Run) -> None:
        self.rows, self.run = threads.chunks(n, size), run

    def each(self, function: Callable[[slice], object]) -> None:
        """Call the function for every part that is here, for its side effects."""
        self.run(function, self.rows)

    def join(self, function: Callable[[slice], AnyArray]) -> AnyArray:
        """Join the function's arrays of all parts that are here, one row per point, in order."""
        return np.concatenate(self.run(function, self.rows))

    def sum(self, function: Callable[[slice], Term]) -> Term:
        """Return the sum of the function's arrays over all parts, always in the same order."""
        return peers().sum(self.sum_here(function))

    def sum_here(self, function: Callable[[slice], Term]) -> Term:
        """Return the sum over the parts that are here."""
        total = _Total()

        def part(number: int) -> None:
            total.add(number, function(self.rows[number]))

        self.run(part, range(len(self.rows)))
        value: Term = total.value
        return value


class _Total:
    """A sum that takes its terms in any order, and adds each up once those before it are.

    So it does not depend on the threads, and few terms are held as long as no part is much slower
    than the others: F'F would else be there once for each part of the points.
    """

    def __init__(self) -> None:
        self.value: Any = 0
        self.n_added = 0
        self.waiting: dict[int, Any] = {}
        self.lock = threading.Lock()

    def add(self, number: int, term: Any) -> None:
        with self.lock:
            self.waiting[number] = term
            while self.n_added in self.waiting:
                term = self.waiting.pop(self.n_added)
                self.value = self.value + term if self.n_added else term
                self.n_added += 1
