"""Application: the API and the page, inside the layers that guard them."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from auxhash.compute.checks import ArgumentError
from auxhash.compute.deadline import DeadlineError
from auxhash.compute.version import __version__
from auxhash.serve import api, schemas, swagger
from auxhash.serve.access import Access
from auxhash.serve.bodies import Bodies
from auxhash.serve.counters import Counters
from auxhash.serve.limits import Limits
from auxhash.serve.outside import FAULT, Outside, log_fault
from auxhash.serve.parsing import first_error
from auxhash.serve.rates import Rates
from auxhash.serve.refused import RefusedError
from auxhash.serve.service import Service
from auxhash.serve.work import Work
from auxhash.stores import StoreError

ABOUT = """\
Codes of points, searched exactly by Hamming distance.

Codes travel in hexadecimal: bit k of a code is bit k % 8 of byte k // 8. Ids are whole numbers or
text, as the first points have them. Numbers above 2^53 - 1 are text in responses, because
JavaScript would round them."""


def make(
    opened: Callable[[], Service],
    limits: Limits | None = None,
    token: str | None = None,
    page: APIRouter | None = None,
) -> tuple[ASGIApp, Work]:
    """Return the application, and its `Work`, which starts with the application.

    Args:
        opened: opens the service, in the background.
        token: demanded of all clients; without, only programs of this machine are served.
        page: more paths beside the API, such as `experiments.demonstration.show.router`.
    """
    limits = limits or Limits()
    work, counters, known = Work(opened, limits), Counters(), schemas.requests(limits)
    counters.follow(lambda: work.present)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        work.start()
        yield
        await work.stop()

    app = FastAPI(
        title="auxhash",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages fetch scripts from elsewhere; see `swagger`
        redoc_url=None,
    )
    guarded = [] if token is None else [Security(HTTPBearer(auto_error=False))]
    app.include_router(api.router(work, counters, known, limits), dependencies=guarded)
    app.include_router(swagger.router())
    if page is not None:
        app.include_router(page, include_in_schema=False)
    api.document(app, known)
    _handle_errors(app)
    inner: ASGIApp = Bodies(app, limits)
    inner = Rates(Access(inner, token), limits.rate)
    return Outside(inner, counters, limits.seconds), work


def _handle_errors(app: FastAPI) -> None:
    """Respond to every error with {"error": reason}."""

    def response(
        status: int, reason: str, headers: Mapping[str, str] | None = None, **more: str
    ) -> JSONResponse:
        return JSONResponse({"error": reason, **more}, status, headers)

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> JSONResponse:
        return response(error.status, error.reason, error.headers)

    @app.exception_handler(ArgumentError)
    async def wrong(_: Request, error: ArgumentError) -> JSONResponse:
        return response(422, str(error))

    @app.exception_handler(DeadlineError)
    async def too_long(_: Request, error: DeadlineError) -> JSONResponse:
        reason = "processing the request timed out: ask for less, in several requests"
        return response(503, reason, {"Retry-After": "1"})

    @app.exception_handler(StoreError)
    async def unreachable(_: Request, error: StoreError) -> JSONResponse:
        reason = "the store cannot be read or written; the service's log has more"
        return response(503, reason, {"Retry-After": "5"}, id=log_fault(error))

    @app.exception_handler(Exception)
    async def faulty(_: Request, error: Exception) -> JSONResponse:
        return response(500, FAULT, id=log_fault(error))

    @app.exception_handler(HTTPException)
    async def known(_: Request, error: HTTPException) -> JSONResponse:
        return response(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return response(422, first_error(error.errors()))
