"""The client for callers that wait."""

from __future__ import annotations

import time
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


class RetrievalClient:
    """One connection to the service, for any number of threads; make one and keep it."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout: float = 1.0,
        retries: int = 2,
    ):
        """Makes a client; it connects with the first call.

        Args:
          address: host:port, or any name that gRPC resolves, such as dns:///name:port.
          token: Bearer token, for servers that ask for one.
          tls: PEM files; None: a connection in the clear.
          timeout: Seconds for a call, all tries together.
          retries: Tries after a failed one, where another may succeed.

        Raises:
          ValueError: An argument is out of its range.
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
        self._budget = RetryBudget()

    def retrieve(
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
        """The items of each query.

        At most one of recall, budget, top_k and score ends the lists; none: the release's default.

        Args:
          queries: Texts that are not blank.
          recall: Share of the relevant to keep, above 0 and below 1.
          budget: Items a query on average.
          top_k: Items a query.
          score: Least cosine.
          limit: Items of a query at most; None: the release's limit.
          fields: Columns of the payload to answer with; None: all of them.
          timeout: Seconds, all tries together; None: the client's.
          request_id: What the server's logs shall know the call by; None: the server makes one.

        Raises:
          RetrievalError: One of `serving.client`'s errors, by what went wrong.
        """
        request = retrieve_request(
            queries, limit, fields, recall=recall, budget=budget, top_k=top_k, score=score
        )
        response = self._call(self._stub.Retrieve, request, timeout, request_id)
        return results_of(tuple(request.queries), response)

    def release(self, timeout: float | None = None) -> ReleaseFacts:
        """The release that answers now; raises what `retrieve` raises."""
        request = retrieval_pb2.GetReleaseRequest()
        return facts_of(self._call(self._stub.GetRelease, request, timeout))

    def healthy(self, timeout: float | None = None) -> bool:
        """Whether the server is there and ready to answer; tried once."""
        try:
            response = self._health.Check(
                health_pb2.HealthCheckRequest(),
                timeout=self._timeout(timeout),
                metadata=self._connection.metadata(),
            )
        except grpc.RpcError:
            return False
        return response.status == health_pb2.HealthCheckResponse.SERVING

    def close(self) -> None:
        """Ends the connection; calls under way are cancelled."""
        self._channel.close()

    def __enter__(self) -> RetrievalClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _timeout(self, timeout: float | None) -> float:
        return self._connection.timeout if timeout is None else check_timeout(timeout)

    def _call(
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
                return method(request, timeout=attempts.remaining(), metadata=metadata)
            except grpc.RpcError as error:
                pause = attempts.pause_after(error)
                if pause is None:
                    raise error_of(error) from error
            time.sleep(pause)
