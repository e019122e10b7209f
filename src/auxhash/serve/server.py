"""Server: uvicorn, with timeouts for slow clients.

By hand: uvicorn closes idle connections alone, and waits for the rest of a request, or for the
reader of a response, as long as the client likes: with half a head sent, its connection is open
after 15 s, and this one closed after 2.0 s of a timeout of 2.
"""

import asyncio
import ipaddress
import signal
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from auxhash.serve.limits import Limits
from auxhash.serve.work import Work

IDLE_SECONDS = 5  # timeout of a connection without a request
MAX_HEAD_BYTES = 16 << 10  # of a request
SHUTDOWN_SECONDS = 60  # timeout of accepted requests, when the server is stopped


class TimedConnection(H11Protocol):
    """A connection with timeouts: of the head of a request, and of an unread response."""

    seconds = 30.0
    _head: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(  # type: ignore[override]
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; while the last response is being read, check again later."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent != self._unsent:
            self._unsent = unsent
            later = self.loop.call_later(self.seconds, self.timeout_keep_alive_handler)
            self.timeout_keep_alive_task = later
        elif unsent:
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _wait_for_head(self) -> None:
        waiting = str(self.conn.their_state) == "IDLE"
        if not waiting:
            self._stop_waiting()
        elif self._head is None:
            self._head = self.loop.call_later(self.seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class Serving(uvicorn.Server):
    """A server that shuts down on SIGINT and SIGTERM, and does not raise the signal again.

    It starts in any case: older versions of uvicorn leave an application without a word if they are
    stopped before.
    """

    stopping = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.stopping and sig == signal.SIGINT  # a second Ctrl-C
        self.stopping = True

    async def on_tick(self, counter: int) -> bool:
        return self.stopping or await super().on_tick(counter)


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free one. OSError says what is wrong with it."""
    try:
        [(family, kind, number, _, place), *_] = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, number)
    except OSError as error:
        raise OSError(f"{host}:{port} is no address to listen at: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen()  # clients that connect from now on wait
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen at {host}:{port}: {error.strerror}") from error
    return listener


def run(
    app: ASGIApp,
    work: Work,
    at: socket.socket,
    limits: Limits,
    proxies: str | None = None,
    log_requests: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM, finish what was accepted, and close the store.

    Raises the error that kept the service from being opened. `proxies` are the addresses whose
    X-Forwarded-For header is believed.
    """
    connection = type("Timed", (TimedConnection,), {"seconds": limits.seconds})
    config = uvicorn.Config(
        app,
        http=connection,
        ws="none",
        lifespan="on",
        log_level="info" if log_requests else "warning",
        access_log=log_requests,
        proxy_headers=proxies is not None,
        forwarded_allow_ips=proxies,
        server_header=False,
        limit_concurrency=limits.connections,
        backlog=limits.connections,
        timeout_keep_alive=min(IDLE_SECONDS, limits.seconds),  # type: ignore[arg-type]  # or a float
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
    server = Serving(config)

    def give_up() -> None:
        server.stopping = True

    work.on_failure = give_up
    server.run(sockets=[at])
    if work.failed is not None:
        raise work.failed
