"""A server on a thread of its own."""

import asyncio
import contextlib
import threading

import uvloop

from serving.service.server import Server

# Far above what a start or a drain of the tests takes.
SECONDS = 60


@contextlib.contextmanager
def running(engine, settings, metrics):
    """Serves an engine while the block runs, and stops it at the end; yields the `Server`."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server")
    thread.start()

    def run(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(SECONDS)

    async def start():
        server = Server(engine, settings, metrics)
        await server.start()
        return server

    try:
        server = run(start())
        try:
            yield server
        finally:
            run(server.stop())
    finally:
        # On the loop's own thread: this one may already run the loop of a browser.
        run(loop.shutdown_default_executor())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
