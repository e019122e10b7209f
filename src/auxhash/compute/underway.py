"""How far the loop under way is: long loops tell, and a progress bar listens.

A loop over parts on several threads (`threads`) tells by itself; others by `each` or `loop`. Of
loops inside each other the outermost is listened to, as it knows best how much is left.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from auxhash.compute import context

Looped = TypeVar("Looped")

SOON = 1.0  # seconds: nobody needs to be told of loops that take less
LITTLE = 0.005  # share of a loop that says nothing yet about the rest of it


class Loop:
    """Whoever makes the loop counts in `done`, up to `total`."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.began = time.monotonic()


class Listener:
    """Knows the loop under way in the context that it listens to, for other threads to ask."""

    def __init__(self) -> None:
        self.loop: Loop | None = None

    def told(self) -> str:
        """What is being done, how far it is, and the time left; nothing of what takes no time."""
        loop = self.loop
        taken = 0.0 if loop is None else time.monotonic() - loop.began
        if loop is None or taken < SOON:
            return ""
        share = min(loop.done / (loop.total or 1), 1.0)
        if not share > LITTLE:
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
    """A loop that whoever listens is told of."""
    made, listener = Loop(what, total), context.current().listener
    if listener is None or listener.loop is not None:
        yield made
        return
    listener.loop = made
    try:
        yield made
    finally:
        listener.loop = None


def each(what: str, items: Sequence[Looped]) -> Iterator[Looped]:
    """The items in turn, in a loop that whoever listens is told of."""
    with loop(what, len(items)) as told:
        for item in items:
            yield item
            told.done += 1
