"""The HTTP API: JSON in and out, the pages, the probes and the metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from prometheus_client.exposition import choose_encoder
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from pebr_tf import __version__
from pebr_tf.config import Serving
from pebr_tf.config.retrieval import KNOBS
from serving.errors import DeadlineError, InvalidArgument, UnavailableError
from serving.explorer.routes import explorer_router
from serving.service import http_schema as schema
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.http_middleware import (
    RETRIEVE_PATH,
    RequestMiddleware,
    add_error_handlers,
    record_of,
)
from serving.service.limits import RequestLimits, deadline_seconds
from serving.service.metrics import Metrics
from serving.service.openapi import add_document, error_responses
from serving.service.rendering import describe_release, to_json

_JSON = "application/json"


class BodyTooLarge(InvalidArgument):
    """A body above the limit."""

    http_status = 413


class WrongContentType(InvalidArgument):
    """A body whose content type is not JSON."""

    http_status = 415


def http_app(engine: Engine, settings: Serving, metrics: Metrics, access: Access) -> ASGIApp:
    """Returns the application that answers HTTP."""
    app = FastAPI(
        title="pEBR-TF retrieval",
        version=__version__,
        description="Retrieval with lists that end where each query's relevant items end.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        generate_unique_id_function=lambda route: route.name,
    )
    _add_api(app, engine, settings)
    _add_operations(app, engine, metrics)
    app.include_router(explorer_router(engine.retriever, settings.limits.query_characters))
    add_document(app, settings)
    add_error_handlers(app)
    return RequestMiddleware(app, access, metrics)


def _add_api(app: FastAPI, engine: Engine, settings: Serving) -> None:
    limits = RequestLimits(settings)

    # A Starlette route, which `openapi` documents: a FastAPI route would take 0.15 ms of CPU more
    # per request, where a request of a batch takes 0.7 ms in all.
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

    app.add_route(RETRIEVE_PATH, retrieve, ["POST"])

    @app.get(
        "/v1/release",
        response_model=schema.ReleaseBody,
        responses=error_responses(401, 500, 503),
    )
    async def release() -> Response:
        """Returns the release that answers now, and what it accepts."""
        return Response(orjson.dumps(describe_release(engine.retriever())), media_type=_JSON)


def _add_operations(app: FastAPI, engine: Engine, metrics: Metrics) -> None:
    plain = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text."}
    # A response class without a media type, because errors are JSON here as well.
    text: dict[int | str, dict[str, Any]] = {200: plain}

    @app.get("/healthz", response_class=Response, responses={**text})
    async def healthz() -> Response:
        """Responds as long as the process lives."""
        return PlainTextResponse("ok\n")

    @app.get("/readyz", response_class=Response, responses={**text, **error_responses(503)})
    async def readyz() -> Response:
        """Reports whether the service accepts requests."""
        if not engine.ready:
            raise UnavailableError("the service is not ready.")
        return PlainTextResponse("ready\n")

    @app.get("/metrics", response_class=Response, responses={**text, **error_responses(401, 500)})
    async def metrics_text(request: Request) -> Response:
        """Returns the metrics for Prometheus."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.registry), media_type=content_type)


def _check_content_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != _JSON:
        raise WrongContentType(
            "content-type",
            f"content-type must be {_JSON}. Received: {given[:100] or 'nothing'}.",
        )


async def _read_body(request: Request, settings: Serving) -> bytes:
    limit = settings.limits.request_bytes
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit, declared)
    body = b""
    task = asyncio.current_task()
    assert task is not None
    late: list[bool] = []

    def expire() -> None:
        late.append(True)
        task.cancel()

    # A timer costs a tenth of `asyncio.wait_for`, which creates a task.
    seconds = settings.deadline_milliseconds / 1_000
    timer = asyncio.get_running_loop().call_later(seconds, expire)
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _too_large(limit, f"at least {len(body)}")
    except asyncio.CancelledError:
        if not late:
            raise
        raise DeadlineError("the body did not arrive before the deadline.") from None
    except ClientDisconnect:
        raise InvalidArgument("body", "body must be complete. Received: a part of it.") from None
    finally:
        timer.cancel()
    return body


def _too_large(limit: int, received: str) -> BodyTooLarge:
    return BodyTooLarge("body", f"body must be at most {limit} bytes. Received: {received[:20]}.")
