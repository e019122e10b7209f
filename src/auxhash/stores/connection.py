"""Connections to a PostgreSQL server, from the URL of a store.

By pg8000, whose licence is BSD, and which knows no URLs. psycopg 3, which does, is LGPL, which is
the only reason: it reads 100,000 codes in 0.09 s where pg8000 takes 1.2 s, has 13 MB installed in
place of pg8000's 2.4, and would save `settings` and what it calls, 70 lines. asyncpg is of asyncio.
"""

import getpass
import os
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from auxhash.compute import checks, deadline
from auxhash.compute.checks import ArgumentError
from auxhash.stores.address import Address, engine
from auxhash.stores.store import StoreError

OPTIONS = (  # of a URL; they mean what they mean to PostgreSQL's own programs
    "application_name",
    "connect_timeout",
    "dbname",
    "host",
    "options",
    "password",
    "port",
    "sslmode",
    "sslrootcert",
    "user",
)
SSL_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
SOCKETS = ("/var/run/postgresql", "/tmp")  # folders of a server's socket, if the URL has no host


class Connection:
    """A connection on which each statement is committed, except in a transaction.

    After an error nothing more is sent: what the server would answer next could belong to the
    statement before. `lost` says so, and the server rolls back.
    """

    def __init__(self, address: Address) -> None:
        engine("pg8000", "postgresql")
        from pg8000 import native

        self._url, self.lost = str(address), False
        arguments = settings(address)
        host, port = arguments.pop("host"), arguments.pop("port")
        try:
            line = _socket(host, port, arguments.pop("connect_timeout"))
        except OSError as error:
            place = _path(host, port) if host.startswith("/") else f"{host}:{port}"
            raise self._error(f"connection to {place} failed: {_of_system(error)}") from error
        handled = sys.exc_info()[1]
        try:
            self._server = native.Connection(**arguments, host=host, sock=line)
        except BaseException as error:
            line.close()
            if not isinstance(error, Exception):
                raise
            # Whatever it is: pg8000 reads the answer of something else as all kinds of errors.
            raise self._error(f"connection failed: {_why(_first(error, handled))}") from error

    def run(self, statement: str, **parameters: object) -> list[Any]:
        """The rows that a statement returns; `:name` stands for a parameter."""
        return self._guarded(self._server.run, statement, **parameters) or []

    def run_each(self, statement: str, parameters: list[dict[str, str]]) -> list[list[Any]]:
        """The rows for each set of parameters; the server reads the statement once."""
        prepared = self._guarded(self._server.prepare, statement)
        results = [self._guarded(prepared.run, **each) or [] for each in deadline.each(parameters)]
        self._guarded(prepared.close)
        return results

    @property
    def row_count(self) -> int:
        """Number of rows that the last `run` has changed."""
        return int(self._server.row_count)

    @contextmanager
    def transaction(self, how: str = "") -> Iterator[None]:
        """Commit all statements of it, or none: an error closes the connection."""
        self.run(f"BEGIN {how}")
        try:
            yield
        except BaseException:
            self.close()
            raise
        self.run("COMMIT")

    def close(self) -> None:
        """Let go of the server; closing twice is no error."""
        self.lost = True
        with suppress(Exception):  # the server may have gone before
            self._server.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _guarded(self, work: Callable[..., Any], *args: object, **parameters: object) -> Any:
        from pg8000.exceptions import Error

        if self.lost:
            raise self._error("the connection is closed")
        try:
            return work(*args, **parameters)
        except BaseException as error:  # an interrupt too leaves an answer unread
            self.close()
            if isinstance(error, (Error, OSError)):
                raise self._error(_why(error)) from error
            raise

    def _error(self, why: str) -> StoreError:
        return StoreError(f"{self._url}: {' '.join(why.split())}")


