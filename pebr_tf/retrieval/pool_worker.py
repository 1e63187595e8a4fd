"""One process of a pool: how it is started, asked, noticed dead, and ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from pebr_tf.retrieval.searcher import Searcher
from pebr_tf.retrieval.sharded import ShardUnavailable

# Never forked: TensorFlow's threads and locks do not survive it.
SPAWN = multiprocessing.get_context("spawn")
# A process that is told to end and does not, is killed.
END_SECONDS = 5.0
# multiprocessing looks after all children when it starts or joins one, and not from two threads.
_CHILDREN = threading.Lock()


@dataclass(frozen=True)
class Description:
    """What the parent must know of the searcher in a worker.

    Attributes:
      items: The number of items.
      dimension: n, of item and query vectors.
      id_dtype: int64, or a NumPy text dtype.
      background: [M, n] vectors of a sample of the items.
    """

    items: int
    dimension: int
    id_dtype: np.dtype
    background: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What a call in a worker returned, or raised."""

    value: Any = None
    error: Exception | None = None

    def get(self) -> Any:
        """Returns or raises it here."""
        if self.error is not None:
            raise self.error
        return self.value


class Worker:
    """The parent's end of a process. For one caller at a time."""

    def __init__(self, name: str, load: Callable[[], Searcher]):
        self._name = name
        self._load = load
        self._description: Description | None = None
        self._start()

    @property
    def process_id(self) -> int | None:
        """The id of the process that answers now."""
        return self._process.pid

    def description(self) -> Description:
        """Waits until the index is loaded.

        Raises:
          ShardUnavailable: The process ended before that.
          Exception: What `load` raised.
        """
        if self._description is None:
            try:
                outcome = receive(self._connection)
            except (EOFError, OSError):
                raise self._ended("before it had loaded the index") from None
            self._description = outcome.get()
        return self._description

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """What the searcher's method returns or raises.

        Raises:
          ShardUnavailable: The process ended meanwhile; a new one is already on its way.
        """
        if not self._is_alive():
            self._restart()
        try:
            self._reload()
            send(self._connection, (method, arguments))
            outcome = receive(self._connection)
        except (EOFError, OSError):
            ended = self._ended("during a call")
            self._restart()
            raise ended from None
        except BaseException:
            # An answer that is still to come must not be taken for that to the next call.
            self._restart()
            raise
        return outcome.get()

    def stop(self) -> None:
        """Ends the process and waits until it has gone."""
        # One that is still loading does not listen.
        self._end(kill=self._description is None)

    def _start(self) -> None:
        self._description = None
        self._connection, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(
            target=work, args=(theirs, self._load), name=self._name, daemon=True
        )
        with _CHILDREN:
            self._process.start()
        # Only the process may hold its end, so that its death is the end of the stream.
        theirs.close()

    def _restart(self) -> None:
        self._end(kill=True)
        self._start()

    def _end(self, kill: bool) -> None:
        self._connection.close()
        with _CHILDREN:
            if not kill:
                self._process.join(END_SECONDS)
            self._process.kill()
            self._process.join()

    def _reload(self) -> None:
        """Waits for a new process; one that cannot load is a dead part, not the caller's error."""
        try:
            self.description()
        except ShardUnavailable:
            raise
        except Exception as error:
            raise ShardUnavailable(f"{self._name} could not load the index: {error}") from error

    def _is_alive(self) -> bool:
        with _CHILDREN:
            return self._process.is_alive()

    def _ended(self, when: str) -> ShardUnavailable:
        with _CHILDREN:
            self._process.join(END_SECONDS)
            code = self._process.exitcode
        return ShardUnavailable(
            f"{self._name} (process {self._process.pid}) ended with exit code {code} {when}."
        )


def work(connection: Connection, load: Callable[[], Searcher]) -> None:
    """The life of a worker process: loads the index, then answers until the parent has gone."""
    # Ctrl-C reaches the whole group of processes; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        try:
            searcher = load()
            first = Outcome(_describe(searcher))
        except Exception as error:
            first = Outcome(error=_portable(error))
        send(connection, first)
        while first.error is None:
            method, arguments = receive(connection)
            try:
                outcome = Outcome(getattr(searcher, method)(*arguments))
            except Exception as error:
                outcome = Outcome(error=_portable(error))
            send(connection, outcome)


def _describe(searcher: Searcher) -> Description:
    return Description(len(searcher), searcher.dimension, searcher.id_dtype, searcher.background)


def _portable(error: Exception) -> Exception:
    """The error itself if it survives the journey, else its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def send(connection: Connection, value: Any) -> None:
    """Sends an object; the arrays in it follow as they lie in memory, uncopied."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    connection.send((head, [view.nbytes for view in views]))
    for view in views:
        while view:
            view = view[os.write(connection.fileno(), view) :]


def receive(connection: Connection) -> Any:
    """Receives what `send` sent; the arrays are writable.

    Raises:
      EOFError: The other end has gone.
    """
    head, sizes = connection.recv()
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        # Straight to its place: Connection.recv_bytes would copy large arrays three times.
        view = memoryview(buffer)
        while view:
            count = os.readv(connection.fileno(), [view])
            if not count:
                raise EOFError
            view = view[count:]
    return pickle.loads(head, buffers=buffers)
