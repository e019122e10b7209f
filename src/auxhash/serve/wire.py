"""Functions on the bare protocol (ASGI) that the layers around the application share."""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from auxhash.serve.refused import RefusedError


def header(scope: Scope, name: str) -> str | None:
    """Return the value of a request's header, or None; several are joined, to overlook none."""
    values = Headers(scope=scope).getlist(name)
    return ", ".join(values) if values else None


async def refuse(refused: RefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with the reason, and close the connection: the request may not have been read."""
    headers = {**refused.headers, "Connection": "close"}
    await JSONResponse({"error": refused.reason}, refused.status, headers)(scope, receive, send)
