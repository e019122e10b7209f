"""Pool: connections to an engine, so that several threads read from it at the same time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Generic, TypeVar

MAX_CONNECTIONS = 8  # of one store; the service has as many workers

Link = TypeVar("Link")


class Pool(Generic[Link]):
    """At most MAX_CONNECTIONS connections, made when needed, each lent to one thread at a time.

    Where one comes back `lost`, the idle ones are dropped too: the server may have gone.
    """

    def __init__(
        self,
        url: str,
        make: Callable[[], Link],
        drop: Callable[[Link], object] = lambda _: None,
        lost: Callable[[Link], bool] = lambda _: False,
    ) -> None:
        self._url, self._make, self._drop, self._lost = url, make, drop, lost
        self._places = threading.Semaphore(MAX_CONNECTIONS)
        self._idle: list[Link] = []
        self._own = threading.local()
        self._closed = False

    @property
    def mine(self) -> Link:
        """The connection that is lent to this thread."""
        link: Link = self._own.link
        return link

    @contextmanager
    def lent(self) -> Iterator[None]:
        """A connection for this thread, as `mine`; it waits where all are lent."""
        with self._taking(1):
            try:
                link = self._idle.pop()
            except IndexError:
                link = self._make()
            self._own.link = link
            try:
                yield
            finally:
                del self._own.link
                self._idle.append(link)
                if self._lost(link):
                    self._drop_idle()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until none is lent, and let none be; for one thread at a time."""
        with self._taking(MAX_CONNECTIONS):
            yield

    def close(self) -> None:
        """Drop all connections, after those that are lent have come back."""
        with self.alone():
            self._closed = True
            self._drop_idle()

    @contextmanager
    def _taking(self, places: int) -> Iterator[None]:
        with ExitStack() as taken:
            for _ in range(places):
                taken.enter_context(self._places)
            if self._closed:
                raise ValueError(f"{self._url} is closed")
            yield

    def _drop_idle(self) -> None:
        while self._idle:
            self._drop(self._idle.pop())
