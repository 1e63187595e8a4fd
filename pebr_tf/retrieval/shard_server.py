"""Serves a searcher with gRPC: `python -m pebr_tf.retrieval.shard_server INDEX_DIRECTORY`."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import grpc

from pebr_tf.errors import UserError
from pebr_tf.retrieval import shard_pb2, wire
from pebr_tf.retrieval.searcher import Searcher
from pebr_tf.retrieval.sharded import ShardUnavailable

DEFAULT_THREADS = 8
# Calls that are under way when the server stops have this long to end.
DRAIN_SECONDS = 30.0
# Twice what the client sends at once.
LARGEST_REQUEST_BYTES = 64 << 20


class ShardServer:
    """A running server, made by `serve_shard`; it stops when nobody holds it any more."""

    def __init__(self, server: grpc.Server, address: str):
        self._server = server
        self._address = address

    @property
    def address(self) -> str:
        """HOST:PORT that clients connect to."""
        return self._address

    def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Takes no more calls, waits for those under way, and frees the port."""
        self._server.stop(drain_seconds).wait()

    def __enter__(self) -> ShardServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Handlers:
    """The methods of the service `Shard`."""

    def __init__(self, searcher: Searcher):
        self._searcher = searcher

    def search(self, request: Any) -> Any:
        queries, thresholds = wire.unpack_queries(request.queries)
        result = self._searcher.search(
            queries, thresholds, request.top_k or None, request.max_results
        )
        return wire.pack_result(result, self._searcher)

    def expected_count(self, request: Any) -> Any:
        counts = self._searcher.expected_count(*wire.unpack_queries(request.queries))
        return shard_pb2.ExpectedCountResponse(
            state=wire.pack_state(self._searcher), expected_counts=wire.pack(counts)
        )

    def describe(self, request: Any) -> Any:
        return shard_pb2.DescribeResponse(
            state=wire.pack_state(self._searcher),
            background=wire.pack(self._searcher.background) if request.background else b"",
        )


def _answering(handle: Callable[[Any], Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
    """Gives the errors of a handler the codes that the client turns back into errors."""

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return handle(request)
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except ShardUnavailable as error:
            # Not UNAVAILABLE: this server can be reached, and it knows better what cannot.
            context.abort(grpc.StatusCode.ABORTED, str(error))

    return answer


def check_address(address: str) -> None:
    """Refuses what cannot be listened on, for gRPC would tell only its log why.

    Raises:
      UserError: Not HOST:PORT, not of this machine, or in use.
    """
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    try:
        if not host:
            raise ValueError
        with socket.socket(family) as probe:
            # As gRPC does: calls that have just ended do not keep a port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host.strip("[]"), int(port)))
    except (ValueError, OverflowError):
        raise _refusal(address, "not HOST:PORT") from None
    except OSError as error:
        raise _refusal(address, str(error.strerror)) from None


def _refusal(address: str, reason: str) -> UserError:
    return UserError(
        f"The address must be HOST:PORT, free and of this machine. Received: {address} ({reason})."
    )


def serve_shard(
    searcher: Searcher, address: str = "127.0.0.1:0", threads: int = DEFAULT_THREADS
) -> ShardServer:
    """Starts to serve a searcher, in plain text and to whoever asks.

    Args:
      searcher: What to serve; it stays the caller's to close.
      address: HOST:PORT to listen on; port 0 takes any free one.
      threads: Calls that are answered at once; those beyond wait.

    Raises:
      UserError: The address is not one of this machine, or in use.
    """
    check_address(address)
    handlers = _Handlers(searcher)
    behaviours = {
        "Search": handlers.search,
        "ExpectedCount": handlers.expected_count,
        "Describe": handlers.describe,
    }
    server = grpc.server(
        ThreadPoolExecutor(threads, "shard-server"),
        options=[
            ("grpc.max_receive_message_length", LARGEST_REQUEST_BYTES),
            # Two servers on one port would each get a part of the calls.
            ("grpc.so_reuseport", 0),
            # The client pings every ten seconds to notice a machine that has gone.
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ],
    )
    methods = {
        name: grpc.unary_unary_rpc_method_handler(
            _answering(behaviours[name]),
            request_deserializer=request.FromString,
            response_serializer=response.SerializeToString,
        )
        for name, (request, response) in wire.METHODS.items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(wire.SERVICE, methods),))
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        raise _refusal(address, "just taken") from None
    server.start()
    return ShardServer(server, f"{address.rpartition(':')[0]}:{port}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("index_directory", type=click.Path(path_type=Path))
@click.option("--address", default="127.0.0.1:0", show_default=True, help="HOST:PORT to serve on.")
@click.option("--threads", default=DEFAULT_THREADS, show_default=True, type=click.IntRange(1))
def serve(index_directory: Path, address: str, threads: int) -> None:
    """Serves the index in INDEX_DIRECTORY until SIGTERM, then ends the calls under way."""
    from pebr_tf.retrieval.artifact import load_index

    check_address(address)
    try:
        searcher = load_index(index_directory)
    except OSError as error:
        raise UserError(
            f"INDEX_DIRECTORY must hold an index. Received: {index_directory} ({error})."
        ) from None
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server = serve_shard(searcher, address, threads)
    click.echo(f"{len(searcher)} items of {index_directory} are served at {server.address}")
    stop.wait()
    server.stop()


def main(arguments: list[str] | None = None) -> None:
    """Runs the server; a user's mistake prints one sentence and exits with 2."""
    name = "python -m pebr_tf.retrieval.shard_server"
    try:
        serve.main(args=arguments, prog_name=name)
    except UserError as error:
        click.echo(f"{name}: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
