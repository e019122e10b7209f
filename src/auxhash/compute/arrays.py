"""Types of arrays. Where one is declared, a comment says what it holds."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
else:  # NumPy's is a union that fills half a page of help() wherever it is named
    ArrayLike = type("ArrayLike", (), {"__module__": "numpy.typing"})

AnyArray = NDArray[Any]
Array = NDArray[np.float64]
Single = NDArray[np.float32]
Numbers = NDArray[np.int64]  # indices of points, rows or bits; classes; counts


class Computed:
    """A matrix whose rows are computed each time that they are asked for.

    It stands for one that would take too much memory. `make` returns rows as an array, `single`
    the same rows in single precision, good enough for rough products; `memo` caches what was
    derived from all of them. Rows are computed on the device of `like`.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        make: Callable[[Numbers | slice], AnyArray],
        like: AnyArray | None = None,
        single: Callable[[Numbers | slice], Single] | None = None,
    ) -> None:
        self.shape, self.make, self.like, self.single = shape, make, like, single
        self.memo: dict[str, Any] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Numbers | slice) -> AnyArray:
        return self.make(rows)


class Streamed(Computed):
    """Points (n, D) in the processor's memory, or on its disk; some at a time come to a GPU."""

    def __init__(self, X: AnyArray, make: Callable[[Numbers | slice], AnyArray]) -> None:
        super().__init__((X.shape[0], X.shape[1]), make, make(slice(0, 0)))
        self.X, self.dtype, self.size = X, X.dtype, X.size

    def min(self) -> Any:
        return self.X.min()

    def max(self) -> Any:
        return self.X.max()


class Resident(Computed):
    """A matrix in the memory of a GPU, in both precisions."""

    def __init__(self, F: Array, single: Single) -> None:
        super().__init__((F.shape[0], F.shape[1]), F.__getitem__, F, single.__getitem__)
        self.F = F


Matrix = Array | Computed  # a matrix that code reads some rows at a time


def in_memory(F: Matrix) -> Array | None:
    """Return the matrix as an array; None if its rows are computed when needed."""
    if isinstance(F, Resident):
        return F.F
    return None if isinstance(F, Computed) else F


def fits_single(X: AnyArray) -> bool:
    """Return True if single precision can represent every number of the type of X."""
    return np.can_cast(X.dtype, np.float32)
