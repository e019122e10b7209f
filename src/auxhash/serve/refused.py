"""RefusedError: the response to a request that is refused, with the reason."""

from collections.abc import Mapping


class RefusedError(Exception):
    """A refusal: the status, 4xx or 503, and the reason, for the client."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, dict(headers or {})


def invalid(reason: str) -> RefusedError:
    """Return the error for a request that can never be answered as it is."""
    return RefusedError(422, reason)


def unavailable(reason: str, seconds: int = 1) -> RefusedError:
    """Return the error for a request that may be sent again after some seconds."""
    return RefusedError(503, reason, {"Retry-After": str(seconds)})
