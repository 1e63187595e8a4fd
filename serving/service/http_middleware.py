"""What applies to every HTTP request: its id, token, response headers, errors, log and metrics."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.client.errors import REQUEST_ID
from serving.errors import InvalidArgument, ServiceError
from serving.service import logs
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.metrics import Metrics

Endpoint = Callable[[Request], Awaitable[Response]]
RETRIEVE_PATH = "/v1/retrieve"
# Load balancers and Kubernetes call these every few seconds, without a token.
PROBES = ("/healthz", "/readyz")
_NOT_LOGGED = (*PROBES, "/metrics")
_RECORD = "pebr.record"
# Status names of requests that Starlette rejects; other errors have their own.
_STATUS_NAMES = {404: "NOT_FOUND", 405: "UNIMPLEMENTED"}
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'self'; object-src 'none'; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'",
}


class RequestMiddleware:
    """The outermost ASGI application."""

    def __init__(
        self, app: ASGIApp, retrieve: Endpoint, engine: Engine, access: Access, metrics: Metrics
    ):
        """`retrieve` answers POST on RETRIEVE_PATH, and `app` everything else."""
        self._app, self._retrieve, self._engine = app, retrieve, engine
        self._access, self._metrics = access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        request = Request(scope, receive)
        record = logs.RequestRecord(
            "http",
            f"{scope['method']} {path[:200]}",
            logs.new_request_id(request.headers.get(REQUEST_ID)),
        )
        scope[_RECORD] = record
        response = self._app
        try:
            try:
                if path not in PROBES:
                    self._access.check(request.headers.get("authorization"))
                if path == RETRIEVE_PATH and scope["method"] == "POST":
                    response = await self._retrieve(request)
            except ServiceError as error:
                response = await error_response(request, error)
            except Exception as error:
                response = await error_response(request, error)
                record.log_exception()
            await response(scope, receive, self._with_headers(send, record))
        except Exception:
            # Starlette has already sent the response of `error_response`.
            record.log_exception()
        finally:
            if path == RETRIEVE_PATH:
                self._metrics.request("http", record.status, record.seconds())
            if path not in _NOT_LOGGED or record.status != "OK":
                record.write()

    def _with_headers(self, send: Send, record: logs.RequestRecord) -> Send:
        """Returns a `send` that adds the common headers unless the response has its own."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                present = {name for name, _ in headers}
                headers += [each for each in _HEADERS.items() if each[0] not in present]
                headers.append((REQUEST_ID.encode(), record.request_id.encode()))
                if self._engine.retiring:
                    headers.append((b"connection", b"close"))
                if record.status == "OK" and message["status"] >= 400:
                    record.status = _STATUS_NAMES.get(message["status"], "INVALID_ARGUMENT")
            await send(message)

        return send_with_headers


def record_of(request: Request) -> logs.RequestRecord:
    return request.scope[_RECORD]


def add_error_handlers(app: FastAPI) -> None:
    for kind in (ServiceError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, error_response)


async def error_response(request: Request, error: Exception) -> Response:
    """Returns the response to a request that failed; a handler of exceptions."""
    if isinstance(error, RequestValidationError):
        error = _invalid_parameter(error)
    record = record_of(request)
    field, message, headers = getattr(error, "field", None), str(error), {}
    if isinstance(error, ServiceError):
        code, status = error.http_status, error.grpc_status.name
    elif isinstance(error, HTTPException):
        code, headers = error.status_code, dict(error.headers or {})
        status = _STATUS_NAMES.get(code, "INVALID_ARGUMENT")
        message = _http_message(request, error)
    else:
        code, status, message = 500, "INTERNAL", logs.INTERNAL_ERROR
    record.add_error(error, status)
    if code in (429, 503):
        headers["retry-after"] = "1"
    if code == 413:
        # The rest of the body is not read, so the connection cannot be used again.
        headers["connection"] = "close"
    content = {
        "status": status,
        "message": message,
        "field": field,
        "request_id": record.request_id,
    }
    response = Response(orjson.dumps({"error": content}), code, headers, "application/json")
    if code == 401:
        # The second lets a browser ask for the token; browsers read one scheme per header.
        response.headers.append("www-authenticate", "Bearer")
        response.headers.append("www-authenticate", 'Basic realm="token as password"')
    return response


def _invalid_parameter(error: RequestValidationError) -> InvalidArgument:
    first = error.errors()[0]
    name = str(first["loc"][-1])
    received = "nothing" if first["type"] == "missing" else repr(first.get("input"))[:100]
    requirement = first["msg"][:1].lower() + first["msg"][1:]
    return InvalidArgument(name, f"{name}: {requirement}. Received: {received}.")


def _http_message(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return f"path must be one that /docs lists. Received: {request.url.path[:200]}."
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another")
        return f"method must be {allowed}. Received: {request.method}."
    return str(error.detail or HTTPStatus(error.status_code).phrase)
