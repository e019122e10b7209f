"""Cholesky factors on several threads at once.

SciPy's wrappers of BLAS and LAPACK hold the interpreter's lock: threads that call them wait for
each other. Here the same routines are called without it. NumPy's do not hold it either, but make
both halves and copies: for 785 features they take 1.10 times the processor time to factor and
solve, about 1.15 times to add squares. Matrices are in Fortran's order, and of symmetric ones the
lower half is used and made.
"""

import ctypes
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from auxhash.compute.arrays import Array

LOWER, AS_IT_IS, TRANSPOSED = b"L", b"N", b"T"
# SciPy's integers have 32 bits, or 64 if it was built so: the lower half of these is right
# for both.
INTEGER = ctypes.c_int64


def load() -> None:
    """Load SciPy's BLAS, so that a pool of threads made later limits it to one thread."""
    importlib.import_module("scipy.linalg.cython_blas")


def add_squares(factor: float, A: Array, total: Array) -> None:
    """Add factor A A' to `total`."""
    n, k = A.shape
    _check(A)
    _check(total, n)
    _call("blas", "dsyrk", LOWER, AS_IT_IS, n, k, factor, A, n, 1.0, total, n)


def squares(A: Array) -> Array:
    """Return the lower half of A'A."""
    n, k = A.shape
    _check(A)
    total = np.zeros((k, k), order="F")
    _call("blas", "dsyrk", LOWER, TRANSPOSED, k, n, 1.0, A, n, 0.0, total, k)
    return total


def factor(A: Array) -> bool:
    """Overwrite A by its Cholesky factor; return False if A is not positive definite."""
    info = np.zeros(1, INTEGER)
    _check(A, len(A))
    _call("lapack", "dpotrf", LOWER, len(A), A, len(A), info)
    return not info[0]


def solve(factor: Array, right: Array) -> Array:
    """Solve A x = right (n,), from the Cholesky factor of A."""
    x, info, n = np.array(right, np.float64), np.zeros(1, INTEGER), len(factor)
    _check(factor, n)
    if x.shape != (n,):
        raise ValueError(f"the right side must have shape ({n},), got {x.shape}")
    _call("lapack", "dpotrs", LOWER, n, 1, factor, n, x, n, info)
    return x


def _check(A: Array, n: int | None = None) -> None:
    """Check that A is of double precision in Fortran's order and, with n, of shape (n, n)."""
    if A.dtype != np.float64 or not (A.flags.f_contiguous and A.flags.aligned):
        raise ValueError("matrices must be of double precision, in Fortran's order")
    if n is not None and A.shape != (n, n):
        raise ValueError(f"the matrix must have shape {(n, n)}, got {A.shape}")


def _call(library: str, name: str, *values: object) -> None:
    """Call a routine with the addresses of these values."""
    arguments = [_addressed(value) for value in values]
    _routine(library, name, len(values))(*(address for _, address in arguments))


def _addressed(value: Any) -> tuple[Any, int]:
    """Return the value as C has it, to be kept alive during the call, and its address."""
    if isinstance(value, np.ndarray):
        return value, value.ctypes.data
    kinds = {bytes: ctypes.c_char, int: INTEGER, float: ctypes.c_double}
    kept: Any = kinds[type(value)](value)
    return kept, ctypes.addressof(kept)


@cache
def _routine(library: str, name: str, n_values: int) -> Callable[..., None]:
    """Return a routine that SciPy exports to compiled code; ctypes calls it without the lock."""
    capsule = importlib.import_module(f"scipy.linalg.cython_{library}").__pyx_capi__[name]
    signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    of = signature(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    address = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, of)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_values)(address)
