"""Micro-batching: requests that wait at the same time are answered together.

One thread answers. While it is busy with a batch, requests gather. When it is done, the callers it
has just answered are likely to ask again: the next batch waits until as many queries have arrived
as were waiting and answered before, but no longer than the last batch took, nor than
`max_delay_milliseconds`. A single caller is thus answered at once, and a busy service works in
batches as large as its load makes them.

The queue is bounded in queries: a request that does not fit is rejected at once, so that those
admitted are answered in time.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pebr_tf.config.serving import Batching
from serving.errors import DeadlineError, OverloadError, UnavailableError
from serving.retrieval import RetrievalRequest, RetrievalResponse


@dataclass(eq=False)
class Pending:
    """An admitted request.

    Attributes:
      future: Receives the response, on the event loop that all callers share.
      admitted: `time.perf_counter()` of its admission.
    """

    request: RetrievalRequest
    future: asyncio.Future[RetrievalResponse]
    admitted: float = field(default_factory=time.perf_counter)

    @property
    def size(self) -> int:
        return len(self.request.queries)


Outcome = RetrievalResponse | Exception


class Batcher:
    """A bounded queue of requests, and the thread that answers them batch by batch."""

    def __init__(
        self,
        settings: Batching,
        answer: Callable[[Sequence[Pending]], Sequence[Outcome]],
        afterwards: Callable[[Sequence[Outcome]], None] = lambda outcomes: None,
    ):
        """Starts the thread.

        `answer` returns one outcome per request of a batch. `afterwards` is called after the
        outcomes have been handed over, so that callers do not wait for it. The thread calls both;
        neither may raise.
        """
        self._settings, self._answer, self._afterwards = settings, answer, afterwards
        self._delay = settings.max_delay_milliseconds / 1000
        self._waiting: deque[Pending] = deque()
        # Number of queries that wait.
        self.queries = 0
        # How many queries the next batch waits for, and how many seconds at most.
        self._returning, self._patience = 0, 0.0
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="batcher", daemon=True)
        self._thread.start()

    async def submit(self, request: RetrievalRequest) -> RetrievalResponse:
        """Waits for the batch of a request, and returns its response.

        Raises:
          OverloadError: The queue has no room for the queries.
          DeadlineError: The deadline passed first.
          UnavailableError: The batcher has been stopped.
          ServiceError: The outcome of the request in its batch.
        """
        loop = asyncio.get_running_loop()
        pending = Pending(request, loop.create_future())
        self._admit(pending)
        timer = None
        if request.deadline < float("inf"):
            wait = max(request.deadline - time.monotonic(), 0)
            timer = loop.call_later(wait, _expire, pending.future)
        try:
            return await pending.future
        finally:
            if timer is not None:
                timer.cancel()

    def _admit(self, pending: Pending) -> None:
        limit = self._settings.queue_limit
        with self._changed:
            if self._stopping:
                raise UnavailableError("the service is stopping.")
            if self.queries + pending.size > limit:
                raise OverloadError(
                    f"the queue must have room for {pending.size} more queries. Received: "
                    f"{self.queries} of {limit} waiting."
                )
            self._waiting.append(pending)
            self.queries += pending.size
            self._changed.notify()

    def stop(self) -> None:
        """Rejects new requests, answers those admitted, and ends the thread; blocks until then."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            began = time.perf_counter()
            outcomes = self._answer(batch)
            with self._changed:
                self._returning = self.queries + sum(pending.size for pending in batch)
                self._patience = min(time.perf_counter() - began, self._delay)
            loop = batch[0].future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, batch, outcomes)
            self._afterwards(outcomes)

    def _next(self) -> list[Pending]:
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._stopping)
                if not self._waiting:
                    return []
                self._fill()
                batch = self._take()
                if batch:
                    return batch

    def _fill(self) -> None:
        """Waits for the callers who have just been answered; see the module."""
        wanted = min(self._returning, self._settings.max_size)
        end = time.perf_counter() + self._patience
        while self.queries < wanted and not self._stopping:
            left = end - time.perf_counter()
            if left <= 0 or not self._changed.wait(left):
                return

    def _take(self) -> list[Pending]:
        """Takes requests of up to `max_size` queries, at least one; skips abandoned ones."""
        batch: list[Pending] = []
        size = 0
        while self._waiting:
            pending = self._waiting[0]
            if batch and size + pending.size > self._settings.max_size:
                break
            self._waiting.popleft()
            self.queries -= pending.size
            if not pending.future.done():
                batch.append(pending)
                size += pending.size
        return batch


def _settle(batch: Sequence[Pending], outcomes: Sequence[Outcome]) -> None:
    for pending, outcome in zip(batch, outcomes, strict=True):
        if pending.future.done():
            continue
        if isinstance(outcome, Exception):
            pending.future.set_exception(outcome)
        else:
            pending.future.set_result(outcome)


def _expire(future: asyncio.Future[RetrievalResponse]) -> None:
    if not future.done():
        future.set_exception(DeadlineError("the deadline passed before the response was ready."))
