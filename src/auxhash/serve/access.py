"""Access: who may ask. A token, or else only programs of this machine.

By hand: Starlette's TrustedHostMiddleware looks at the Host header alone, not at that of the page.
"""

import hmac
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from auxhash.serve.refused import RefusedError
from auxhash.serve.wire import header, refuse

LOCAL = ("localhost", "127.0.0.1", "::1")
SAFE = ("GET", "HEAD", "OPTIONS")  # change nothing


class Access:
    """Demands the token, where there is one, of every path that is not open.

    Without a token, the service listens to this machine alone. A page of another site, in a
    browser on this machine, is then kept out: by the Host header (a name of its own that leads
    here) and by the Origin header.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            check: Callable[[Scope], None] = self._check_local
            if self._token is not None:
                check = self._check_token
            try:
                check(scope)
            except RefusedError as refused:
                await refuse(refused, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check_token(self, scope: Scope) -> None:
        if is_open(scope["path"]):
            return
        kind, _, given = (header(scope, "authorization") or "").partition(" ")
        assert self._token is not None
        fits = hmac.compare_digest(given.strip().encode(), self._token)
        if kind.lower() != "bearer" or not fits:
            raise RefusedError(
                401,
                "a token is needed: Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )

    def _check_local(self, scope: Scope) -> None:
        host = header(scope, "host") or ""
        if _name(f"//{host}") not in LOCAL:
            raise RefusedError(403, "the Host header must be localhost or 127.0.0.1")
        origin = header(scope, "origin")
        foreign = origin is not None and _place(origin) != host.lower()
        if foreign and scope["method"] not in SAFE:
            raise RefusedError(403, "requests of pages of other sites are refused")


def is_open(path: str) -> bool:
    """Whether a path needs no token: the page, which asks for it, and whether the service lives."""
    return path in ("/", "/healthz") or path.startswith("/static/")


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _place(url: str) -> str | None:
    """The host and port of a URL, as a Host header has them."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return None
