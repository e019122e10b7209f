"""Outermost layer: security headers, counters, and a response to every error.

By hand: Starlette's ServerErrorMiddleware does not reach the layers around the application, and
raises each error again, to be logged twice. This takes 26 µs per request; Starlette's base class of
layers, BaseHTTPMiddleware, takes 750 µs before it does anything.
"""

import asyncio
import logging
import secrets
import time

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auxhash.serve.counters import Counters

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
ENCODED_HEADERS = [(key.lower().encode(), value.encode()) for key, value in HEADERS.items()]

LOGGED_AS = "_auxhash_fault"  # attribute of an error that is in the log
FAULT = "a fault of the service; its log has more"

log = logging.getLogger("auxhash.serve")


class Outside:
    """Layer that adds security headers, counts requests, and hides tracebacks from clients."""

    def __init__(self, app: ASGIApp, counters: Counters, seconds: float) -> None:
        self._app, self._counters, self._seconds = app, counters, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_security(message.get("headers", []))
            async with asyncio.timeout(self._seconds):  # a client may not read its response
                await send(message)

        self._counters.present.inc()
        try:
            await self._app(scope, receive, send_on)
        except Exception as error:
            if status and isinstance(error, TimeoutError):
                log.warning("a client did not read its response in time: connection closed")
                raise
            name = log_fault(error)  # a response that is underway cannot be taken back
            if not status:
                content, headers = {"error": FAULT, "id": name}, {"Connection": "close"}
                await JSONResponse(content, 500, headers)(scope, receive, send_on)
        finally:
            self._counters.present.dec()
            method = scope["method"] if scope["method"] in METHODS else "other"
            route = getattr(scope.get("route"), "path", "other")
            self._counters.answered(method, route, status, time.perf_counter() - begun)


def log_fault(error: BaseException) -> str:
    """Log an error with its traceback, once, and return its id, which the client may see."""
    name: str | None = getattr(error, LOGGED_AS, None)
    if name is None:
        name = secrets.token_hex(8)
        setattr(error, LOGGED_AS, name)
        log.error("fault %s", name, exc_info=error)
    return name


def _with_security(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    set_already = {key.lower() for key, _ in headers}
    return [*headers, *((key, value) for key, value in ENCODED_HEADERS if key not in set_already)]
