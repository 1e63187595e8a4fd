"""One process of the service: it loads a release, and answers with it until it is replaced.

A process serves one release in its whole life, so that no answer can mix two.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from pebr_tf.config import Serving
from pebr_tf.errors import UserError
from pebr_tf.release.release import ReleaseManifest
from pebr_tf.release.towers import QueryModelDescription
from pebr_tf.release.versions import QUERY_MODEL
from serving.errors import ServiceError
from serving.retriever import Retriever
from serving.self_test import SelfTest
from serving.service import logs
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.server import Server

WARM_UP_QUERY = "warm up"
# Messages to a worker, with the socket of a connection or alone; and its first message.
CONNECTION, RETIRE, READY = b"c", b"r", b"ready"
# How much nicer a thread is that loads a release while other processes answer.
LOADING_NICENESS = 5


@dataclass(frozen=True)
class Job:
    """What one worker does.

    Attributes:
      directory: The release.
      place: The worker's place among the metrics in `metrics`, a folder.
      verify: Whether the release is verified; not where another worker has done so.
      is_aside: Whether other workers answer meanwhile.
      patience: Seconds that TF Serving may take to load the release's query model.
    """

    directory: Path
    settings: Serving
    metrics: Path
    place: str
    verify: bool
    is_aside: bool = False
    patience: float = 0.0


def load(job: Job) -> Retriever:
    """A release, verified and warmed up.

    Raises:
      UserError, ServiceError: The release must not be served.
    """
    encoder = None
    if job.settings.backend == "tf_serving":
        from serving.tf_serving.remote_encoder import RemoteEncoder

        encoder = RemoteEncoder(
            job.settings.tf_serving,
            version=ReleaseManifest.load(job.directory).version,
            dimension=QueryModelDescription.load(job.directory / QUERY_MODEL).dimension,
        )
        encoder.wait_ready(job.patience)
    retriever = Retriever.load(job.directory, job.verify, encoder)
    if job.verify:
        SelfTest.load(job.directory).compare(retriever)
    size = 1
    while size <= job.settings.batching.max_size:
        retriever.retrieve([WARM_UP_QUERY] * size)
        size *= 2
    return retriever


def executor_of(settings: Serving) -> Executor | None:
    """Where batches are answered: on the event loop, unless they wait for another server."""
    return ThreadPoolExecutor(1) if settings.backend == "tf_serving" else None


def work(job: Job, channel: socket.socket) -> None:
    """Runs a worker until it is told to stop; `channel` leads to the parent.

    The first message to the parent is READY, or why the release cannot be served. The exit code is
    0 if all admitted requests were finished.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    metrics = Metrics(job.metrics, job.place)
    loaded: list[Any] = []
    loading = threading.Thread(target=_load_aside, args=(job, loaded))
    loading.start()
    loading.join()
    if isinstance(loaded[0], Exception):
        channel.sendall(_reason(loaded[0]).encode())
        return
    # A release has a million long-lived objects; traversing them again and again would delay
    # requests by hundreds of milliseconds.
    gc.collect()
    gc.freeze()
    # Not `asyncio.run`, which would wait for threads that are still busy after the drain.
    loop = uvloop.new_event_loop()
    with logs.written_apart():
        engine = Engine(loaded[0], job.settings, metrics, executor_of(job.settings))
        finished = loop.run_until_complete(_serve(engine, job.settings, metrics, channel))
    sys.stderr.flush()
    # A call that outlived its time may still hold a thread, which Python would wait for.
    os._exit(0 if finished else 1)


def _load_aside(job: Job, loaded: list[Any]) -> None:
    """Loads in a thread, whose priority can be lower; on Linux only."""
    if job.is_aside and sys.platform == "linux":
        thread = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread) + LOADING_NICENESS
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
    try:
        loaded.append(load(job))
    except Exception as error:
        loaded.append(error)


def _reason(error: Exception) -> str:
    known = isinstance(error, UserError | ServiceError | OSError)
    return str(error) if known else f"{type(error).__name__}: {error}"


async def _serve(
    engine: Engine, settings: Serving, metrics: Metrics, channel: socket.socket
) -> bool:
    loop = asyncio.get_running_loop()
    told: asyncio.Future[bytes] = loop.create_future()
    server = Server(engine, settings, metrics)
    adopted: set[asyncio.Task[None]] = set()

    def on_message() -> None:
        message, connections, _, _ = socket.recv_fds(channel, 1, 1)
        for connection in connections:
            task = loop.create_task(server.adopt(socket.socket(fileno=connection)))
            adopted.add(task)
            task.add_done_callback(adopted.discard)
        if message != CONNECTION:
            # The parent says so, or has ended.
            loop.remove_reader(channel)
            tell(RETIRE if message == RETIRE else b"")

    def tell(what: bytes) -> None:
        if not told.done():
            told.set_result(what)

    loop.add_signal_handler(signal.SIGTERM, tell, b"")
    await server.start()
    loop.add_reader(channel, on_message)
    channel.sendall(READY)
    if await told != RETIRE:
        return await server.stop()
    stopping = loop.create_future()
    loop.add_signal_handler(signal.SIGTERM, stopping.cancel)
    retiring = asyncio.ensure_future(server.retire())
    await asyncio.wait([retiring, stopping], return_when=asyncio.FIRST_COMPLETED)
    return await (retiring if retiring.done() else server.stop())
