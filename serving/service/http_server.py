"""uvicorn without signal handlers, and with a limit on the size of request headers."""

import asyncio
import contextlib
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Request line and headers together; up to two reads more are accepted.
HEAD_BYTES = 65_536
# Longer than usual proxies keep a connection open: the proxy should be the one to close it.
KEEP_ALIVE_SECONDS = 75


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`; signals are handled by `serving.service.worker`."""

    def __init__(self, app: ASGIApp):
        super().__init__(
            uvicorn.Config(
                app,
                http=HttpProtocol,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )

    def protocol(self) -> asyncio.Protocol:
        """Answers one connection."""
        return HttpProtocol(self.config, self.server_state, self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpProtocol(HttpToolsProtocol):
    """One connection. Neither httptools nor uvicorn limits the size of headers."""

    _head_bytes: int | None = None

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Ends the count; bodies have a limit of their own."""
        self._head_bytes = None
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Passes data to the parser, unless the headers have become too long."""
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._head_bytes = None
                self.send_400_response(f"headers must be at most {HEAD_BYTES} bytes.")

    def _unsupported_upgrade_warning(self) -> None:
        # A request for WebSocket is answered as plain HTTP, without a warning in the log.
        pass
