"""Progress of the loop under way: long loops report it, and a progress bar listens.

A loop over parts on several threads (`threads`) reports by itself; others by `each` or `loop`. Of
loops inside each other the outermost is listened to, as it knows best how much is left.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from auxhash.compute import context

Looped = TypeVar("Looped")

MIN_SECONDS = 1.0  # loops that take less time are not shown
MIN_SHARE = 0.005  # share of a loop that must be done before the time left is estimated


class Loop:
    """A loop whose progress is counted in `done`, up to `total`."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.began = time.monotonic()


class Listener:
    """Holder of the loop under way in its context, for other threads to ask."""

    def __init__(self) -> None:
        self.loop: Loop | None = None

    def describe(self) -> str:
        """Return name, progress and time left of the loop under way; "" for none or a short one."""
        loop = self.loop
        taken = 0.0 if loop is None else time.monotonic() - loop.began
        if loop is None or taken < MIN_SECONDS:
            return ""
        share = min(loop.done / (loop.total or 1), 1.0)
        if not share > MIN_SHARE:
            return loop.what
        left = timedelta(seconds=round(taken * (1 - share) / share))
        return f"{loop.what} {share:.0%}, {left} left".strip()


@contextmanager
def listening() -> Iterator[Listener]:
    """Listen to the loops of this context."""
    listener = Listener()
    with context.using(listener=listener):
        yield listener


@contextmanager
def loop(what: str, total: float) -> Iterator[Loop]:
    """Enter a loop, and report it to the listener of this context."""
    own, listener = Loop(what, total), context.current().listener
    if listener is None or listener.loop is not None:
        yield own
        return
    listener.loop = own
    try:
        yield own
    finally:
        listener.loop = None


def each(what: str, items: Sequence[Looped]) -> Iterator[Looped]:
    """Yield the items in turn, in a loop that is reported to the listener of this context."""
    with loop(what, len(items)) as progress:
        for item in items:
            yield item
            progress.done += 1
