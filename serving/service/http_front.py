"""What every HTTP request passes: its id, its token, headers of the answer, log and metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.errors import InvalidArgument, ServiceError
from serving.service import logs
from serving.service.access import Access
from serving.service.metrics import Metrics

Handler = Callable[[Request], Awaitable[Response]]
RETRIEVE_PATH = "/v1/retrieve"
# What the machinery around the server asks for, every few seconds and without a token.
PROBES = ("/healthz", "/readyz")
_QUIET = (*PROBES, "/metrics")
_RECORD = "pebr.record"
_STATUS_OF = {
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'self'; object-src 'none'; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'",
}


class Front:
    """The outermost ASGI application."""

    def __init__(self, app: ASGIApp, retrieve: Handler, access: Access, metrics: Metrics):
        """Takes what is behind it.

        Args:
          app: The application.
          retrieve: Answers POST /v1/retrieve without the application, whose routing and parsing
            would take as long as the search of a small list.
          access: Who may call.
          metrics: Told of every call of `retrieve`.
        """
        self._app, self._retrieve = app, retrieve
        self._access, self._metrics = access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        headers = dict(reversed(scope["headers"]))
        record = logs.Record(
            "http",
            f"{scope['method']} {path[:200]}",
            logs.new_request_id(headers.get(b"x-request-id", b"").decode("latin-1")),
        )
        scope[_RECORD] = record
        try:
            await self._answer(scope, receive, _with_headers(send, record), headers)
        finally:
            if path == RETRIEVE_PATH:
                self._metrics.request("http", record.status, record.seconds())
            if path not in _QUIET or record.status != "OK":
                record.write()

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, headers: dict[bytes, bytes]
    ) -> None:
        record = scope[_RECORD]
        request = Request(scope, receive)
        try:
            if scope["path"] not in PROBES:
                self._access.check(headers.get(b"authorization", b"").decode("latin-1"))
            if scope["path"] == RETRIEVE_PATH and scope["method"] == "POST":
                response = await self._retrieve(request)
            else:
                response = self._app
        except ServiceError as error:
            response = refuse(request, error)
        except Exception as error:
            logs.failure("failed", request_id=record.request_id, method=record.method)
            response = refuse(request, error)
        try:
            await response(scope, receive, send)
        except Exception:
            # The caller has its answer already: the application's handler of 500 came before.
            logs.failure("failed", request_id=record.request_id, method=record.method)


def record_of(request: Request) -> logs.Record:
    """What the log will say of a request."""
    return request.scope[_RECORD]


def refuse(request: Request, error: Exception) -> Response:
    """The answer to a request that failed, whatever the reason; also a handler of exceptions."""
    record = record_of(request)
    field, message, headers = None, str(error), {}
    if isinstance(error, ServiceError):
        code, status = error.http_status, error.grpc_status.name
        field = getattr(error, "field", None)
    elif isinstance(error, HTTPException):
        code, headers = error.status_code, dict(error.headers or {})
        status = _STATUS_OF.get(code, "INVALID_ARGUMENT")
        message = _sentence(request, error)
    else:
        code, status = 500, "INTERNAL"
        message = "the server failed; its log has the reason under the request id."
    record.refused(error, status)
    if code in (429, 503):
        headers["retry-after"] = "1"
    if code == 413:
        # The rest of the body is not read, so that nothing can follow it.
        headers["connection"] = "close"
    content = {
        "error": {
            "status": status,
            "message": message,
            "field": field,
            "request_id": record.request_id,
        }
    }
    response = Response(orjson.dumps(content), code, headers, "application/json")
    if code == 401:
        # The second lets a browser ask a person for the token; it reads one scheme a header.
        response.headers.append("www-authenticate", "Bearer")
        response.headers.append("www-authenticate", 'Basic realm="token as password"')
    return response


def invalid_parameters(error: Any) -> InvalidArgument:
    """The first fault that FastAPI found in the parameters of a request."""
    fault = error.errors()[0]
    name = str(fault["loc"][-1])
    received = "nothing" if fault["type"] == "missing" else repr(fault.get("input"))[:100]
    requirement = fault["msg"][:1].lower() + fault["msg"][1:]
    return InvalidArgument(name, f"{name}: {requirement}. Received: {received}.")


def _sentence(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return f"path must be one that /docs lists. Received: {request.url.path[:200]}."
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another")
        return f"method must be {allowed}. Received: {request.method}."
    return str(error.detail or HTTPStatus(error.status_code).phrase)


def _with_headers(send: Send, record: logs.Record) -> Send:
    """`send`, with the headers of every answer added unless the answer has its own."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"]
            present = {name for name, _ in headers}
            headers += [each for each in _HEADERS.items() if each[0] not in present]
            headers.append((b"x-request-id", record.request_id.encode()))
            if record.status == "OK" and message["status"] >= 400:
                record.status = _STATUS_OF.get(message["status"], "INVALID_ARGUMENT")
        await send(message)

    return sending
