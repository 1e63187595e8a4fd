"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from serving.client.connection import Connection, TlsFiles
from serving.client.request import retrieve_request
from serving.client.results import ReleaseInfo, Results
from serving.proto import retrieval_pb2, retrieval_pb2_grpc


class AsyncRetrievalClient:
    """One connection to the service, shared by the tasks of one loop; create one and keep it."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout: float = 1.0,
        retries: int = 2,
    ):
        """Creates a client; arguments and errors are those of `RetrievalClient`.

        It may be created before there is a loop, and belongs to the loop of its first call.
        """
        self._connection = Connection(address, token, tls, timeout, retries)
        self._credentials = None if tls is None else tls.credentials()
        self._open_channel: grpc.aio.Channel | None = None
        self._closed = False

    async def retrieve(
        self,
        queries: Sequence[str],
        *,
        recall: float | None = None,
        share: float | None = None,
        budget: float | None = None,
        top_k: int | None = None,
        score: float | None = None,
        limit: int | None = None,
        fields: Sequence[str] | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Results:
        """Returns the items of each query; see `RetrievalClient.retrieve`."""
        request = retrieve_request(
            queries,
            limit,
            fields,
            recall=recall,
            share=share,
            budget=budget,
            top_k=top_k,
            score=score,
        )
        response = await self._call("Retrieve", request, timeout, request_id)
        return Results.from_message(tuple(request.queries), response)

    async def release(self, timeout: float | None = None) -> ReleaseInfo:
        """Returns the release that answers now; raises what `retrieve` raises."""
        request = retrieval_pb2.GetReleaseRequest()
        return ReleaseInfo.from_message(await self._call("GetRelease", request, timeout))

    async def healthy(self, timeout: float | None = None) -> bool:
        """Returns whether the server is ready to answer; tried once."""
        try:
            response = await health_pb2_grpc.HealthStub(self._channel()).Check(
                health_pb2.HealthCheckRequest(),
                timeout=self._connection.seconds(timeout),
                metadata=self._connection.metadata(),
            )
        except grpc.RpcError:
            return False
        return response.status == health_pb2.HealthCheckResponse.SERVING

    async def close(self) -> None:
        """Closes the connection; pending calls are cancelled."""
        self._closed = True
        if self._open_channel is not None:
            await self._open_channel.close()

    async def __aenter__(self) -> AsyncRetrievalClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _channel(self) -> grpc.aio.Channel:
        """Creates the channel once, on the loop that uses it."""
        if self._closed:
            raise ValueError("the client must be open. Received: a call after close().")
        if self._open_channel is None:
            address, options = self._connection.address, self._connection.options()
            self._open_channel = (
                grpc.aio.insecure_channel(address, options)
                if self._credentials is None
                else grpc.aio.secure_channel(address, self._credentials, options)
            )
            self._stub = retrieval_pb2_grpc.RetrievalStub(self._open_channel)
        return self._open_channel

    async def _call(
        self, method: str, request: Any, timeout: float | None, request_id: str | None = None
    ) -> Any:
        self._channel()
        call = self._connection.begin(timeout)
        metadata = self._connection.metadata(request_id)
        while True:
            try:
                stub = getattr(self._stub, method)
                return await stub(request, timeout=call.remaining(), metadata=metadata)
            except grpc.RpcError as error:
                pause = call.pause_after(error)
            await asyncio.sleep(pause)
