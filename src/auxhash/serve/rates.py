"""Rates: how often one client may ask.

By hand: neither Starlette nor uvicorn counts requests by client.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from auxhash.serve.refused import RefusedError
from auxhash.serve.wire import refuse

REMEMBERED = 10_000  # clients
BURST = 2.0  # seconds of the rate that may come at once


class Buckets:
    """A bucket per client that fills at a steady rate; a request takes one from it.

    The clients that were seen longest ago are forgotten.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(1.0, BURST * rate)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much, and when

    def wait(self, client: str) -> float:
        """Take one: 0, or the seconds until there is one again."""
        now = self._clock()
        left, then = self._left.pop(client, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        taken = left >= 1
        self._left[client] = (left - taken, now)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if taken else (1 - left) / self._rate


class Rates:
    """Refuses the requests of a client that come too often; `/healthz` may always be asked."""

    def __init__(self, app: ASGIApp, rate: float) -> None:
        self._app = app
        self._buckets = Buckets(rate) if rate else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._buckets and scope["path"] != "/healthz":
            client = scope.get("client") or ("", 0)
            seconds = self._buckets.wait(client[0])
            if seconds:
                again = str(math.ceil(seconds))
                told = RefusedError(429, "too many requests", {"Retry-After": again})
                await refuse(told, scope, receive, send)
                return
        await self._app(scope, receive, send)
