"""Progress of the loop under way: long loops report it, and a progress bar listens.

A loop over parts on several threads (`threads`) reports by itself; others by `each` or `loop`. Of
loops inside each other the outermost is listened to, as it knows best how much is left.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from auxhash.compute import context, deadline
from auxhash.compute.context import Listener, Loop

Looped = TypeVar("Looped")


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
    """Yield the items in turn, in a loop that is reported to the listener of this context.

    The deadline of the context ends it between two items.
    """
    with loop(what, len(items)) as progress:
        for item in deadline.each(items):
            yield item
            progress.done += 1
