"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from serving.client.connection import Connection, TlsFiles
from serving.client.request import retrieve_request
from serving.client.results import ReleaseInfo, Results
from serving.proto import retrieval_pb2, retrieval_pb2_grpc


class RetrievalClient:
    """One connection to the service, shared by any number of threads; create one and keep it."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout: float = 1.0,
        retries: int = 2,
    ):
        """Creates a client, which connects with its first call.

        Args:
          address: host:port, or any name that gRPC resolves, such as dns:///name:port.
          token: Bearer token, for servers that require one.
          tls: PEM files; None for an unencrypted connection.
          timeout: Seconds per call, all attempts together.
          retries: Attempts after a failed one, where another may succeed.

        Raises:
          ValueError: An argument is out of range.
          OSError: A PEM file cannot be read.
        """
        self._connection = Connection(address, token, tls, timeout, retries)
        options = self._connection.options()
        self._channel = (
            grpc.insecure_channel(address, options)
            if tls is None
            else grpc.secure_channel(address, tls.credentials(), options)
        )
        self._stub = retrieval_pb2_grpc.RetrievalStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)

    def retrieve(
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
        """Returns the items of each query.

        At most one of recall, share, budget, top_k and score is given; by default the release's.

        Args:
          queries: Texts, none blank.
          recall: Share of the relevant items to keep, above 0 and below 1.
          share: Share of each query's own relevant items to keep.
          budget: Average number of items per query.
          top_k: Items per query.
          score: Least cosine.
          limit: Most items per query; None for the release's limit.
          fields: Columns of the payload to return; None for all of them.
          timeout: Seconds, all attempts together; None for the client's.
          request_id: Id of the request in the server's log; None for one that the server makes.

        Raises:
          RetrievalError: One of the errors of `serving.client`.
        """
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
        response = self._call(self._stub.Retrieve, request, timeout, request_id)
        return Results.from_message(tuple(request.queries), response)

    def release(self, timeout: float | None = None) -> ReleaseInfo:
        """Returns the release that answers now; raises what `retrieve` raises."""
        request = retrieval_pb2.GetReleaseRequest()
        return ReleaseInfo.from_message(self._call(self._stub.GetRelease, request, timeout))

    def healthy(self, timeout: float | None = None) -> bool:
        """Returns whether the server is ready to answer; tried once."""
        try:
            response = self._health.Check(
                health_pb2.HealthCheckRequest(),
                timeout=self._connection.seconds(timeout),
                metadata=self._connection.metadata(),
            )
        except grpc.RpcError:
            return False
        return response.status == health_pb2.HealthCheckResponse.SERVING

    def close(self) -> None:
        """Closes the connection; pending calls are cancelled."""
        self._channel.close()

    def __enter__(self) -> RetrievalClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _call(
        self,
        method: Callable[..., Any],
        request: Any,
        timeout: float | None,
        request_id: str | None = None,
    ) -> Any:
        call = self._connection.begin(timeout)
        metadata = self._connection.metadata(request_id)
        while True:
            try:
                return method(request, timeout=call.remaining(), metadata=metadata)
            except grpc.RpcError as error:
                pause = call.pause_after(error)
            time.sleep(pause)
