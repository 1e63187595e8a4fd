"""One process that serves gRPC and HTTP, from its start to the last response after a signal."""

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import sys

import uvloop
from grpc_health.v1.health_pb2 import HealthCheckResponse

from pebr_tf.config import Serving
from pebr_tf.errors import UserError
from serving.service import logs
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.grpc_api import SERVICE, grpc_server
from serving.service.http_api import http_app
from serving.service.http_server import HttpServer
from serving.service.metrics import Metrics
from serving.service.release_manager import ReleaseManager, ReleaseSource
from serving.service.tls import load_credentials

# Python's default of 5 ms makes the event loop wait too long for the thread of the batches.
SWITCH_SECONDS = 0.002
# Time for finished responses to be sent after `drain_seconds` have passed.
LAST_RESPONSES_SECONDS = 1.0


class Server:
    """Both APIs of one engine, on the running event loop."""

    def __init__(self, engine: Engine, settings: Serving, metrics: Metrics):
        """Prepares both servers, which stop the engine when they stop."""
        self._engine, self._settings = engine, settings
        self._credentials = load_credentials(settings.tls)
        access = Access.from_file(settings.token_file)
        self._grpc, self._health = grpc_server(engine, settings, metrics, access)
        app = http_app(engine, settings, metrics, access)
        context = None if self._credentials is None else self._credentials.http
        self._http = HttpServer(app, context)
        self.grpc_port = self.http_port = 0

    async def start(self) -> None:
        """Listens on both ports, and sets `grpc_port` and `http_port`."""
        self.grpc_port = self._listen_grpc()
        listener = listen(self._settings.host, self._settings.http_port, "http_port")
        self.http_port = listener.getsockname()[1]
        await self._grpc.start()
        for name in ("", SERVICE):
            await self._health.set(name, HealthCheckResponse.SERVING)
        self._http_task = asyncio.create_task(self._http.serve(sockets=[listener]))
        while not self._http.started:
            if self._http_task.done():
                self._http_task.result()
            await asyncio.sleep(0.001)

    async def stop(self) -> bool:
        """Rejects new requests, finishes those admitted within `drain_seconds`, closes the ports.

        Returns whether all admitted requests were finished.
        """
        self._engine.drain()
        await self._health.enter_graceful_shutdown()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._settings.drain_seconds
        engine_task = asyncio.ensure_future(self._engine.stop())
        # Not cancelled after the time is over, because a thread cannot be.
        await asyncio.wait([engine_task], timeout=self._settings.drain_seconds)
        finished = engine_task.done()
        left = (
            max(end - loop.time(), LAST_RESPONSES_SECONDS) if finished else LAST_RESPONSES_SECONDS
        )
        self._http.should_exit = True
        await asyncio.gather(self._grpc.stop(left), self._close_http(left))
        # Its finalizer needs one more iteration of this loop, before the loop is closed.
        del self._grpc
        await asyncio.sleep(0)
        return finished

    async def _close_http(self, seconds: float) -> None:
        await asyncio.wait([self._http_task], timeout=seconds)
        self._http.force_exit = True
        await self._http_task

    def _listen_grpc(self) -> int:
        host, port = self._settings.host, self._settings.grpc_port
        # gRPC reports only that it failed; a socket reports why.
        listen(host, port, "grpc_port").close()
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._credentials is None:
                return self._grpc.add_insecure_port(address)
            return self._grpc.add_secure_port(address, self._credentials.grpc)
        except RuntimeError:
            raise _cannot_listen("grpc_port", host, port, "address already in use") from None


def listen(host: str, port: int, name: str) -> socket.socket:
    """Returns a socket that listens on an address.

    Port 0 is any free port; `name` is the port's name in `serving`, for the error.

    Raises:
      UserError: The address is in use, not local, or not permitted.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(name, host, port, error.strerror or str(error)) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.set_inheritable(False)
        # Two sockets may share an address until one of them listens.
        listener.listen(2_048)
    except OSError as error:
        listener.close()
        raise _cannot_listen(name, host, port, os.strerror(error.errno or 0).lower()) from None
    return listener


def _cannot_listen(name: str, host: str, port: int, reason: str) -> UserError:
    return UserError(
        f"serving.{name} must be one that can be listened on. Received: {host}:{port} ({reason})."
    )


def run(source: ReleaseSource, settings: Serving) -> bool:
    """Serves until a signal arrives; returns whether all admitted requests were finished.

    Raises:
      UserError: The settings or the release must be fixed.
    """
    # Cheap checks come before the release is loaded, which takes seconds.
    for name in ("grpc_port", "http_port"):
        listen(settings.host, getattr(settings, name), name).close()
    Access.from_file(settings.token_file)
    load_credentials(settings.tls)
    logs.event("start", source=str(source.directory), follow=source.follow, pid=os.getpid())
    _warn(settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    metrics = Metrics()
    engine = Engine(ReleaseManager(source, settings, metrics), settings, metrics)
    logs.event("ready", release=engine.retriever().release.version)
    # Not `asyncio.run`, which would wait for threads that are still busy after the drain.
    loop = uvloop.new_event_loop()
    return loop.run_until_complete(_serve(engine, settings, metrics))


async def _serve(engine: Engine, settings: Serving, metrics: Metrics) -> bool:
    loop = asyncio.get_running_loop()
    received: asyncio.Future[signal.Signals] = loop.create_future()

    def on_signal(number: signal.Signals) -> None:
        if not received.done():
            received.set_result(number)
            return
        logs.event("stop", level=logging.WARNING, finished=False, signal=number.name)
        logging.shutdown()
        os._exit(1)

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, on_signal, each)
    server = Server(engine, settings, metrics)
    await server.start()
    scheme = "http" if settings.tls.certificate is None else "https"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    logs.event(
        "listening",
        grpc=f"{host}:{server.grpc_port}",
        http=f"{scheme}://{host}:{server.http_port}/",
        grpc_port=server.grpc_port,
        http_port=server.http_port,
        tls=scheme == "https",
    )
    logs.event("drain", signal=(await received).name, seconds=settings.drain_seconds)
    finished = await server.stop()
    logs.event("stop", level=logging.INFO if finished else logging.WARNING, finished=finished)
    return finished


def _warn(settings: Serving) -> None:
    if is_loopback(settings.host):
        return
    missing = []
    if settings.tls.certificate is None:
        missing.append("serving.tls")
    if settings.token_file is None and not settings.tls.mutual:
        missing.append("serving.token_file")
    if missing:
        logs.event("exposed", logging.WARNING, host=settings.host, without=missing)


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
