"""The OpenAPI document of the HTTP API, and the page that shows it, without external assets."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from pebr_tf.config import Serving
from serving.service.http_middleware import RETRIEVE_PATH
from serving.service.http_schema import ErrorResponse, RetrieveResponseBody, request_schema

# Swagger UI sets inline styles and uses data URLs for icons; scripts are files of this server.
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>pEBR-TF retrieval API</title>
<link rel="icon" href="/static/docs/favicon-32x32.png">
<link rel="stylesheet" href="/static/docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<script src="/static/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
_SCRIPT = """SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  validatorUrl: null,
});
"""
_REASONS = {
    401: "No accepted token, where the server requires one.",
    413: "The body is larger than the limit.",
    415: "The body is not application/json.",
    422: "A field is missing, unknown, of the wrong type, or out of range.",
    429: "The queue is full; the same request may succeed later.",
    500: "Internal error; the log has the reason under the request id.",
    503: "No release is loaded, the server is stopping, or TF Serving does not respond.",
    504: "The deadline passed before the response was ready.",
}


_REFERENCE = "#/components/schemas/{model}"


def error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Returns the `responses` of a route that may respond with these codes."""
    return {code: {"model": ErrorResponse, "description": _REASONS[code]} for code in codes}


def add_document(app: FastAPI, settings: Serving) -> None:
    """Gives `app` its document at /openapi.json and the page at /docs."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                openapi_version="3.0.3",
            )
            _add_retrieve(schema, settings)
            _add_tokens(schema, settings)
            app.openapi_schema = _as_openapi_3_0(schema)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]

    async def openapi_json() -> Response:
        return JSONResponse(document())

    async def page() -> Response:
        return HTMLResponse(_PAGE, headers={"content-security-policy": _POLICY})

    async def script() -> Response:
        return Response(_SCRIPT, media_type="text/javascript")

    app.add_api_route("/openapi.json", openapi_json, include_in_schema=False)
    app.add_api_route("/docs", page, include_in_schema=False)
    app.add_api_route("/docs/start.js", script, include_in_schema=False)
    from swagger_ui_bundle import swagger_ui_path

    app.mount("/static/docs", StaticFiles(directory=swagger_ui_path))


def _add_retrieve(schema: dict[str, Any], settings: Serving) -> None:
    """Documents POST /v1/retrieve, which is a route of Starlette, from its models."""

    def json_of(body: dict[str, Any]) -> dict[str, Any]:
        return {"content": {"application/json": {"schema": body}}}

    response = RetrieveResponseBody.model_json_schema(ref_template=_REFERENCE)
    schema["components"]["schemas"] |= response.pop("$defs")
    error = json_of({"$ref": _REFERENCE.format(model=ErrorResponse.__name__)})
    codes = (401, 413, 415, 422, 429, 500, 503, 504)
    schema["paths"][RETRIEVE_PATH] = {
        "post": {
            "summary": "Retrieve",
            "description": "Returns the items of each query.",
            "operationId": "retrieve",
            "requestBody": {"required": True, **json_of(request_schema(settings))},
            "responses": {
                "200": {"description": "The list of each query.", **json_of(response)},
                **{str(code): {"description": _REASONS[code], **error} for code in codes},
            },
        }
    }


def _add_tokens(schema: dict[str, Any], settings: Serving) -> None:
    if settings.token_file is None:
        return
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path not in ("/healthz", "/readyz"):
                operation["security"] = [{"token": []}]


def _as_openapi_3_0(node: Any) -> Any:
    """Converts a document from OpenAPI 3.1 to 3.0, which the bundled Swagger UI reads.

    In 3.0 null is a property of a type, an exclusive bound a property of a bound, and a schema has
    one example.
    """
    if isinstance(node, list):
        return [_as_openapi_3_0(each) for each in node]
    if not isinstance(node, dict):
        return node
    result = {name: _as_openapi_3_0(each) for name, each in node.items()}
    kinds = result.get("anyOf")
    if isinstance(kinds, list) and {"type": "null"} in kinds:
        (kind,) = (each for each in kinds if each != {"type": "null"})
        del result["anyOf"]
        result = {**result, **kind, "nullable": True}
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(result.get(word), (int, float)) and not isinstance(result[word], bool):
            result[bound], result[word] = result[word], True
    if isinstance(result.get("examples"), list):
        result["example"] = result.pop("examples")[0]
    return result
