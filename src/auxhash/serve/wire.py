"""The bare protocol: what every layer around the application shares (ASGI)."""

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from auxhash.serve.refused import RefusedError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def header(scope: Scope, name: bytes) -> str | None:
    """The value of a request's header, or None; several are joined, as HTTP has it."""
    found = [value for key, value in scope["headers"] if key.lower() == name]
    return b", ".join(found).decode("latin-1") if found else None


def problem(reason: str, **more: str) -> bytes:
    """The body of an answer that is none."""
    return json.dumps({"error": reason, **more}).encode()


async def refuse(send: Send, refused: RefusedError) -> None:
    """Answer with a reason. The connection is closed: the request may not have been read."""
    headers = {**refused.headers, "Connection": "close"}
    await answer(send, refused.status, problem(refused.reason), headers)


async def answer(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    listed = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    pairs = [(key.lower().encode(), value.encode("latin-1")) for key, value in listed.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
