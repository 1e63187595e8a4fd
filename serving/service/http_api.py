"""The HTTP API: JSON in and out, the pages, the probes and the metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from prometheus_client.exposition import choose_encoder
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from pebr_tf import __version__
from pebr_tf.config import Serving
from serving.errors import DeadlineExceeded, InvalidArgument, ServiceError, Unavailable
from serving.explorer.routes import explorer_router
from serving.service import http_schema as schema
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.http_front import (
    RETRIEVE_PATH,
    Front,
    Handler,
    invalid_parameters,
    record_of,
    refuse,
)
from serving.service.limits import CallLimits, deadline_seconds
from serving.service.metrics import Metrics
from serving.service.openapi import add_document, refusals
from serving.service.rendering import release_facts, reply_to_json

Headers = dict[bytes, bytes]
_JSON = "application/json"


class TooLarge(InvalidArgument):
    """A body above the limit."""

    http_status = 413


class WrongContentType(InvalidArgument):
    """A body that does not say that it is JSON."""

    http_status = 415


def http_app(engine: Engine, settings: Serving, metrics: Metrics, access: Access) -> ASGIApp:
    """The application that answers HTTP.

    Args:
      engine: Answers the calls.
      settings: Limits, deadline, and whether queries go to the log.
      metrics: Told of every call of the API; served at /metrics.
      access: Who may call.
    """
    app = FastAPI(
        title="pEBR-TF retrieval",
        version=__version__,
        description="Queries in, lists that end where each query says out.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False},
        generate_unique_id_function=lambda route: route.name,
    )
    _document_retrieve(app)
    _add_release(app, engine)
    _add_operations(app, engine, metrics)
    app.include_router(explorer_router(engine.retriever, settings.limits.query_characters))
    add_document(app, settings)
    for kind in (ServiceError, HTTPException, Exception):
        app.add_exception_handler(kind, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_parameters)
    return Front(app, _retrieve(engine, settings), access, metrics)


def _retrieve(engine: Engine, settings: Serving) -> Handler:
    """Answers POST /v1/retrieve."""
    limits = CallLimits(settings)

    async def retrieve(request: Request) -> Response:
        record, headers = record_of(request), dict(reversed(request.scope["headers"]))
        _check_content_type(headers)
        asked = schema.parse_request(await _read_body(request, headers, settings))
        call = limits.call(
            asked.queries,
            {name: getattr(asked, name) for name in schema.KNOBS},
            asked.limit,
            asked.fields,
            deadline_seconds(asked.deadline_milliseconds),
        )
        record.asked(call, settings.log_queries)
        reply = await engine.retrieve(call)
        record.answered(reply)
        content = reply_to_json(reply, record.request_id, record.seconds())
        return Response(content, media_type=_JSON)

    return retrieve


def _document_retrieve(app: FastAPI) -> None:
    """Has `app` know of what `Front` answers, for the document and for other methods."""

    @app.post(RETRIEVE_PATH, responses=refusals(401, 413, 415, 422, 429, 500, 503, 504))
    async def retrieve(request: schema.RetrieveRequest) -> schema.RetrieveResponse:
        """The items of each query."""
        raise AssertionError("Front answers")


def _add_release(app: FastAPI, engine: Engine) -> None:
    @app.get(
        "/v1/release",
        response_model=schema.Release,
        responses=refusals(401, 500, 503),
    )
    async def release() -> Response:
        """The release that answers now, and what it accepts."""
        return Response(orjson.dumps(release_facts(engine.retriever())), media_type=_JSON)


def _add_operations(app: FastAPI, engine: Engine, metrics: Metrics) -> None:
    plain = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text."}
    # The class without a type of its own: refusals are JSON here as well.
    text: dict[int | str, dict[str, Any]] = {200: plain}

    @app.get("/healthz", response_class=Response, responses={**text})
    async def healthz() -> Response:
        """Whether the process lives."""
        return PlainTextResponse("ok\n")

    @app.get("/readyz", response_class=Response, responses={**text, **refusals(503)})
    async def readyz() -> Response:
        """Whether it answers calls."""
        if not engine.ready:
            raise Unavailable("the service is not ready.")
        return PlainTextResponse("ready\n")

    @app.get("/metrics", response_class=Response, responses={**text, **refusals(401, 500)})
    async def metrics_text(request: Request) -> Response:
        """Metrics for Prometheus."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.registry), media_type=content_type)


def _check_content_type(headers: Headers) -> None:
    given = headers.get(b"content-type", b"").decode("latin-1")
    if given.partition(";")[0].strip().lower() != _JSON:
        raise WrongContentType(
            "content-type",
            f"content-type must be {_JSON}. Received: {given[:100] or 'nothing'}.",
        )


async def _read_body(request: Request, headers: Headers, settings: Serving) -> bytes:
    """The body, no longer than the limit, and no later than the default deadline."""
    limit = settings.limits.request_bytes
    given = headers.get(b"content-length", b"").decode("latin-1")
    # One that is refused is not read.
    if given.isdecimal() and int(given) > limit:
        raise _too_large(limit, given)
    overdue = _Timer(settings.deadline_milliseconds / 1_000)
    body = b""
    try:
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise InvalidArgument("body", "body must be whole. Received: a part of it.")
            body += message.get("body", b"")
            if len(body) > limit:
                raise _too_large(limit, f"at least {len(body)}")
            if not message.get("more_body", False):
                return body
    except asyncio.CancelledError:
        if not overdue.expired:
            raise
        raise DeadlineExceeded("the body was not there before the deadline.") from None
    finally:
        overdue.stop()


class _Timer:
    """Cancels the running task when its time is over; for a tenth of what `wait_for` costs."""

    def __init__(self, seconds: float):
        self.expired = False
        self._task = asyncio.current_task()
        self._handle = asyncio.get_running_loop().call_later(seconds, self._expire)

    def stop(self) -> None:
        """Lets the task go on."""
        self._handle.cancel()

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()


def _too_large(limit: int, received: str) -> TooLarge:
    return TooLarge("body", f"body must be at most {limit} bytes. Received: {received[:20]}.")


async def _refuse(request: Request, error: Exception) -> Response:
    return refuse(request, error)


async def _refuse_parameters(request: Request, error: Exception) -> Response:
    return refuse(request, invalid_parameters(error))
