"""The process that holds the others: it starts them, watches them, and replaces them.

    supervisor   listens for HTTP, hands each connection to a worker, in turn; follows the releases
    workers      load one release each; answer HTTP on those connections, and gRPC on a shared port

A folder of releases is polled every few seconds. The newest version that has not been withdrawn is
loaded by one new worker, verified (manifest, checksums, self-test), and warmed up; then by the
others. When all are ready they take over, and the old workers retire: each connection ends after
its next response. A version that cannot be loaded is rejected, with its reason in the log and in
the metrics, and the old workers go on. The version is tried again after longer and longer pauses,
because a copy may not have been complete, or TF Serving may not have loaded it yet.
"""

import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from pebr_tf.config import Serving
from pebr_tf.errors import UserError
from pebr_tf.release.release import ReleaseManifest, find_release
from pebr_tf.release.versions import served
from serving.service import logs
from serving.service.access import Access
from serving.service.metrics import Metrics
from serving.service.sockets import is_loopback, listen
from serving.service.tls import load_credentials
from serving.service.worker import CONNECTION, READY, RETIRE, Job, work

MOST_WORKERS = 4
# The pause before a rejected version is tried again: `poll_seconds`, doubled each time, up to this.
LONGEST_PAUSE = 300.0
# Time for a TF Serving that starts at the same time to load its models.
START_SECONDS = 60.0
# Time beyond `drain_seconds` after which a worker that has not ended is killed.
KILL_SECONDS = 5.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class ReleaseSource:
    """One release or, with `follow`, a directory of releases, which is polled."""

    directory: Path
    follow: bool


@dataclass(frozen=True)
class _Rejection:
    """A version that could not be loaded: why, how often, and when to try again."""

    reason: str
    tries: int
    next_try: float


@dataclass(eq=False)
class _Worker:
    """A process, and the channel to it.

    Attributes:
      reason: Why the release cannot be served, as the worker says.
    """

    process: BaseProcess
    channel: socket.socket
    place: str
    is_ready: bool = False
    reason: str = ""


@dataclass(eq=False)
class _Generation:
    """The workers of one release."""

    directory: Path
    version: int
    workers: list[_Worker] = field(default_factory=list)


