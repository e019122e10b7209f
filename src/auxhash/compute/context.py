"""The context of a computation: on how many threads, with which peers, and who listens.

Public functions and estimators enter it with `using`; whatever they call reads it with `current`,
so that nothing in between has to hand it on. Pool threads work in a copy of it (`threads`); any
other new thread starts in the default one. A generator runs in the context of its consumer at each
step: enter a context around its consumption, never inside it, where it would leak at each yield.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auxhash.compute.peers import Peers
    from auxhash.compute.underway import Listener


@dataclass(frozen=True)
class Context:
    """Settings of a computation: its threads, its peers, and the listener to its progress."""

    n_jobs: int | None = None  # threads; see `threads.count`
    peers: "Peers | None" = None  # None: a single process with all points
    listener: "Listener | None" = None  # to be told of long loops


DEFAULT = Context()
_context: ContextVar[Context] = ContextVar("context", default=DEFAULT)


def current() -> Context:
    """Return the context that the caller works in."""
    return _context.get()


@contextmanager
def using(
    n_jobs: int | None = None, peers: "Peers | None" = None, listener: "Listener | None" = None
) -> Iterator[None]:
    """Work in a changed context; arguments that are None leave it as it is."""
    values = {"n_jobs": n_jobs, "peers": peers, "listener": listener}
    changes = {name: value for name, value in values.items() if value is not None}
    token = _context.set(replace(current(), **changes))  # type: ignore[arg-type]
    try:
        yield
    finally:
        _context.reset(token)
