"""Swagger UI at /docs: its files come from the package fastapi-offline, and from no other site.

By hand: FastAPI's own page has an inline script, which our Content-Security-Policy refuses, and for
which it would have to allow every script of that page.
"""

from importlib.resources import files

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, Response

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>auxhash: the API</title>
<link rel="icon" href="static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="docs/swagger-ui.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/start.js" defer></script>
</head>
<body><div id="swagger"></div></body>
</html>
"""
START = b'SwaggerUIBundle({ url: "openapi.json", dom_id: "#swagger", deepLinking: true });\n'
KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}


def router() -> APIRouter:
    """Return the page that shows the OpenAPI document and sends requests, and its files."""
    routes, folder = APIRouter(include_in_schema=False), files("fastapi_offline") / "static"
    names = ("swagger-ui-bundle.js", "swagger-ui.css")
    contents = {"start.js": START} | {name: (folder / name).read_bytes() for name in names}

    @routes.get("/docs")
    def page() -> Response:
        return HTMLResponse(PAGE)

    @routes.get("/docs/{name}")
    def file(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404, "there is no such file")
        headers = {"Cache-Control": "max-age=3600"}
        return Response(contents[name], media_type=KINDS[name.rpartition(".")[2]], headers=headers)

    return routes
