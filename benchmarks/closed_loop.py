"""Closed-loop clients, which send the next request as soon as the last one is answered.

Runs in a process of its own and writes one JSON object: queries answered, seconds, and the latency
of each request. It writes HTTP by hand over persistent connections, because a client library would
use more processor time than the service.

  python -m benchmarks.closed_loop http://127.0.0.1:8601/v1/retrieve --queries FILE --clients 8

With an address such as 127.0.0.1:8600 it calls the gRPC API, with a connection for each client.
"""

import asyncio
import itertools
import json
import re
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import click
import uvloop

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_TIMINGS = re.compile(rb'"timings": *(\{[^}]*\})')
_RELEASE = re.compile(rb'"release": *(\d+)')


class Load:
    """State that all clients share: the requests, the end, and what was answered."""

    def __init__(self, url: str, bodies: list[bytes], seconds: float, warm_up: float):
        parts, self.address = urlsplit(url), url
        self.host, self.port = parts.hostname, parts.port
        head = (
            f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        whole = [head + str(len(body)).encode() + b"\r\n\r\n" + body for body in bodies]
        self._requests = itertools.cycle(whole if parts.hostname else bodies)
        self.begin = time.perf_counter() + warm_up
        self.end = self.begin + seconds
        self.latencies: list[float] = []
        self.timings: list[bytes] = []
        self.releases: dict[str, int] = {}
        self.failures: dict[str, int] = {}

    def next_request(self) -> bytes | None:
        """The next request, or None when the time is over."""
        return next(self._requests) if time.perf_counter() < self.end else None

    def answered(self, seconds: float, head: bytes, body: bytes) -> None:
        """Records an answer, unless it belongs to the warm-up."""
        status = head[9:12]
        if status != b"200":
            name = f"{status.decode()}: {body[:200].decode(errors='replace')}"
            self.failures[name] = self.failures.get(name, 0) + 1
        elif time.perf_counter() >= self.begin:
            self.latencies.append(seconds)
            found = _TIMINGS.search(body, max(len(body) - 400, 0)) or _TIMINGS.search(body)
            if found:
                self.timings.append(found[1])
            found = _RELEASE.search(body)
            if found:
                name = found[1].decode()
                self.releases[name] = self.releases.get(name, 0) + 1


class ClosedLoopClient(asyncio.Protocol):
    """One persistent connection with one request at a time."""

    def __init__(self, load: Load):
        self._load, self._received = load, bytearray()
        self._needed: int | None = None
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = self._load.next_request()
        if request is None:
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._needed is None:
            self._head = self._received.find(b"\r\n\r\n") + 4
            if self._head < 4:
                return
            self._needed = self._head + int(_LENGTH.search(self._received, 0, self._head)[1])
        if len(self._received) < self._needed:
            return
        head, body = bytes(self._received[: self._head]), bytes(self._received[self._head :])
        self._load.answered(time.perf_counter() - self._sent, head, body)
        self._received.clear()
        self._needed = None
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if self._load.next_request() is not None:
            name = f"connection lost: {error}"
            self._load.failures[name] = self._load.failures.get(name, 0) + 1
        if not self.done.done():
            self.done.set_result(None)


async def call(load: Load) -> None:
    """One gRPC client: one connection with one call at a time."""
    import grpc

    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(load.address, options=options) as channel:
        method = channel.unary_unary("/pebr.retrieval.v1.Retrieval/Retrieve")
        while (request := load.next_request()) is not None:
            sent = time.perf_counter()
            try:
                body = await method(request)
            except grpc.RpcError as error:
                name = f"{error.code()}: {error.details()}"
                load.failures[name] = load.failures.get(name, 0) + 1
            else:
                load.answered(time.perf_counter() - sent, b"HTTP/1.1 200", body)


async def run(load: Load, clients: int) -> None:
    """Runs `clients` connections until the time is over."""
    loop = asyncio.get_running_loop()
    if load.host is None:
        await asyncio.gather(*(call(load) for _ in range(clients)))
        return
    made = [
        await loop.create_connection(lambda: ClosedLoopClient(load), load.host, load.port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.done for _, client in made))


@click.command()
@click.argument("url")
@click.option("--queries", type=click.Path(path_type=Path, exists=True), help="One query per line.")
@click.option("--clients", type=int, default=8)
@click.option("--batch", type=int, default=1, help="Queries per request.")
@click.option("--seconds", type=float, default=10.0)
@click.option("--warm-up", type=float, default=2.0, help="Seconds that are not counted.")
def main(url: str, queries: Path, clients: int, batch: int, seconds: float, warm_up: float) -> None:
    """Load a service and print the outcome as JSON."""
    texts = queries.read_text(encoding="utf-8").splitlines()
    chunks = [texts[begin : begin + batch] for begin in range(0, len(texts) - batch + 1, batch)]
    if url.startswith("http"):
        bodies = [json.dumps({"queries": chunk}).encode() for chunk in chunks]
    else:
        from serving.proto.retrieval_pb2 import RetrieveRequest

        bodies = [RetrieveRequest(queries=chunk).SerializeToString() for chunk in chunks]
    load = Load(url, bodies, seconds, warm_up)
    uvloop.install()
    asyncio.run(run(load, clients))
    content = {
        "requests": len(load.latencies),
        "queries": len(load.latencies) * batch,
        "seconds": seconds,
        "latencies": load.latencies,
        "timings": [json.loads(each) for each in load.timings],
        "releases": load.releases,
        "failures": load.failures,
    }
    json.dump(content, sys.stdout)


if __name__ == "__main__":
    main()
