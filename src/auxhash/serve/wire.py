"""The bare protocol (ASGI): what the layers around the application share."""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from auxhash.serve.refused import RefusedError


def header(scope: Scope, name: str) -> str | None:
    """The value of a request's header, or None; several are joined, so that none is overlooked."""
    found = Headers(scope=scope).getlist(name)
    return ", ".join(found) if found else None


async def refuse(refused: RefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a reason. The connection is closed: the request may not have been read."""
    headers = {**refused.headers, "Connection": "close"}
    await JSONResponse({"error": refused.reason}, refused.status, headers)(scope, receive, send)
