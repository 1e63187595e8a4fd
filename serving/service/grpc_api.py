"""The gRPC API: the service of serving/proto, health and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from pebr_tf.config import Serving
from serving.errors import InvalidArgument, ServiceError, Unauthenticated
from serving.proto import retrieval_pb2
from serving.service import logs
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.grpc_request import parse_get_release, parse_retrieve
from serving.service.limits import CallLimits
from serving.service.metrics import Metrics
from serving.service.rendering import release_facts, reply_to_protobuf

SERVICE = retrieval_pb2.DESCRIPTOR.services_by_name["Retrieval"].full_name
_CONTEXT = grpc.aio.ServicerContext
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def grpc_server(
    engine: Engine, settings: Serving, metrics: Metrics, access: Access
) -> tuple[grpc.aio.Server, Health]:
    """A gRPC server without a port, and its health service.

    Args:
      engine: Answers the calls.
      settings: Limits, deadline, and whether queries go to the log.
      metrics: Told of every call of `Retrieve`.
      access: Who may call.
    """
    server = grpc.aio.server(
        interceptors=[_Gate(access)] if access.required else [],
        options=[
            ("grpc.max_receive_message_length", settings.limits.request_bytes),
            # The limit of the release bounds an answer, and whoever raises it means it.
            ("grpc.max_send_message_length", -1),
            # Otherwise a second server takes a part of the calls of the first, without a word.
            ("grpc.so_reuseport", 0),
            # Clients that ping a connection without calls, to notice one that is dead, may.
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 30_000),
            ("grpc.http2.max_ping_strikes", 0),
        ],
    )
    api = RetrievalApi(engine, settings, metrics, access)
    # Bytes in and out: a request that cannot be parsed is the caller's mistake, which gRPC would
    # call INTERNAL; and an answer is rendered without message objects.
    handlers = {
        "Retrieve": grpc.unary_unary_rpc_method_handler(api.retrieve),
        "GetRelease": grpc.unary_unary_rpc_method_handler(api.get_release),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    watch = Health(engine)
    health_pb2_grpc.add_HealthServicer_to_server(watch, server)
    names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    return server, watch


class RetrievalApi:
    """The methods of the service."""

    def __init__(self, engine: Engine, settings: Serving, metrics: Metrics, access: Access):
        """See `grpc_server`."""
        self._engine, self._metrics, self._access = engine, metrics, access
        self._limits = CallLimits(settings)
        self._log_queries = settings.log_queries

    async def retrieve(self, body: bytes, context: _CONTEXT) -> bytes:
        """The items of each query."""
        record = _record("Retrieve", context)
        try:
            return await self._answer(
                record, context, lambda: self._retrieve(body, context, record)
            )
        finally:
            self._metrics.request("grpc", record.status, record.seconds())

    async def get_release(self, body: bytes, context: _CONTEXT) -> bytes:
        """The release that answers now, and what it accepts."""
        record = _record("GetRelease", context)
        return await self._answer(record, context, lambda: self._release(body))

    async def _retrieve(self, body: bytes, context: _CONTEXT, record: logs.Record) -> bytes:
        asked = parse_retrieve(body)
        call = self._limits.call(
            asked.queries,
            asked.knob,
            asked.limit,
            asked.fields,
            context.time_remaining(),
            "protobuf",
        )
        record.asked(call, self._log_queries)
        reply = await self._engine.retrieve(call)
        record.answered(reply)
        return reply_to_protobuf(reply, record.request_id, record.seconds())

    async def _release(self, body: bytes) -> bytes:
        parse_get_release(body)
        return retrieval_pb2.Release(**release_facts(self._engine.retriever())).SerializeToString()

    async def _answer(
        self, record: logs.Record, context: _CONTEXT, answer: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """Runs one method: refusals become statuses, and the log gets its line."""
        context.set_trailing_metadata((("x-request-id", record.request_id),))
        try:
            if self._access.required:
                self._access.check(_metadata(context).get("authorization"))
            return await answer()
        except ServiceError as error:
            record.refused(error, error.grpc_status.name)
            if isinstance(error, InvalidArgument):
                pairs = (("x-request-id", record.request_id), ("pebr-field", error.field))
                context.set_trailing_metadata(pairs)
            await context.abort(error.grpc_status, str(error))
            raise AssertionError("abort raises") from None
        except asyncio.CancelledError:
            # The caller has gone, or its deadline was over: gRPC has answered for us.
            record.status = "CANCELLED"
            raise
        except Exception as error:
            record.refused(error, "INTERNAL")
            logs.failure("failed", request_id=record.request_id, method=record.method)
            await context.abort(
                grpc.StatusCode.INTERNAL,
                "the server failed; its log has the reason under the request id.",
            )
            raise AssertionError("abort raises") from None
        finally:
            record.write()


class Health(health.aio.HealthServicer):
    """The standard health service: SERVING when the engine is ready, as a whole and by name."""

    def __init__(self, engine: Engine):
        """Takes the engine to watch."""
        super().__init__()
        self._engine = engine

    async def Check(self, request: Any, context: _CONTEXT) -> Any:
        """The state at this moment."""
        await self.refresh()
        return await super().Check(request, context)

    async def refresh(self) -> None:
        """Tells watchers when the engine has become ready, or no longer is."""
        for name in ("", SERVICE):
            await self.set(name, _SERVING if self._engine.ready else _NOT_SERVING)


class _Gate(grpc.aio.ServerInterceptor):
    """Asks for a token before any method but those of health, and those that ask themselves."""

    def __init__(self, access: Access):
        self._access = access

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        # The methods of the API refuse by themselves, so that the log and the metrics know.
        if not details.method.startswith((f"/{health.SERVICE_NAME}/", f"/{SERVICE}/")):
            try:
                self._access.check(dict(details.invocation_metadata).get("authorization"))
            except Unauthenticated as error:
                return _refusal(error)
        return await continuation(details)


def _refusal(error: ServiceError) -> grpc.RpcMethodHandler:
    async def refuse(_: Any, context: _CONTEXT) -> None:
        await context.abort(error.grpc_status, str(error))

    return grpc.stream_stream_rpc_method_handler(refuse)


def _metadata(context: _CONTEXT) -> dict[str, Any]:
    return dict(context.invocation_metadata() or ())


def _record(method: str, context: _CONTEXT) -> logs.Record:
    given = _metadata(context).get("x-request-id")
    return logs.Record("grpc", method, logs.new_request_id(given))
