"""The gRPC API: the service of serving/proto, health and reflection."""

import asyncio
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from pebr_tf.config import Serving
from pebr_tf.libraries import unknown_fields
from serving.client.errors import FIELD, REQUEST_ID
from serving.errors import AuthenticationError, InvalidArgument, ServiceError
from serving.proto.retrieval_pb2 import (
    DESCRIPTOR,
    GetReleaseRequest,
    Release,
    RetrieveRequest,
    RetrieveResponse,
)
from serving.service import logs
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.limits import RequestLimits
from serving.service.metrics import Metrics
from serving.service.rendering import describe_release, to_message

SERVICE = DESCRIPTOR.services_by_name["Retrieval"].full_name
_CONTEXT: TypeAlias = grpc.aio.ServicerContext
_MESSAGE = TypeVar("_MESSAGE", bound=Message)

# protobuf warns about a message that ends too early, which `parse` detects by its length.
warnings.filterwarnings("ignore", "Unexpected end-group tag", RuntimeWarning)


def grpc_server(
    engine: Engine, settings: Serving, metrics: Metrics, access: Access
) -> tuple[grpc.aio.Server, health.aio.HealthServicer]:
    """Returns a gRPC server without a port, and its health service."""
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", settings.limits.request_bytes),
            # The limit of the release bounds a response.
            ("grpc.max_send_message_length", -1),
            # The processes of a service share the port.
            ("grpc.so_reuseport", 1),
            # Clients may ping an idle connection to detect a dead one.
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 30_000),
            ("grpc.http2.max_ping_strikes", 0),
        ],
    )
    api = RetrievalApi(engine, settings, metrics, access)
    # Without a request deserializer: gRPC would report a malformed request as INTERNAL.
    handlers = {
        "Retrieve": grpc.unary_unary_rpc_method_handler(
            api.retrieve, response_serializer=RetrieveResponse.SerializeToString
        ),
        "GetRelease": grpc.unary_unary_rpc_method_handler(
            api.get_release, response_serializer=Release.SerializeToString
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    health_service = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_service, server)
    names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(_Reflection(names, access), server)
    return server, health_service


class RetrievalApi:
    def __init__(self, engine: Engine, settings: Serving, metrics: Metrics, access: Access):
        self._engine, self._metrics, self._access = engine, metrics, access
        self._limits = RequestLimits(settings)
        self._log_queries = settings.log_queries

    async def retrieve(self, body: bytes, context: _CONTEXT) -> Message:
        record = _record("Retrieve", context)

        async def answer() -> Message:
            message = parse(RetrieveRequest, body)
            knob = message.WhichOneof("knob")
            request = self._limits.request(
                message.queries,
                {} if knob is None else {knob: getattr(message, knob)},
                message.limit if message.HasField("limit") else None,
                message.fields.names if message.HasField("fields") else None,
                context.time_remaining(),
            )
            record.add_request(request, self._log_queries)
            response = await self._engine.retrieve(request)
            record.add_response(response)
            return to_message(response, record.request_id, record.seconds())

        try:
            return await self._run(record, context, answer)
        finally:
            self._metrics.request("grpc", record.status, record.seconds())

    async def get_release(self, body: bytes, context: _CONTEXT) -> Message:

        async def answer() -> Message:
            parse(GetReleaseRequest, body)
            return Release(**describe_release(self._engine.retriever))

        return await self._run(_record("GetRelease", context), context, answer)

    async def _run(
        self,
        record: logs.RequestRecord,
        context: _CONTEXT,
        answer: Callable[[], Awaitable[Message]],
    ) -> Message:
        metadata = ((REQUEST_ID, record.request_id),)
        context.set_trailing_metadata(metadata)
        try:
            self._access.check(_metadata(context).get("authorization"))
            return await answer()
        except ServiceError as error:
            record.add_error(error, error.grpc_status.name)
            if isinstance(error, InvalidArgument):
                context.set_trailing_metadata((*metadata, (FIELD, error.field)))
            await context.abort(error.grpc_status, str(error))
        except asyncio.CancelledError:
            # The caller has gone, or its deadline has passed: gRPC has already responded.
            record.status = "CANCELLED"
            raise
        except Exception as error:
            record.add_error(error, "INTERNAL")
            record.log_exception()
            await context.abort(grpc.StatusCode.INTERNAL, logs.INTERNAL_ERROR)
        finally:
            record.write()
        raise AssertionError("abort raises")


class _Reflection(reflection.aio.ReflectionServicer):
    """The standard reflection service, which requires a token like the methods above."""

    def __init__(self, names: Sequence[str], access: Access):
        super().__init__(names)
        self._access = access

    async def ServerReflectionInfo(
        self, requests: AsyncIterable[Any], context: _CONTEXT
    ) -> AsyncIterator[Any]:
        try:
            self._access.check(_metadata(context).get("authorization"))
        except AuthenticationError as error:
            await context.abort(error.grpc_status, str(error))
        async for response in super().ServerReflectionInfo(requests, context):
            yield response


def parse(kind: type[_MESSAGE], body: bytes) -> _MESSAGE:
    """Parses a request.

    Raises:
      InvalidArgument: The bytes are not such a message, or it has a field that this server does not
        know. Ignoring it could change the meaning of the request without notice.
    """
    message = kind()
    try:
        complete = message.MergeFromString(body) == len(body)
    except DecodeError:
        complete = False
    if not complete:
        received = f"{len(body)} bytes that are not one"
        raise InvalidArgument.must_be("request", f"a {kind.DESCRIPTOR.full_name}", received)
    _reject_unknown_fields(message, "")
    return message


def _reject_unknown_fields(message: Message, path: str) -> None:
    for unknown in unknown_fields(message):
        number = f"{path}{unknown.field_number}"
        raise InvalidArgument(
            number,
            f"{message.DESCRIPTOR.full_name} must have only the fields that this server knows. "
            f"Received: field number {number}.",
        )
    for field, value in message.ListFields():
        if field.message_type is not None:
            _reject_unknown_fields(value, f"{path}{field.name}.")


def _metadata(context: _CONTEXT) -> dict[str, Any]:
    return dict(context.invocation_metadata() or ())


def _record(method: str, context: _CONTEXT) -> logs.RequestRecord:
    given = _metadata(context).get(REQUEST_ID)
    return logs.RequestRecord("grpc", method, logs.new_request_id(given))
