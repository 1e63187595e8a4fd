"""A searcher in another process or on another machine, asked with gRPC."""

from __future__ import annotations

from typing import Any

import grpc
import numpy as np

from pebr_tf.retrieval import shard_pb2, wire
from pebr_tf.retrieval.result import RangeResult, concatenate
from pebr_tf.retrieval.searcher import Request, Searcher
from pebr_tf.retrieval.sharded import ShardUnavailable

# A larger batch is asked in several calls: 256 queries of 10,000 integer ids fit in one.
MESSAGE_BYTES = 32 << 20
# One query with a very large max_results cannot be split: such an answer is still let in.
LARGEST_MESSAGE_BYTES = 1 << 30
# A sample stands for its corpus until the number of items has changed by this share.
SAMPLE_DRIFT = 0.05
# No cap can be larger on the wire, and no index has as many items.
LARGEST_INTEGER = 2**63 - 1


class RemoteSearcher(Searcher):
    """The client of a `shard_server`, in plain text: for a network that is your own.

    It connects when it is first used, and again by itself when a server comes back.
    """

    def __init__(
        self, address: str, timeout_seconds: float = 2.0, message_bytes: int = MESSAGE_BYTES
    ):
        """Makes the client.

        Args:
          address: HOST:PORT of the server.
          timeout_seconds: The deadline of each call; a batch too large for one call is several.
          message_bytes: What a request or an answer may measure before the batch is split.
        """
        self._address = address
        self._timeout = timeout_seconds
        self._message_bytes = message_bytes
        self._channel = grpc.insecure_channel(
            address,
            options=[
                ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
                ("grpc.enable_http_proxy", 0),
                # A server that comes back is found within a second, not within two minutes.
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1_000),
                ("grpc.min_reconnect_backoff_ms", int(1_000 * timeout_seconds)),
                # A machine that has gone is noticed, not only each call's deadline.
                ("grpc.keepalive_time_ms", 10_000),
                ("grpc.keepalive_timeout_ms", 5_000),
            ],
        )
        self._methods = {
            name: self._channel.unary_unary(
                f"/{wire.SERVICE}/{name}",
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )
            for name, (request, response) in wire.METHODS.items()
        }
        self._state: Any = None
        self._sampled: tuple[int, np.ndarray] | None = None

    @property
    def address(self) -> str:
        """HOST:PORT of the server."""
        return self._address

    @property
    def dimension(self) -> int:
        return int(self._known().dimension)

    @property
    def id_dtype(self) -> np.dtype:
        return wire.id_dtype(self._known().id_characters)

    @property
    def background(self) -> np.ndarray:
        items = len(self)
        last = self._sampled
        if last is None or abs(items - last[0]) > SAMPLE_DRIFT * last[0]:
            response = self._call("Describe", shard_pb2.DescribeRequest(background=True))
            sample = wire.unpack(response.background).reshape(-1, response.state.dimension)
            last = self._sampled = (response.state.items, sample)
        return last[1]

    def __len__(self) -> int:
        """The number of items at the last answer; an index that was empty is asked again."""
        state = self._known()
        if not state.items:
            state = self._call("Describe", shard_pb2.DescribeRequest()).state
        return int(state.items)

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def __enter__(self) -> RemoteSearcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _search(self, request: Request) -> RangeResult:
        item_bytes = self.id_dtype.itemsize + request.thresholds.itemsize
        step = self._rows_a_call(min(request.limit, len(self)) * item_bytes)
        return concatenate(
            [
                self._search_rows(request, slice(begin, begin + step))
                for begin in range(0, len(request), step)
            ]
        )

    def _search_rows(self, request: Request, rows: slice) -> RangeResult:
        thresholds = request.thresholds[rows]
        message = shard_pb2.SearchRequest(
            queries=wire.pack_queries(request.queries[rows], thresholds),
            top_k=min(request.top_k or 0, LARGEST_INTEGER),
            max_results=min(request.max_results, LARGEST_INTEGER),
        )
        return wire.unpack_result(self._call("Search", message), thresholds)

    def _expected_count(self, queries: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        step = self._rows_a_call(0)
        counts = []
        for begin in range(0, len(queries), step):
            rows = slice(begin, begin + step)
            message = shard_pb2.ExpectedCountRequest(
                queries=wire.pack_queries(queries[rows], thresholds[rows])
            )
            counts.append(wire.unpack(self._call("ExpectedCount", message).expected_counts))
        return np.concatenate(counts)

    def _rows_a_call(self, answer_bytes: int) -> int:
        """Queries whose request and whose answer, of so many bytes a query, fit in a message."""
        request_bytes = 4 * (self.dimension + 1)
        return max(1, self._message_bytes // max(request_bytes, answer_bytes))

    def _known(self) -> Any:
        """What the server last said of its index, or says now if it never did."""
        state = self._state
        if state is None:
            state = self._call("Describe", shard_pb2.DescribeRequest()).state
        return state

    def _call(self, method: str, message: Any) -> Any:
        try:
            response = self._methods[method](message, timeout=self._timeout)
        except grpc.RpcError as error:
            raise self._failure(error.code(), error.details()) from error
        self._state = response.state
        return response

    def _failure(self, code: grpc.StatusCode, details: str) -> Exception:
        if code is grpc.StatusCode.INVALID_ARGUMENT:
            # What was checked here and is refused there met another index: ask it anew.
            self._state = self._sampled = None
            return ValueError(details)
        # A server that stops cancels what it has not begun.
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return ShardUnavailable(f"{self._address} cannot be reached.")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return ShardUnavailable(
                f"{self._address} gave no answer within {self._timeout:g} seconds."
            )
        return ShardUnavailable(f"{self._address} failed, {code.name}: {details}")
