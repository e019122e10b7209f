"""The paths of the API. What they do is the service's; here it is named and described."""

import json
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from auxhash.serve import counters, schemas
from auxhash.serve.limits import Limits
from auxhash.serve.parsing import Body, parsed
from auxhash.serve.refused import later
from auxhash.serve.schemas import id_told
from auxhash.serve.service import Service
from auxhash.serve.work import Work

REASONS = {
    400: "The request is no JSON.",
    401: "The token is missing or wrong.",
    403: "The Host or Origin header is of another site.",
    404: "There is no such point.",
    408: "The request did not arrive in time.",
    409: "A point has no vector, or one of another length.",
    413: "The request is too large.",
    422: "The request is wrong, or asks for too much.",
    429: "Too many requests; Retry-After says when to come again.",
    500: "A fault of the service; its log has more under the id.",
    503: "Starting, busy, too much work, or the store cannot be reached; see Retry-After.",
}
SCHEMA = "#/components/schemas/{model}"
ALWAYS = (401, 403, 408, 413, 429, 500, 503)  # a GET may have a body too


def told(*more: int) -> dict[int | str, dict[str, Any]]:
    """The answers, other than the good one, that a path may give."""
    listed = sorted((*ALWAYS, *more))
    return {status: {"model": schemas.Trouble, "description": REASONS[status]} for status in listed}


def body(model: type[schemas.Strict]) -> dict[str, Any]:
    """The body of a request, for the document; it is parsed by the service's threads."""
    content = {"application/json": {"schema": {"$ref": SCHEMA.format(model=model.__name__)}}}
    return {"requestBody": {"required": True, "content": content}}


def document(app: FastAPI, known: schemas.Requests) -> None:
    """Have the OpenAPI document hold the schemas of bodies, which FastAPI does not see."""
    models = vars(known).values()
    _, found = models_json_schema([(m, "validation") for m in models], ref_template=SCHEMA)

    @cache
    def openapi() -> dict[str, Any]:
        made = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        made["components"]["schemas"].update(found["$defs"])
        return made

    app.openapi = openapi  # type: ignore[method-assign]


def router(
    work: Work, counted: counters.Counters, known: schemas.Requests, limits: Limits
) -> APIRouter:
    """All paths of the API but the page's."""
    found = APIRouter()

    async def done(job: Callable[[Service], Any]) -> Response:
        """The answer as JSON, which is written in the thread of the job."""
        return Response(await work.do(lambda s: _json(job(s))), media_type="application/json")

    async def asked(
        model: type[Body], request: Request, job: Callable[[Service, Body], Any]
    ) -> Response:
        """The answer to a body, which is parsed in the thread of the job, too."""
        content, kind = await request.body(), request.headers.get("content-type", "")
        return await done(lambda service: job(service, parsed(model, content, kind, limits.values)))

    @found.put(
        "/points",
        response_model=schemas.Upserted,
        responses=told(400, 422),
        tags=["points"],
        openapi_extra=body(known.upsert),
    )
    async def upsert(request: Request) -> Response:
        """Put points in, all or none; each replaces the whole point that had its id.

        When the answer comes, they are committed.
        """
        return await asked(
            known.upsert, request, lambda s, given: {"upserted": s.upsert(given.points)}
        )

    @found.post(
        "/points/delete",
        response_model=schemas.Deleted,
        responses=told(400, 422),
        tags=["points"],
        openapi_extra=body(known.delete),
    )
    async def delete(request: Request) -> Response:
        """Delete points, all or none; unknown ids are ignored.

        When the answer comes, it is committed.
        """
        return await asked(known.delete, request, lambda s, given: {"deleted": s.delete(given.ids)})

    @found.post(
        "/points/query",
        response_model=schemas.Answer,
        responses=told(400, 404, 409, 422),
        tags=["points"],
        openapi_extra=body(known.queries),
    )
    async def query(request: Request) -> Response:
        """The k nearest points of each query, or all within a radius, exactly.

        Nearest first, and at equal distance by id, smallest first.
        """
        return await asked(known.queries, request, Service.query)

    @found.get("/points/count", response_model=schemas.Count, responses=told(), tags=["points"])
    async def count() -> Response:
        """How many points there are."""
        return await done(lambda service: {"count": service.store.count()})

    @found.get(
        "/points/{id}", response_model=schemas.TakenPoint, responses=told(404, 422), tags=["points"]
    )
    async def point(name: Annotated[schemas.Id, Path(alias="id")]) -> Response:
        """One point."""
        return await done(lambda service: _point(service, name))

    @found.get("/info", response_model=schemas.Info, responses=told(), tags=["service"])
    async def info() -> Response:
        """What is served, and its limits."""
        return await done(lambda service: service.info())

    @found.get("/healthz", response_model=schemas.Health, responses=told(), tags=["service"])
    async def healthz() -> schemas.Health:
        """That the service lives; it needs no token."""
        return schemas.Health(status="alive")

    @found.get("/readyz", response_model=schemas.Health, responses=told(), tags=["service"])
    async def readyz() -> schemas.Health:
        """That the store is open; 503 before."""
        if not work.ready:
            raise later("the service is starting")
        return schemas.Health(status="ready")

    @found.get(
        "/metrics",
        response_class=Response,
        responses=told() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        tags=["service"],
    )
    async def metrics() -> Response:
        """Counters, as Prometheus reads them."""
        points = await work.do(lambda service: service.store.count()) if work.ready else None
        return Response(counted.text(points), media_type=counters.CONTENT_TYPE)

    return found


def _json(content: Any) -> bytes:
    """An answer as JSON, if it is not already."""
    if isinstance(content, bytes):
        return content
    return json.dumps(content, allow_nan=False).encode()


def _point(service: Service, name: int) -> dict[str, Any]:
    held = service.point(name)
    return {
        "id": id_told(name),
        "code": bytes(held.code).hex(),
        "vector": None if held.vector is None else held.vector.tolist(),
        "payload": held.payload,
    }
