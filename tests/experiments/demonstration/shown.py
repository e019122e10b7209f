"""A small show, learnt once per process, and applications that serve the page."""

import asyncio
from functools import cache
from tempfile import mkdtemp
from typing import Any

import httpx
from fastapi import FastAPI, Request

from auxhash.experiments import datasets
from auxhash.experiments.demonstration.show import Show, router

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@cache
def small() -> Show:
    return Show.of(datasets.load("digits", n_base=300, n_query=100), folder=mkdtemp())


def application(show: Show | None) -> FastAPI:
    """The page alone, under the policy that the service sets."""
    app = FastAPI(openapi_url=None)

    @app.middleware("http")
    async def with_policy(request: Request, call_next):
        response = await call_next(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    app.include_router(router(show))
    return app


class Client:
    """Asks an application, without a network between."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    def get(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._asked("GET", path, more))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._asked("POST", path, more))

    async def _asked(self, method: str, path: str, more: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **more)
