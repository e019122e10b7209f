"""Paths of the API, with their documentation; the service does the work."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from auxhash.serve import counters, schemas
from auxhash.serve.access import is_open
from auxhash.serve.limits import Limits
from auxhash.serve.parsing import Body, parse
from auxhash.serve.refused import RefusedError
from auxhash.serve.schemas import json_id
from auxhash.serve.service import Service
from auxhash.serve.work import Probe, Work
from auxhash.stores.ids import Id

REASONS = {
    400: "The request is no JSON.",
    401: "The token is missing or wrong.",
    403: "The Host or Origin header is of another site.",
    404: "There is no such point.",
    408: "The request did not arrive in time.",
    409: "A point has no vector, or one of another length; or codes are another model's.",
    413: "The request is too large.",
    422: "The request is wrong, or asks for too much.",
    429: "Too many requests; Retry-After says when to come again.",
    500: "A fault of the service; its log has more under the id.",
    503: "Starting, busy, too much work, or the store cannot be reached; see Retry-After.",
}
SCHEMA = "#/components/schemas/{model}"
ALWAYS_POSSIBLE = (401, 403, 408, 413, 429, 500, 503)  # a GET may have a body too


def errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses that a path may give, for the OpenAPI document."""
    listed = sorted((*ALWAYS_POSSIBLE, *more))
    return {status: {"model": schemas.Trouble, "description": REASONS[status]} for status in listed}


def body(model: type[schemas.Strict]) -> dict[str, Any]:
    """Describe the body of a request in the OpenAPI document; it is parsed by `work`'s threads."""
    content = {"application/json": {"schema": {"$ref": SCHEMA.format(model=model.__name__)}}}
    return {"requestBody": {"required": True, "content": content}}


def document(app: FastAPI, known: schemas.Requests) -> None:
    """Add the schemas of bodies to the OpenAPI document: FastAPI does not see them."""
    models = vars(known).values()
    _, schema = models_json_schema([(m, "validation") for m in models], ref_template=SCHEMA)

    @cache
    def openapi() -> dict[str, Any]:
        content = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        content["components"]["schemas"].update(schema["$defs"])
        for path, ways in content["paths"].items():
            for way in ways.values() if is_open(path) else ():
                way.pop("security", None)
        return content

    app.openapi = openapi  # type: ignore[method-assign]


def router(
    work: Work, counted: counters.Counters, known: schemas.Requests, limits: Limits
) -> APIRouter:
    """Return all paths of the API, without the page's."""
    routes = APIRouter()
    answers = Probe(work, lambda service: service.store.fingerprint)  # cheap in every engine
    n_points = Probe(work, lambda service: service.store.count())

    async def respond(job: Callable[[Service], object]) -> Response:
        """Run a job and return its result as JSON, which is written in the job's thread."""
        return Response(await work.do(lambda s: _json(job(s))), media_type="application/json")

    async def respond_to_body(
        model: type[Body], request: Request, job: Callable[[Service, Body], object]
    ) -> Response:
        """Run a job with the body of a request, which is parsed in the job's thread, too."""
        content, kind = await request.body(), request.headers.get("content-type", "")
        return await respond(
            lambda service: job(service, parse(model, content, kind, limits.values))
        )

    @routes.put(
        "/points",
        response_model=schemas.Upserted,
        responses=errors(400, 409, 422),
        tags=["points"],
        openapi_extra=body(known.upsert),
    )
    async def upsert(request: Request) -> Response:
        """Put points in, all or none; each replaces the whole point that had its id.

        When the response comes, they are committed.
        """
        return await respond_to_body(
            known.upsert,
            request,
            lambda s, content: {"upserted": s.upsert(content.points, content.fingerprint)},
        )

    @routes.post(
        "/points/delete",
        response_model=schemas.Deleted,
        responses=errors(400, 422),
        tags=["points"],
        openapi_extra=body(known.delete),
    )
    async def delete(request: Request) -> Response:
        """Delete points, all or none; unknown ids are ignored.

        When the response comes, it is committed.
        """
        return await respond_to_body(
            known.delete, request, lambda s, content: {"deleted": s.delete(content.ids)}
        )

    @routes.post(
        "/points/query",
        response_model=schemas.Answer,
        responses=errors(400, 404, 409, 422),
        tags=["points"],
        openapi_extra=body(known.queries),
    )
    async def query(request: Request) -> Response:
        """Find the k nearest points of each query, or all within a radius, exactly.

        Nearest first, and at equal distance by id, smallest first.
        """
        return await respond_to_body(known.queries, request, Service.query)

    @routes.post(
        "/encode",
        response_model=schemas.Encoded,
        responses=errors(400, 422),
        tags=["codes"],
        openapi_extra=body(known.encode),
    )
    async def encode(request: Request) -> Response:
        """Codes of vectors or images, by the model of the codes in the store."""
        return await respond_to_body(known.encode, request, Service.encode)

    @routes.get("/points", response_model=schemas.Count, responses=errors(), tags=["points"])
    async def count() -> Response:
        """Number of points in the store."""
        return await respond(lambda service: {"count": service.store.count()})

    @routes.get(
        "/points/{id:path}",
        response_model=schemas.TakenPoint,
        responses=errors(404, 422),
        tags=["points"],
    )
    async def point(name: Annotated[schemas.RequestId, Path(alias="id")]) -> Response:
        """One point, with its code, vector and payload."""
        return await respond(lambda service: _point(service, name))

    @routes.get("/info", response_model=schemas.Info, responses=errors(), tags=["service"])
    async def info() -> Response:
        """Model and store that are served, and the limits of requests."""
        return await respond(lambda service: service.info())

    @routes.get("/healthz", response_model=schemas.Health, responses=errors(), tags=["service"])
    async def healthz() -> schemas.Health:
        """Liveness: 200 while the service runs; it needs no token."""
        return schemas.Health(status="alive")

    @routes.get("/readyz", response_model=schemas.Health, responses=errors(), tags=["service"])
    async def readyz() -> schemas.Health:
        """Readiness: 200 while the store is open and answers, else 503; it needs no token."""
        await answers.result()
        return schemas.Health(status="ready")

    @routes.get(
        "/metrics",
        response_class=Response,
        responses=errors() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        tags=["service"],
    )
    async def metrics() -> Response:
        """Counters, in the text format of Prometheus; they need no token."""
        points, drift = None, None
        with suppress(RefusedError):
            points = await n_points.result()
            drift = await work.do(lambda s: s.drift())
        return Response(counted.text(points, drift), media_type=counters.CONTENT_TYPE)

    return routes


def _json(content: object) -> bytes:
    """Return a result as JSON, if it is not already."""
    if isinstance(content, bytes):
        return content
    return json.dumps(content, allow_nan=False).encode()


def _point(service: Service, name: Id) -> dict[str, object]:
    name, point = service.point(name)
    return {
        "id": json_id(name),
        "code": bytes(point.code).hex(),
        "vector": None if point.vector is None else point.vector.tolist(),
        "payload": point.payload,
    }
