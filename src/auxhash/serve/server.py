"""The server: uvicorn, with patience for slow clients that ends."""

import asyncio
import ipaddress
import signal
import socket
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from auxhash.serve.limits import Limits
from auxhash.serve.work import Work

IDLE = 5  # seconds that a connection may stay without a request
HEAD = 16 << 10  # bytes of the head of a request
FINISH = 60  # seconds for what was accepted, when the server is stopped


class TimedConnection(H11Protocol):
    """A connection on which the head of a request must arrive, and an answer leave, in time."""

    seconds = 30.0
    _head: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """No request came; if the answer before is still on its way, look again later."""
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
    """A server that ends in order on SIGINT and SIGTERM, and leaves nothing to be raised after."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT  # a second Ctrl-C
        self.should_exit = True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket at the address; port 0 is any free one. OSError says what is wrong with it."""
    try:
        [(family, kind, number, _, place), *_] = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        found = socket.socket(family, kind, number)
    except OSError as error:
        raise OSError(f"{host}:{port} is no address to listen at: {error.strerror}") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(place)
        found.listen()  # who connects from now on waits, and is not turned away
    except OSError as error:
        found.close()
        raise OSError(f"cannot listen at {host}:{port}: {error.strerror}") from error
    return found


def run(
    app: ASGIApp,
    work: Work,
    at: socket.socket,
    limits: Limits,
    proxies: str | None = None,
    log_requests: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM, finish what was accepted, and close the store.

    Raises what kept the service from being opened. `proxies` are the addresses whose
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
        timeout_keep_alive=min(IDLE, limits.seconds),  # type: ignore[arg-type]  # or a float
        timeout_graceful_shutdown=FINISH,
        h11_max_incomplete_event_size=HEAD,
    )
    server = Serving(config)

    def give_up() -> None:
        server.should_exit = True

    work.on_failure = give_up
    server.run(sockets=[at])
    if work.failed is not None:
        raise work.failed
