"""Both APIs of one engine, on the running event loop, from the first connection to the last."""

import asyncio
import socket

from grpc_health.v1.health_pb2 import HealthCheckResponse

from pebr_tf.config import Serving
from serving.service.access import Access
from serving.service.engine import Engine
from serving.service.grpc_api import SERVICE, grpc_server
from serving.service.http_api import http_app
from serving.service.http_server import HttpServer
from serving.service.metrics import Metrics
from serving.service.sockets import cannot_listen
from serving.service.tls import load_credentials

# Time for finished responses to be sent after `drain_seconds` have passed.
LAST_RESPONSES_SECONDS = 1.0
# How often a server that retires looks whether all its connections have ended.
LOOK_SECONDS = 0.05


class Server:
    """Answers gRPC on a port that processes may share, and HTTP on connections it is given."""

    def __init__(self, engine: Engine, settings: Serving, metrics: Metrics):
        self._engine, self._settings = engine, settings
        self._credentials = load_credentials(settings.tls)
        access = Access.from_file(settings.token_file)
        self._grpc, self._health = grpc_server(engine, settings, metrics, access)
        self._http = HttpServer(http_app(engine, settings, metrics, access))
        self.grpc_port = 0

    async def start(self) -> None:
        """Listens for gRPC, sets `grpc_port`, and is ready to `adopt` connections."""
        self.grpc_port = self._listen_grpc()
        await self._grpc.start()
        for name in ("", SERVICE):
            await self._health.set(name, HealthCheckResponse.SERVING)
        self._http_task = asyncio.create_task(self._http.serve(sockets=[]))
        while not self._http.started:
            if self._http_task.done():
                self._http_task.result()
            await asyncio.sleep(0.001)

    async def adopt(self, connection: socket.socket) -> None:
        """Answers HTTP on a connection, which has been accepted."""
        context = None if self._credentials is None else self._credentials.http
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(self._http.protocol, connection, ssl=context)
        except (OSError, TimeoutError):
            # The caller has gone, or does not speak TLS.
            connection.close()

    async def retire(self) -> bool:
        """Answers until the connections have ended, at most `drain_seconds`; then stops.

        Each connection ends after its next response, and its caller connects to another process.
        """
        self._engine.retiring = True
        loop = asyncio.get_running_loop()
        end = loop.time() + self._settings.drain_seconds
        grpc_stopped = asyncio.ensure_future(self._grpc.stop(self._settings.drain_seconds))
        while self._http.server_state.connections and loop.time() < end:
            await asyncio.sleep(LOOK_SECONDS)
        await grpc_stopped
        return await self.stop()

    async def stop(self) -> bool:
        """Rejects new requests, finishes those admitted within `drain_seconds`, closes the ports.

        Returns whether all admitted requests were finished.
        """
        self._engine.ready = False
        await self._health.enter_graceful_shutdown()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._settings.drain_seconds
        engine_task = asyncio.ensure_future(self._engine.stop())
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
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._credentials is None:
                return self._grpc.add_insecure_port(address)
            return self._grpc.add_secure_port(address, self._credentials.grpc)
        except RuntimeError:
            raise cannot_listen("grpc_port", host, port, "address already in use") from None
