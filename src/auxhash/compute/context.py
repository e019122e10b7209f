"""The context of a computation: on how many threads, with which peers, and who listens.

Public functions and estimators enter it with `using`; whatever they call reads it with `current`,
so that nothing in between has to hand it on. Pool threads work in a copy of it (`threads`); any
other new thread starts in the default one. A generator runs in the context of its consumer at each
step: enter a context around its consumption, never inside it, where it would leak at each yield.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # commands import this file before NumPy
    from auxhash.compute.arrays import AnyArray

Common = TypeVar("Common")

MIN_SECONDS = 1.0  # loops that take less time are not shown
MIN_SHARE = 0.005  # share of a loop that must be done before the time left is estimated


class Peers(Protocol):
    """Communication between the processes of one training."""

    n: int  # how many there are
    place: int  # of this one among them, from 0

    def sum(self, value: Common) -> Common:
        """Return the sum over all parts, always in the same order; arrays must be of one shape."""

    def least(self, value: Common) -> Common:
        """Return the smallest value, entry by entry of arrays."""

    def most(self, value: Common) -> Common:
        """Return the largest value, entry by entry of arrays."""

    def join(self, rows: "AnyArray") -> "AnyArray":
        """Return the rows of all parts, in the order of the parts."""

    def by(self, place: int, make: Callable[[], Common]) -> Common:
        """Return the result of `make` at that place; it is called there alone."""

    def once(self, make: Callable[[], Common]) -> Common:
        """Return the result of `make`, the same at every place.

        A process that has to start over receives the result, and does not call `make` again: so
        `make` must have no other effect.
        """

    def tell(self, said: object) -> bool:
        """Report to whoever watches the training; return True if it is to stop here."""


class Alone:
    """A single process with all points."""

    n, place = 1, 0

    def sum(self, value: Common) -> Common:
        return value

    def least(self, value: Common) -> Common:
        return value

    def most(self, value: Common) -> Common:
        return value

    def join(self, rows: "AnyArray") -> "AnyArray":
        return rows

    def by(self, place: int, make: Callable[[], Common]) -> Common:
        return make()

    def once(self, make: Callable[[], Common]) -> Common:
        return make()

    def tell(self, said: object) -> bool:
        return False


ALONE = Alone()


class Loop:
    """A loop whose progress is counted in `done`, up to `total`."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.began = time.monotonic()


class Listener:
    """Holder of the loop under way in its context, for other threads to ask."""

    def __init__(self) -> None:
        self.loop: Loop | None = None

    def share(self) -> float:
        """Return the share of the loop under way that is done; 0 for none."""
        loop = self.loop
        return 0.0 if loop is None else min(loop.done / (loop.total or 1), 1.0)

    def describe(self) -> str:
        """Return name, progress and time left of the loop under way; "" for none or a short one."""
        loop, share = self.loop, self.share()
        taken = 0.0 if loop is None else time.monotonic() - loop.began
        if loop is None or taken < MIN_SECONDS:
            return ""
        if not share > MIN_SHARE:
            return loop.what
        left = timedelta(seconds=round(taken * (1 - share) / share))
        return f"{loop.what} {share:.0%}, {left} left".strip()


@dataclass(frozen=True)
class ExpectedTime:
    """Seconds that a training is expected to take: until its first step, and from then on."""

    before: float
    steps: float

    def left(self, taken: float, share: float) -> float:
        """Return the seconds left after `taken`, once a share of what comes before is done.

        Steps are expected to be as much slower than foreseen as what comes before them is.
        """
        if not share > MIN_SHARE:
            return max(self.before + self.steps - taken, 0.0)
        before = taken / share
        return before - taken + self.steps * (before / self.before if self.before else 1.0)


@dataclass(frozen=True)
class Context:
    """Settings of a computation: its threads, its peers, and the listener to its progress."""

    n_jobs: int | None = None  # threads; see `threads.count`
    peers: Peers | None = None  # None: a single process with all points
    listener: Listener | None = None  # of the progress of long loops
    expected: ExpectedTime | None = None  # of the training under way


DEFAULT = Context()
_context: ContextVar[Context] = ContextVar("context", default=DEFAULT)


def current() -> Context:
    """Return the context that the caller works in."""
    return _context.get()


@contextmanager
def using(
    n_jobs: int | None = None,
    peers: Peers | None = None,
    listener: Listener | None = None,
    expected: ExpectedTime | None = None,
) -> Iterator[None]:
    """Work in a changed context; arguments that are None leave it as it is."""
    values = {"n_jobs": n_jobs, "peers": peers, "listener": listener, "expected": expected}
    changes = {name: value for name, value in values.items() if value is not None}
    token = _context.set(replace(current(), **changes))  # type: ignore[arg-type]
    try:
        yield
    finally:
        _context.reset(token)