def settings(address: Address) -> dict[str, Any]:
    """Arguments of pg8000 from a URL; ArgumentError for an option we do not know."""
    for key, _ in address.options:
        if key not in OPTIONS:
            raise ArgumentError(
                f"the options of a postgresql URL are table, {', '.join(OPTIONS)}; got {key!r}"
            )
    options = {key: value for key, value in address.options if value}
    parts = address.parts
    place = parts.netloc.rpartition("@")[2]  # parts.hostname has lost its capital letters
    named = place[1:].partition("]")[0] if place[:1] == "[" else place.partition(":")[0]
    port = _number("port", options.get("port", parts.port or 5432), 65_535)
    host = options.get("host") or unquote(named) or _usual_host(port)
    user = options.get("user") or unquote(parts.username or "") or _own_name()
    password = options.get("password") or unquote(parts.password or "")
    timeout = _number("connect_timeout", options.get("connect_timeout", 0), 10**6)
    return {
        "host": host,
        "port": port,
        "user": user,
        "password": password or os.environ.get("PGPASSWORD", ""),
        "database": options.get("dbname") or unquote(parts.path[1:]) or user,
        "application_name": options.get("application_name"),
        "startup_params": {"options": options["options"]} if "options" in options else None,
        "connect_timeout": timeout or None,
        "ssl_context": False if host.startswith("/") else _ssl(options),
    }


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise ArgumentError("url must name a user: postgresql://user@host/database") from error


def _number(name: str, value: str | int, most: int) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return checks.integer(f"{name} in url", value, 0, most)


def _usual_host(port: int) -> str:
    return next((folder for folder in SOCKETS if Path(_path(folder, port)).exists()), "localhost")


def _path(folder: str, port: int) -> str:
    return f"{folder}/.s.PGSQL.{port}"


def _ssl(options: dict[str, str]) -> bool | ssl.SSLContext | None:
    """The `ssl_context` of pg8000: False for never, None if the server can, True or a context."""
    mode, root = options.get("sslmode", "prefer"), options.get("sslrootcert")
    if mode not in SSL_MODES:
        raise ArgumentError(f"sslmode in url must be one of {', '.join(SSL_MODES)}; got {mode!r}")
    if mode == "require" and root:
        mode = "verify-ca"  # as PostgreSQL's own programs do
    if not mode.startswith("verify"):
        return {"disable": False, "prefer": None, "require": True}[mode]
    try:
        context = ssl.create_default_context(cafile=None if root == "system" else root)
    except OSError as error:
        raise ArgumentError(f"sslrootcert in url: {root} cannot be read: {error}") from error
    context.check_hostname = mode == "verify-full"
    return context


def _socket(host: str, port: int, timeout: int | None) -> socket.socket:
    """Connect a socket; pg8000 would apply the timeout to each statement, and hide the cause."""
    if not host.startswith("/"):
        line = socket.create_connection((host, port), timeout)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # pg8000 sends small parts
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    else:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.settimeout(timeout)
            line.connect(_path(host, port))
        except BaseException:
            line.close()
            raise
    line.settimeout(None)
    return line


def _first(error: BaseException, handled: BaseException | None) -> BaseException:
    """The server's error, if pg8000 has failed once more as it closed the connection.

    `handled` is an error that was being handled before, and has nothing to do with it.
    """
    from pg8000.exceptions import DatabaseError

    before: BaseException | None = error
    while not (before is None or before is handled or isinstance(before, DatabaseError)):
        before = before.__cause__ or before.__context__
    return error if before is None or before is handled else before


def _why(error: BaseException) -> str:
    """An error in words: the server's own are dictionaries, and a lost connection is an OSError."""
    from pg8000.exceptions import DatabaseError, InterfaceError

    if isinstance(error, DatabaseError) and isinstance(error.args[0], dict):
        return str(error.args[0].get("M", error.args[0]))
    if isinstance(error, InterfaceError) and str(error) == "network error":
        return "the server has closed the connection"
    if isinstance(error, OSError):
        return f"the connection broke: {_of_system(error)}"
    return f"{type(error).__name__}: {error}"


def _of_system(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
