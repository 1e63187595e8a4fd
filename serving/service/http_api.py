"""The HTTP API: JSON in and out, the pages, the probes and the metrics."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from fastapi import FastAPI, Request, Response, Security, params
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from prometheus_client.exposition import choose_encoder
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from pebr_tf import __version__
from pebr_tf.config import Serving
from pebr_tf.config.retrieval import KNOBS
from serving.client.results import ReleaseInfo
from serving.errors import (
    AuthenticationError,
    DeadlineError,
    InvalidArgument,
    OverloadError,
    ServiceError,
    UnavailableError,
)
from serving.explorer.routes import explorer_router
from serving.service import http_schema as schema
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.http_middleware import (
    RETRIEVE_PATH,
    Endpoint,
    RequestMiddleware,
    add_error_handlers,
    record_of,
)
from serving.service.limits import RequestLimits, deadline_seconds
from serving.service.metrics import Metrics
from serving.service.rendering import describe_release, to_json

_JSON = "application/json"
_DOCS = Path(__file__).parent / "docs"
# Swagger UI sets inline styles and uses data URLs for icons; scripts are files of this server.
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class BodyTooLarge(InvalidArgument):
    """The body is larger than the limit."""

    http_status = 413


class WrongContentType(InvalidArgument):
    """The body is not application/json."""

    http_status = 415


def http_app(engine: Engine, settings: Serving, metrics: Metrics, access: Access) -> ASGIApp:
    """Returns the application that answers HTTP."""
    app = FastAPI(
        title="pEBR-TF retrieval",
        version=__version__,
        description="Retrieval with lists that end where each query's relevant items end.",
        openapi_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        generate_unique_id_function=lambda route: route.name,
    )
    app.openapi_version = "3.0.3"
    # For the document only: `RequestMiddleware` checks tokens.
    token = [Security(HTTPBearer(scheme_name="token", auto_error=False))] if access.required else []
    retrieve = _add_api(app, engine, settings, token)
    _add_operations(app, engine, metrics, token)
    _add_document(app)
    app.include_router(explorer_router(engine.retriever, settings.limits.query_characters))
    add_error_handlers(app)
    return RequestMiddleware(app, retrieve, engine, access, metrics)


def _add_api(
    app: FastAPI, engine: Engine, settings: Serving, token: Sequence[params.Depends]
) -> Endpoint:
    """Adds the API; returns `retrieve`, which the middleware calls without FastAPI's layers."""
    limits = RequestLimits(settings)
    body_schema = {_JSON: {"schema": schema.request_schema(settings)}}

    # The request is read here, not by FastAPI, which would accept a body of any size.
    @app.post(
        RETRIEVE_PATH,
        dependencies=token,
        response_model=schema.RetrieveResponseBody,
        response_description="The list of each query.",
        responses=_errors(
            AuthenticationError,
            BodyTooLarge,
            WrongContentType,
            InvalidArgument,
            OverloadError,
            ServiceError,
            UnavailableError,
            DeadlineError,
        ),
        openapi_extra={"requestBody": {"required": True, "content": body_schema}},
    )
    async def retrieve(request: Request) -> Response:
        """Returns the items of each query."""
        record = record_of(request)
        _check_content_type(request)
        body = schema.parse_request(await _read_body(request, settings))
        retrieval = limits.request(
            body.queries,
            {name: getattr(body, name) for name in KNOBS},
            body.limit,
            body.fields,
            deadline_seconds(body.deadline_milliseconds),
        )
        record.add_request(retrieval, settings.log_queries)
        response = await engine.retrieve(retrieval)
        record.add_response(response)
        content = to_json(response, record.request_id, record.seconds())
        return Response(content, media_type=_JSON)

    @app.get(
        "/v1/release",
        dependencies=token,
        response_model=ReleaseInfo,
        responses=_errors(AuthenticationError, ServiceError, UnavailableError),
    )
    async def release() -> Any:
        """Returns the release that answers now, and what it accepts."""
        return describe_release(engine.retriever)

    return retrieve


def _add_operations(
    app: FastAPI, engine: Engine, metrics: Metrics, token: Sequence[params.Depends]
) -> None:
    plain = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text."}
    # A response class without a media type, because errors are JSON here as well.
    text: dict[int | str, dict[str, Any]] = {200: plain}

    @app.get("/healthz", response_class=Response, responses={**text})
    async def healthz() -> Response:
        """Responds as long as the process lives."""
        return PlainTextResponse("ok\n")

    @app.get("/readyz", response_class=Response, responses={**text, **_errors(UnavailableError)})
    async def readyz() -> Response:
        """Reports whether the service accepts requests."""
        if not engine.ready:
            raise UnavailableError("the service is not ready.")
        return PlainTextResponse("ready\n")

    @app.get(
        "/metrics",
        dependencies=token,
        response_class=Response,
        responses={**text, **_errors(AuthenticationError, ServiceError)},
    )
    async def metrics_text(request: Request) -> Response:
        """Returns the metrics for Prometheus."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.exported()), media_type=content_type)


def _add_document(app: FastAPI) -> None:
    """Adds the OpenAPI document and the page that shows it, without external assets."""
    from swagger_ui_bundle import swagger_ui_path

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi_json() -> Response:
        return JSONResponse(schema.as_openapi_3_0(app.openapi()))

    @app.get("/docs", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(_DOCS / "index.html", headers={"content-security-policy": _POLICY})

    app.mount("/docs", StaticFiles(directory=_DOCS))
    app.mount("/static/docs", StaticFiles(directory=swagger_ui_path))


def _errors(*kinds: type[ServiceError]) -> dict[int | str, dict[str, Any]]:
    """Returns the `responses` of a route that may raise these errors."""
    return {
        kind.http_status: {
            "model": schema.ErrorResponse,
            "description": (kind.__doc__ or "").partition("\n")[0],
        }
        for kind in kinds
    }


def _check_content_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != _JSON:
        raise WrongContentType.must_be("content-type", _JSON, given[:100] or "nothing")


async def _read_body(request: Request, settings: Serving) -> bytes:
    limit = settings.limits.request_bytes
    requirement = f"at most {limit} bytes"
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise BodyTooLarge.must_be("body", requirement, declared[:20])
    body = b""
    try:
        with anyio.fail_after(settings.deadline_milliseconds / 1_000):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    received = f"at least {len(body)}"
                    raise BodyTooLarge.must_be("body", requirement, received)
    except TimeoutError:
        raise DeadlineError("the body did not arrive before the deadline.") from None
    except ClientDisconnect:
        raise InvalidArgument.must_be("body", "complete", "a part of it") from None
    return body
