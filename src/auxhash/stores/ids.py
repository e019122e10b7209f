"""Ids of a store: whole numbers, int64, or text, as an array of Python's objects.

A store has ids of one kind, which its first ones decide. Text is ordered by its code points, as
Python and, by UTF-8, all engines order it. NumPy sorts objects ten times slower than Python does.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.compute.checks import ArgumentError
from auxhash.search.index import state

Id = int | str
AnyIds = AnyArray  # (n,)

KINDS = {False: "whole numbers", True: "text"}


def is_text(ids: AnyIds) -> bool:
    """Return True if ids are text."""
    return ids.dtype == object


def array_of(values: Sequence[Id], text: bool) -> AnyIds:
    """Return the ids that a database gives as an array; `text` says of which kind none are."""
    if isinstance(values[0], str) if values else text:
        return checks.objects(values)
    return np.array(values, np.int64)


def order_of(ids: AnyIds) -> Numbers:
    """Return the positions of ids from the smallest to the largest."""
    if is_text(ids):
        return np.array(sorted(range(len(ids)), key=ids.tolist().__getitem__), np.int64)
    return np.argsort(ids, kind="stable")  # often they rise already, or are two such runs


def rising(ids: AnyIds) -> AnyIds:
    """Return ids from the smallest to the largest, each once."""
    return checks.objects(sorted(set(ids.tolist()))) if is_text(ids) else np.unique(ids)


def is_among(ids: AnyIds, others: AnyIds) -> NDArray[np.bool_]:
    """Mark the ids that are among others, which rise."""
    if not len(others):
        return np.zeros(len(ids), bool)
    marked: NDArray[np.bool_] = (
        others[np.searchsorted(others, ids).clip(max=len(others) - 1)] == ids
    )
    return marked


def check_different(ids: AnyIds, name: str = "ids", of: str = "code") -> None:
    """Raise ArgumentError if an id is that of two codes, or of two of what else they are `of`."""
    twice = first_twice(ids)
    if twice is not None:
        raise ArgumentError(f"{name} must not name a {of} twice, {twice!r} does")


def first_twice(ids: AnyIds) -> Id | None:
    """Return the smallest id that occurs more than once, or None."""
    if not is_text(ids):
        return state.first_twice(ids)
    texts: list[str] = ids.tolist()
    if len(set(texts)) == len(texts):
        return None
    return next(text for text, following in pairwise(sorted(texts)) if text == following)