class Supervisor:
    """Serves the releases of a source until a signal arrives."""

    def __init__(self, source: ReleaseSource, settings: Serving, metrics: Path):
        """Listens on both ports; `metrics` is a folder that the workers share.

        Raises:
          UserError: A setting must be fixed.
        """
        self._source = source
        self._count = settings.workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS)
        # Cheap checks come before a release is loaded, which takes seconds.
        Access.from_file(settings.token_file)
        load_credentials(settings.tls)
        self._listener = listen(settings.host, settings.http_port, "http_port")
        listen(settings.host, settings.grpc_port, "grpc_port").close()
        self._reserved = listen(settings.host, settings.grpc_port, "grpc_port", shared=True)
        self._listener.setblocking(False)
        self.http_port = self._listener.getsockname()[1]
        grpc_port = self._reserved.getsockname()[1]
        self._settings = replace(settings, grpc_port=grpc_port)
        self._folder, self._metrics = metrics, Metrics(metrics, "supervisor")
        self._rejections: dict[int, _Rejection] = {}
        self._current: _Generation | None = None
        self._next: _Generation | None = None
        self._retired: list[_Worker] = []
        # TF Serving may be starting beside this process: the first release waits for it.
        self._patience = START_SECONDS
        self._next_poll = 0.0
        self._turn = 0
        self._stop_at: float | None = None
        self._finished = True

    def run(self) -> None:
        """Serves until a signal, and until the admitted requests are finished.

        Raises:
          UserError: No release can be loaded; gives the reason for the newest.
        """
        woken, wakeup = socket.socketpair()
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno())
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)
        try:
            while self._step(woken):
                pass
        finally:
            for worker in self._workers():
                worker.process.kill()
        level = logging.INFO if self._finished else logging.WARNING
        logs.event("stop", level=level, finished=self._finished)

    def _step(self, woken: socket.socket) -> bool:
        """Handles what has happened; returns whether to go on."""
        now = time.monotonic()
        if self._stop_at is None and now >= self._next_poll:
            self._next_poll = now + self._settings.poll_seconds
            self._poll()
        workers = self._workers()
        if self._stop_at is not None:
            if not workers:
                return False
            if now >= self._stop_at:
                for worker in workers:
                    worker.process.kill()
        by_channel: dict[Any, _Worker] = {
            each.channel: each for each in workers if not each.is_ready
        }
        by_sentinel: dict[Any, _Worker] = {each.process.sentinel: each for each in workers}
        waited: list[Any] = [woken, *by_channel, *by_sentinel]
        if self._ready():
            waited.append(self._listener)
        until = self._next_poll if self._stop_at is None else self._stop_at
        for each in wait(waited, max(until - now, 0.0)):
            if each is woken:
                for number in woken.recv(16):
                    self._on_signal(signal.Signals(number))
            elif each is self._listener:
                self._hand_over()
            elif each in by_channel:
                self._on_message(by_channel[each])
            elif by_sentinel[each] in self._workers():
                self._on_end(by_sentinel[each])
        return True

    def _workers(self) -> list[_Worker]:
        generations = [each for each in (self._current, self._next) if each is not None]
        return [each for one in generations for each in one.workers] + self._retired

    def _ready(self) -> list[_Worker]:
        current = self._current
        return [] if current is None else [each for each in current.workers if each.is_ready]

    def _hand_over(self) -> None:
        """Gives connections that wait to the workers, in turn."""
        ready = self._ready()
        for _ in range(len(ready)):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                for _ in ready:
                    self._turn += 1
                    channel = ready[self._turn % len(ready)].channel
                    # One that does not read its channel, or has just ended, is passed over.
                    with contextlib.suppress(OSError):
                        socket.send_fds(channel, [CONNECTION], [connection.fileno()])
                        break

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop_at is not None:
            for worker in self._workers():
                worker.process.kill()
            logs.event("stop", level=logging.WARNING, finished=False, signal=number.name)
            logging.shutdown()
            shutil.rmtree(self._folder, ignore_errors=True)
            os._exit(1)
        seconds = self._settings.drain_seconds
        logs.event("drain", signal=number.name, seconds=seconds)
        self._stop_at = time.monotonic() + seconds + KILL_SECONDS
        for worker in self._workers():
            worker.process.terminate()

    def _on_message(self, worker: _Worker) -> None:
        """The first and only message of a worker: it is ready, or why it is not."""
        message = worker.channel.recv(65_536)
        if message != READY:
            worker.reason = message.decode()
            # It ends by itself; until then its channel has nothing to say.
            worker.process.join()
            self._on_end(worker)
            return
        worker.is_ready = True
        if self._next is None or worker not in self._next.workers:
            return
        if len(self._next.workers) < self._count:
            self._fill(self._next)
        elif all(each.is_ready for each in self._next.workers):
            self._take_over(self._next)

    def _on_end(self, worker: _Worker) -> None:
        worker.process.join()
        worker.channel.close()
        mark_process_dead(worker.place, str(self._folder))
        code = worker.process.exitcode
        if self._stop_at is not None and worker.is_ready:
            self._finished &= code == 0
        if worker in self._retired:
            self._retired.remove(worker)
            return
        generation = self._next
        if generation is None or worker not in generation.workers:
            generation = self._current
        assert generation is not None
        generation.workers.remove(worker)
        if self._stop_at is not None:
            return
        reason = worker.reason or f"a worker ended with exit code {code}."
        if generation is self._next:
            self._give_up(reason)
            return
        logs.event("worker_ended", logging.ERROR, reason=reason, pid=worker.process.pid)
        # One that cannot load is tried again at the next poll.
        if worker.is_ready:
            self._fill(generation)

    def _poll(self) -> None:
        """Starts the workers that are missing, or those of a newer release."""
        if self._next is not None:
            return
        if self._current is not None:
            self._fill(self._current)
        try:
            self._look()
        except Exception as error:
            if self._current is None:
                raise
            # The directory may be unavailable for a while; the current release goes on.
            logs.event("look_failed", logging.ERROR, reason=f"{type(error).__name__}: {error}")

    def _look(self) -> None:
        """Starts a worker for the newest version that can be served, unless it already answers."""
        root = self._source.directory
        if not self._source.follow:
            if self._current is None:
                self._begin(find_release(root))
            return
        candidates = served(root)
        for version in set(self._rejections) - set(candidates):
            self._forget(version)
        for version in reversed(candidates):
            if self._current is not None and version == self._current.version:
                return
            rejection = self._rejections.get(version)
            if rejection is None or time.monotonic() >= rejection.next_try:
                self._begin(root / str(version), version)
                return
        if self._current is None:
            reasons = [each.reason for each in self._rejections.values()]
            raise UserError(reasons[0] if reasons else f"{root} must hold a release to serve.")

    def _begin(self, directory: Path, version: int | None = None) -> None:
        version = version or ReleaseManifest.load(directory).version
        self._next = _Generation(directory, version)
        self._start(self._next, verify=True)

    def _fill(self, generation: _Generation) -> None:
        """Starts the workers that a verified release lacks."""
        while len(generation.workers) < self._count:
            self._start(generation, verify=False)

    def _start(self, generation: _Generation, verify: bool) -> None:
        taken = {each.place for each in self._workers()}
        place = next(str(number) for number in range(len(taken) + 1) if str(number) not in taken)
        job = Job(
            generation.directory,
            self._settings,
            self._folder,
            place,
            verify,
            is_aside=bool(self._ready()),
            patience=self._patience,
        )
        ours, theirs = socket.socketpair()
        inherited = [ours, self._listener, *(each.channel for each in self._workers())]

        def run() -> None:
            # A copy would keep a channel open after its supervisor or worker has ended.
            for each in inherited:
                each.close()
            work(job, theirs)

        process = multiprocessing.get_context("fork").Process(target=run, daemon=True)
        # A signal in between would run this process's handler in the new one.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        theirs.close()
        ours.setblocking(False)
        generation.workers.append(_Worker(process, ours, place))

    def _take_over(self, generation: _Generation) -> None:
        before, self._current, self._next = self._current, generation, None
        self._patience = 0.0
        self._forget(generation.version)
        self._metrics.release(generation.version, swapped=before is not None)
        if before is None:
            self._log_start()
            return
        logs.event("swapped", release=generation.version, before=before.version)
        for worker in before.workers:
            self._retired.append(worker)
            with contextlib.suppress(OSError):
                worker.channel.send(RETIRE)

    def _give_up(self, reason: str) -> None:
        """Rejects the release that was to be next."""
        assert self._next is not None
        version = self._next.version
        for worker in self._next.workers:
            worker.process.kill()
            self._retired.append(worker)
        self._next = None
        if not self._source.follow:
            raise UserError(reason)
        before = self._rejections.get(version)
        tries = 1 if before is None else before.tries + 1
        pause = min(self._settings.poll_seconds * 2 ** min(tries, 30), LONGEST_PAUSE)
        self._forget(version)
        self._rejections[version] = _Rejection(reason, tries, time.monotonic() + pause)
        self._metrics.rejections.inc()
        self._metrics.rejected_release(version, reason, True)
        if before is None or before.reason != reason:
            logs.event("rejected", logging.ERROR, release=version, reason=reason)
        # An older version may be served instead.
        self._next_poll = 0.0

    def _forget(self, version: int) -> None:
        rejection = self._rejections.pop(version, None)
        if rejection is not None:
            self._metrics.rejected_release(version, rejection.reason, False)

    def _log_start(self) -> None:
        assert self._current is not None
        settings = self._settings
        logs.event("ready", release=self._current.version, workers=self._count)
        scheme = "http" if settings.tls.certificate is None else "https"
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        logs.event(
            "listening",
            grpc=f"{host}:{settings.grpc_port}",
            http=f"{scheme}://{host}:{self.http_port}/",
            grpc_port=settings.grpc_port,
            http_port=self.http_port,
            tls=scheme == "https",
        )


def run(source: ReleaseSource, settings: Serving) -> None:
    """Serves until a signal arrives, and the admitted requests are finished.

    Raises:
      UserError: The settings or the release must be fixed.
    """
    # In memory where there is such a folder: the root file system may be read-only.
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pebr-serve-", dir=folder) as metrics:
        supervisor = Supervisor(source, settings, Path(metrics))
        logs.event("start", source=str(source.directory), follow=source.follow, pid=os.getpid())
        warn(settings)
        supervisor.run()


def warn(settings: Serving) -> None:
    """Logs what is missing where other machines can reach the service."""
    if is_loopback(settings.host):
        return
    missing = []
    if settings.tls.certificate is None:
        missing.append("serving.tls")
    if settings.token_file is None and not settings.tls.mutual:
        missing.append("serving.token_file")
    if missing:
        logs.event("exposed", logging.WARNING, host=settings.host, without=missing)
