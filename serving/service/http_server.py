"""uvicorn inside a process that is not its own, with a limit to what comes before a body."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Of the request line and the headers together, beyond a read or two.
HEAD_BYTES = 65_536
# Longer than the proxies that keep connections to us open, which should be the ones to close them.
KEEP_ALIVE_SECONDS = 75


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`, and leaves signals alone."""

    def __init__(self, app: ASGIApp, context: ssl.SSLContext | None):
        """Takes the application, and what to encrypt with."""
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
                ssl_context_factory=None if context is None else lambda *_: context,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does not."""
        yield


class GatheringTransport:
    """A transport that writes what one turn of the loop writes in one piece.

    uvicorn writes the head of an answer and its body one after the other; a system call each, and
    a caller who is woken twice, cost more than all else that is done for a short list.
    """

    def __init__(self, transport: asyncio.Transport):
        """Takes the real one, which answers for all but writing."""
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Writes at the end of this turn, or with `close`."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        """Closes when all has been written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._transport.write(b"".join(pieces))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    """One connection; neither parser nor uvicorn limits what comes before a body."""

    _head_bytes: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begins to serve a caller."""
        super().connection_made(GatheringTransport(transport))

    def on_message_begin(self) -> None:
        """Begins to count."""
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Ends the count; a body has a limit of its own."""
        self._head_bytes = None
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Reads on, unless the head has become too long."""
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._head_bytes = None
                self.send_400_response(f"headers must be at most {HEAD_BYTES} bytes.")

    def _unsupported_upgrade_warning(self) -> None:
        # A caller who asks for WebSocket gets an answer without it, and no line in the log.
        pass
