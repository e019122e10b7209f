"""A deadline for work in parts: no part begins after it.

`threads` looks at it before each part; other long loops call `check`, or loop over `each`.
"""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Timed = TypeVar("Timed")

_at = ContextVar("_at", default=math.inf)  # helper threads work in the context of the caller


class DeadlineError(Exception):
    """Work that was not done in time."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Set a timeout for the work of this context; DeadlineError ends work that takes longer."""
    before = _at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _at.reset(before)


def check() -> None:
    """Raise DeadlineError if the time of this context is over."""
    if time.monotonic() > _at.get():
        raise DeadlineError("the work was not done in time")


def each(items: Iterable[Timed]) -> Iterator[Timed]:
    """Yield the items in turn, and raise DeadlineError once the time is over."""
    for item in items:
        check()
        yield item
