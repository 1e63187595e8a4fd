"""A server on a thread of its own, for tests, notebooks and benchmarks."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import uvloop

from pebr_tf.config import Serving
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.server import Server


@contextlib.contextmanager
def running(engine: Engine, settings: Serving, metrics: Metrics) -> Iterator[Server]:
    """Serves an engine while the block runs; `grpc_port` and `http_port` of the value say where.

    Args:
      engine: Answers the calls; it is stopped at the end.
      settings: Of the service; ports of 0 are any that are free.
      metrics: Those of the engine.

    Raises:
      UserError: As `Server`.
    """
    started: Future[Server] = Future()
    loop = uvloop.new_event_loop()
    stopping = asyncio.Event()
    thread = threading.Thread(
        target=_run, args=(loop, engine, settings, metrics, started, stopping), name="server"
    )
    thread.start()
    try:
        yield started.result()
    finally:
        if not started.exception():
            loop.call_soon_threadsafe(stopping.set)
        thread.join()


def _run(
    loop: asyncio.AbstractEventLoop,
    engine: Engine,
    settings: Serving,
    metrics: Metrics,
    started: Future[Server],
    stopping: asyncio.Event,
) -> None:
    asyncio.set_event_loop(loop)

    async def serve() -> None:
        try:
            server = Server(engine, settings, metrics)
            await server.start()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(server)
        await stopping.wait()
        await server.stop()

    try:
        loop.run_until_complete(serve())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
