"""Refused: an answer that says why there is none."""

from collections.abc import Mapping


class RefusedError(Exception):
    """What a client is told in place of an answer: a status of 4xx or 503, and a reason."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, dict(headers or {})


def wrong(reason: str) -> RefusedError:
    """A request that can never be answered as it is."""
    return RefusedError(422, reason)


def later(reason: str, seconds: int = 1) -> RefusedError:
    """A request that may be sent again."""
    return RefusedError(503, reason, {"Retry-After": str(seconds)})
