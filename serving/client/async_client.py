"""The client for callers on an asyncio loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from serving.client.connection import Connection, TlsFiles, check_timeout
from serving.client.errors import error_of
from serving.client.request import retrieve_request
from serving.client.results import ReleaseFacts, Results, facts_of, results_of
from serving.client.retries import Attempts
from serving.proto import retrieval_pb2, retrieval_pb2_grpc
from serving.retry_budget import RetryBudget


class AsyncRetrievalClient:
    """One connection to the service, for any number of tasks of one loop; make one and keep it."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout: float = 1.0,
        retries: int = 2,
    ):
        """Makes a client; arguments and errors are those of `RetrievalClient`.

        It may be made before there is a loop, and belongs to that of its first call.
        """
        self._connection = Connection(address, token, tls, timeout, retries)
        self._credentials = None if tls is None else tls.credentials()
        self._budget = RetryBudget()
        self._channel: grpc.aio.Channel | None = None
        self._closed = False

    async def retrieve(
        self,
        queries: Sequence[str],
        *,
        recall: float | None = None,
        budget: float | None = None,
        top_k: int | None = None,
        score: float | None = None,
        limit: int | None = None,
        fields: Sequence[str] | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Results:
        """The items of each query; see `RetrievalClient.retrieve`."""
        request = retrieve_request(
            queries, limit, fields, recall=recall, budget=budget, top_k=top_k, score=score
        )
        self._connect()
        response = await self._call(self._stub.Retrieve, request, timeout, request_id)
        return results_of(tuple(request.queries), response)

    async def release(self, timeout: float | None = None) -> ReleaseFacts:
        """The release that answers now; raises what `retrieve` raises."""
        self._connect()
        request = retrieval_pb2.GetReleaseRequest()
        return facts_of(await self._call(self._stub.GetRelease, request, timeout))

    async def healthy(self, timeout: float | None = None) -> bool:
        """Whether the server is there and ready to answer; tried once."""
        self._connect()
        try:
            response = await self._health.Check(
                health_pb2.HealthCheckRequest(),
                timeout=self._timeout(timeout),
                metadata=self._connection.metadata(),
            )
        except grpc.RpcError:
            return False
        return response.status == health_pb2.HealthCheckResponse.SERVING

    async def close(self) -> None:
        """Ends the connection; calls under way are cancelled."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    async def __aenter__(self) -> AsyncRetrievalClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _timeout(self, timeout: float | None) -> float:
        return self._connection.timeout if timeout is None else check_timeout(timeout)

    def _connect(self) -> None:
        """Makes the channel, once, on the loop that uses it."""
        if self._closed:
            raise ValueError("the client must be open. Received: a call after close().")
        if self._channel is not None:
            return
        address, options = self._connection.address, self._connection.options()
        self._channel = (
            grpc.aio.insecure_channel(address, options)
            if self._credentials is None
            else grpc.aio.secure_channel(address, self._credentials, options)
        )
        self._stub = retrieval_pb2_grpc.RetrievalStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)

    async def _call(
        self,
        method: Callable[..., Any],
        request: Any,
        timeout: float | None,
        request_id: str | None = None,
    ) -> Any:
        attempts = Attempts(self._timeout(timeout), self._connection.retries, self._budget)
        metadata = self._connection.metadata(request_id)
        while True:
            try:
                return await method(request, timeout=attempts.remaining(), metadata=metadata)
            except grpc.RpcError as error:
                pause = attempts.pause_after(error)
                if pause is None:
                    raise error_of(error) from error
            await asyncio.sleep(pause)
