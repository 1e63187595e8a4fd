"""A searcher on all cores: processes that each hold the index and answer a part of a batch.

ScaNN's Python binding holds the interpreter's lock while it searches, so threads would wait for
each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np

from pebr_tf.retrieval.pool_worker import Worker
from pebr_tf.retrieval.result import RangeResult, concatenate
from pebr_tf.retrieval.searcher import Request, Searcher, check_positive

# A slice of fewer queries costs more in travel than a second core saves.
ROWS_A_SLICE = 8


class ProcessPool(Searcher):
    """Gives slices of a batch's queries to worker processes, and a small batch to one of them.

    The index is taken as fixed: every process has its own copy of it, made by `load`.
    """

    def __init__(self, load: Callable[[], Searcher], processes: int):
        """Starts the processes and waits until each has loaded the index.

        Args:
          load: Makes the searcher in a new process, so it must be picklable: a function of a
            module, or a `functools.partial` of one.
          processes: How many; each holds the index in memory.

        Raises:
          ValueError: Fewer than one process.
          ShardUnavailable: A process ended before it had loaded the index.
          Exception: What `load` raised.
        """
        count = check_positive("processes", processes)
        self._closed = False
        self._calls = 0
        self._call_ended = threading.Condition()
        self._workers = [Worker(f"Worker {i + 1} of {count}", load) for i in range(count)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(count, "pool")
        try:
            self._description, *_ = [worker.description() for worker in self._workers]
        except BaseException:
            self.close()
            raise

    @property
    def dimension(self) -> int:
        return self._description.dimension

    @property
    def id_dtype(self) -> np.dtype:
        return self._description.id_dtype

    @property
    def background(self) -> np.ndarray:
        return self._description.background

    @property
    def process_ids(self) -> list[int | None]:
        """The ids of the worker processes."""
        return [worker.process_id for worker in self._workers]

    def __len__(self) -> int:
        return self._description.items

    def close(self) -> None:
        """Waits for the calls under way, then ends the processes; later calls are refused."""
        with self._call_ended:
            if self._closed:
                return
            self._closed = True
            self._call_ended.wait_for(lambda: not self._calls)
        self._threads.shutdown()
        for worker in self._workers:
            worker.stop()

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _search(self, request: Request) -> RangeResult:
        return concatenate(
            self._each_slice(
                "search",
                len(request),
                lambda rows: (
                    request.queries[rows],
                    request.thresholds[rows],
                    request.top_k,
                    request.max_results,
                ),
            )
        )

    def _expected_count(self, queries: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        return np.concatenate(
            self._each_slice(
                "expected_count", len(queries), lambda rows: (queries[rows], thresholds[rows])
            )
        )

    def _each_slice(
        self, method: str, count: int, arguments: Callable[[slice], tuple[Any, ...]]
    ) -> list[Any]:
        """The answers of `method` to the slices of `count` queries, in their order."""
        slices = min(len(self._workers), max(1, count // ROWS_A_SLICE))
        ends = np.linspace(0, count, slices + 1).astype(int)
        first, *others = [arguments(slice(begin, end)) for begin, end in pairwise(ends)]
        with self._open():
            futures = [self._threads.submit(self._call, method, values) for values in others]
            return [self._call(method, first), *(future.result() for future in futures)]

    def _call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Asks a worker that is free. Nobody holds one and waits for another: no deadlock."""
        worker = self._free.get()
        try:
            return worker.call(method, arguments)
        finally:
            self._free.put(worker)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Keeps the pool from being closed meanwhile."""
        with self._call_ended:
            if self._closed:
                raise RuntimeError("The pool must be open. Received: a closed one.")
            self._calls += 1
        try:
            yield
        finally:
            with self._call_ended:
                self._calls -= 1
                self._call_ended.notify_all()
