"""Checks of arguments: every message names the argument, what came, and what would be right.

A check returns the argument in the form that the rest of the code works with, so that no other
module needs to convert it again.
"""

import math
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Numbers

LARGEST_ID = 2**63 - 1
MAX_ID_BYTES = 1024  # of text in UTF-8; PostgreSQL's indexes have room for 2,700
LABEL_TYPES = (str, bytes, int, float, np.generic)  # in an array of Python objects
MAX_EXACT_INT = 2**53  # whole numbers up to it are exact as floats


class ArgumentError(ValueError, TypeError):
    """An argument of the wrong kind or with a wrong value.

    Both a ValueError and a TypeError, as in scikit-learn: callers can catch either.
    """


def integer(name: str, value: Any, least: int, most: int | None = None, instead: str = "") -> int:
    """Return the argument as an int; raise unless it is a whole number from `least` to `most`.

    `instead` is what else the argument may be, e.g. ' or "auto"'; the caller deals with that.
    """
    fine = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not fine or value < least or (most is not None and value > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ArgumentError(f"{name} must be a whole number {bound}{instead}, got {value!r}")
    return int(value)


def number(name: str, value: Any, least: float, strict: bool = False, instead: str = "") -> float:
    """Return the argument as a float; raise unless finite and >= `least` (`strict`: above it)."""
    fine = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not fine or not _is_finite(value) or value < least or (strict and value == least):
        bound = f"above {least}" if strict else f"of at least {least}"
        raise ArgumentError(f"{name} must be a number {bound}{instead}, got {value!r}")
    return float(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def unknown(argument: str, value: str, known: Iterable[str], otherwise: str = "") -> ArgumentError:
    """Return an error, to be raised, that lists the known names and suggests the nearest.

    `otherwise` is what else the argument may be, e.g. "a function of (d, y, b)".
    """
    names = {name.lower(): name for name in known}
    near = get_close_matches(str(value).lower().replace("_", "-"), names, 1)
    hint = f"; did you mean {names[near[0]]!r}?" if near else ""
    also = f" or {otherwise}" if otherwise else ""
    every = ", ".join(names.values())
    return ArgumentError(f"{argument} must be one of {every}{also}; got {value!r}{hint}")


def one_of(name: str, value: Any, known: Iterable[str], otherwise: str = "") -> str:
    """Return the argument; raise unless it is a known name. `otherwise` is as for `unknown`."""
    if not isinstance(value, str) or value not in known:
        raise unknown(name, value, known, otherwise)
    return value


def flag(name: str, value: object) -> bool:
    """Return the argument as a bool; raise unless it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def numbers(name: str, values: Any, n_axes: int) -> Array:
    """Return the argument; raise unless a finite, non-empty float64 array of `n_axes` axes."""
    if type(values) is not np.ndarray or values.dtype != np.float64 or values.ndim != n_axes:
        came = f"{values.dtype} of shape {values.shape}" if hasattr(values, "shape") else values
        raise ArgumentError(f"{name} must be an array of float64 of {n_axes} axes, got {came!r}")
    if not values.size or not np.isfinite(values).all():
        raise ArgumentError(f"{name} must hold finite numbers, and at least one")
    return values


def unmasked(name: str, values: Any) -> Any:
    """Return the argument; raise if it is an array with masked entries: NumPy would unmask them."""
    # Only where numpy.ma was imported can there be such an array, and importing it takes long.
    masked = "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)
    if masked and np.ma.is_masked(values):
        row = int(np.argwhere(np.atleast_1d(np.ma.getmaskarray(values)))[0, 0])
        raise ArgumentError(f"{name} must not be missing; row {row} is masked")
    return values


def ids(name: str, values: ArrayLike) -> Numbers:
    """Return ids (n,) as int64; raise unless they are whole numbers from 0 to 2^63 - 1."""
    array = np.asarray(unmasked(name, values))
    if array.dtype == object and all(type(value) is int for value in array.flat):
        raise ArgumentError(f"{name} must lie in 0..2^63 - 1, got {max(array.flat, key=abs)}")
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or not array.size):
        raise ArgumentError(
            f"{name} must be a list of whole numbers, got {array.dtype} of shape {array.shape}"
        )
    if array.size and not (array.min() >= 0 and array.max() <= LARGEST_ID):
        wrong = array.min() if array.min() < 0 else array.max()
        raise ArgumentError(f"{name} must lie in 0..2^63 - 1, got {wrong}")
    return array.astype(np.int64)


def any_ids(name: str, values: ArrayLike) -> AnyArray:
    """Return ids (n,): whole numbers as int64, or text, UUIDs too, as an array of objects."""
    array = np.asarray(unmasked(name, values))
    if array.dtype.kind not in "OSTU" or array.ndim != 1:
        if array.dtype.kind not in "iu" and array.size:
            raise ArgumentError(
                f"{name} must be a list of whole numbers or of text, got {array.dtype} of shape "
                f"{array.shape}"
            )
        return ids(name, array)
    # NumPy makes text of numbers beside text, and drops characters 0 at the end of text.
    listed = list(values) if isinstance(values, (list, tuple)) else array.tolist()
    numbers = [value for value in listed if isinstance(value, (int, np.integer))]
    if len(numbers) == len(listed):
        return ids(name, listed)
    if numbers:
        raise ArgumentError(
            f"{name} must be all whole numbers or all text, and are mixed: {numbers[0]!r} is a "
            "number"
        )
    return objects(texts(name, listed, "whole numbers or of text"))


def texts(name: str, values: object, kind: str = "text") -> list[str]:
    """Return a list of text, UUIDs too; raise unless each can be an id in any file or database.

    `kind` is what the list may be of, for messages.
    """
    if isinstance(values, str):
        raise ArgumentError(f"{name} must be a list of {kind}, got the text {values!r}")
    array = np.asarray(values, object)
    if array.ndim != 1:
        raise ArgumentError(
            f"{name} must be a list of {kind}, none of it empty, got shape {array.shape}"
        )
    written = [_written(name, value, kind) for value in array.tolist()]
    for row, text in enumerate(written):
        if len(text) > MAX_ID_BYTES // 4 and len(text.encode()) > MAX_ID_BYTES:
            raise ArgumentError(
                f"{name} must be of at most {MAX_ID_BYTES:,} bytes in UTF-8; row {row} has "
                f"{len(text.encode()):,}: {text[:40]!r}..."
            )
    return written


def _written(name: str, value: object, kind: str) -> str:
    """Return a text, or a UUID as text, if any file or database can hold it."""
    # Only where uuid was imported can there be such an object.
    uuid = sys.modules.get("uuid")
    value = str(value) if uuid is not None and isinstance(value, uuid.UUID) else value
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name} must be a list of {kind}, none of it empty, got {value!r}")
    if "\0" in value:
        raise ArgumentError(f"{name} must not hold the character 0, got {value!r}")
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise ArgumentError(f"{name} must be text that UTF-8 can write, got {value!r}")
    return str(value)


def labels(name: str, values: object, n: int | None = None) -> AnyArray:
    """Return checked labels (n,), or a matrix (n, n_labels) of 0 and 1 if points can have several.

    A column (n, 1) is taken for the labels (n,) in it, as scikit-learn does. A sparse matrix
    becomes a plain one. Missing labels (NaN, None, masked) are refused: they would be taken for a
    class. So are text and numbers together: NumPy would make one class of 1 and "1".
    """
    values = values.toarray() if hasattr(values, "toarray") else unmasked(name, values)
    array = np.asarray(values)
    if isinstance(values, (list, tuple)) and array.ndim == 1:
        array = _plain(name, objects(values))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise ArgumentError(
            f"{name} must be of shape (n,) or (n, n_labels), got shape {array.shape}"
        )
    if n is not None and len(array) != n:
        raise ArgumentError(f"{name} must have one row for each of {n} points, got {len(array)}")
    if array.ndim == 2:
        if array.dtype != bool and not np.isin(array, (0, 1)).all():
            raise ArgumentError(f"{name} of shape {array.shape} must hold only 0 and 1")
        return array.astype(np.int8, copy=False) if array.dtype == object else array
    if array.dtype == object:
        array = _plain(name, array)
    if array.dtype.kind in "fM":
        missing = array != array  # NaN, and the NaT of dates
        if missing.any():
            raise ArgumentError(f"{name} must not be missing; row {_first(missing)} is NaN")
    if array.dtype.kind not in "biufUSM":
        raise ArgumentError(f"{name} must be numbers or text, got {array.dtype}")
    return array


def classes(name: str, values: object, n: int | None = None) -> AnyArray:
    """Return checked `labels` to learn from: whole numbers, text or dates."""
    array = labels(name, values, n)
    if array.dtype.kind == "f" and not (array == np.rint(array)).all():
        raise ArgumentError(
            f"{name} holds continuous numbers; labels are classes: round them, or give pairs "
            "(affinity)"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ArgumentError(f"{name} must be finite; row {_first(~np.isfinite(array))} is not")
    if array.dtype.kind == "S":
        raise ArgumentError(f"{name} must be numbers or text, got bytes: give text (astype(str))")
    if _marks_the_unlabelled(array):
        warnings.warn(
            f"{name} holds -1, which is taken for a class: leave out points that have no label",
            stacklevel=2,
        )
    return array


def _marks_the_unlabelled(array: AnyArray) -> bool:
    """Return True if -1 stands beside classes that count from 0, as a sentinel for no label."""
    if array.ndim != 1 or array.dtype.kind not in "if" or not array.size or array.min() != -1:
        return False
    return bool((array == 0).any()) and len(np.unique(array)) > 3


def _plain(name: str, values: AnyArray) -> AnyArray:
    """Convert an array of Python objects, such as pandas gives, to one of text or of numbers."""
    missing = np.array([_is_missing(value) for value in values], bool)
    if missing.any():
        row = _first(missing)
        shown = "NaN" if isinstance(values[row], float) else repr(values[row])
        raise ArgumentError(f"{name} must not be missing; row {row} is {shown}")
    text = [isinstance(value, str) for value in values]
    if any(text) and not all(text):
        raise ArgumentError(f"{name} must be all text or all numbers, and are mixed")
    if not all(isinstance(value, LABEL_TYPES) for value in values):
        kind = next(type(value).__name__ for value in values if not isinstance(value, LABEL_TYPES))
        raise ArgumentError(f"{name} must be numbers or text, got {kind}")
    plain = np.array(values.tolist())
    if plain.dtype.kind == "f":
        integers = [isinstance(value, (int, np.integer)) for value in values]
        wide = [i and abs(int(v)) > MAX_EXACT_INT for i, v in zip(integers, values, strict=True)]
        if any(wide):
            raise ArgumentError(
                f"{name} hold whole numbers that would be rounded beside others, such as "
                f"{values[wide.index(True)]}: give them as text"
            )
    return plain


def objects(values: Sequence[object]) -> AnyArray:
    """Return an array (n,) of Python's objects, whatever these are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _is_missing(value: Any) -> bool:
    """Return True for None, NaN, NaT and pandas' NA, which do not equal themselves."""
    same = value == value
    return value is None or (np.ndim(same) == 0 and same is not True and same is not np.True_)


def _first(where: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(where)[0])
