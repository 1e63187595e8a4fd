"""Micro-batching: requests that wait at the same time are answered together.

A batch is answered on the event loop itself: nothing passes between threads, and a request that is
alone is answered at once. Meanwhile requests gather in the sockets; the loop reads them all before
the next batch. The callers of the last batch are likely to ask again: the next one waits until as
many queries have arrived as were waiting and answered before, but no longer than the last batch
took, nor than `max_delay_milliseconds`. A batch that waits for another server is answered in a
thread.

The queue is bounded in queries: a request that does not fit is rejected at once, so that those
admitted are answered in time.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from pebr_tf.config.serving import Batching
from serving.errors import DeadlineError, OverloadError, UnavailableError
from serving.retrieval import RetrievalRequest, RetrievalResponse


@dataclass(eq=False)
class Pending:
    """An admitted request.

    Attributes:
      future: Receives the response.
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
    """A bounded queue of requests, which are answered batch by batch on one event loop."""

    def __init__(
        self,
        settings: Batching,
        answer: Callable[[Sequence[Pending]], Sequence[Outcome]],
        afterwards: Callable[[Sequence[Outcome]], None] = lambda outcomes: None,
        executor: Executor | None = None,
    ):
        """`answer` returns one outcome per request of a batch, on the loop or in `executor`.

        `afterwards` is called when the outcomes have been handed over, so that callers do not wait
        for it. Neither may raise.
        """
        self._settings, self._answer, self._afterwards = settings, answer, afterwards
        self._executor = executor
        self._waiting: deque[Pending] = deque()
        # Number of queries that wait.
        self.queries = 0
        # Whether a batch is gathering or being answered.
        self._is_busy = False
        # How many queries the next batch waits for, and until when; the timer while it waits.
        self._returning, self._began, self._until = 0, 0.0, 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped: asyncio.Future[None] | None = None

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
        if not self._is_busy:
            self._is_busy = True
            loop.call_soon(self._gather, loop, 0)
        elif self._timer is not None and self.queries >= self._wanted:
            self._timer.cancel()
            self._timer = None
            loop.call_soon(self._gather, loop, 0)
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
        if self._stopped is not None:
            raise UnavailableError("the service is stopping.")
        if self.queries + pending.size > limit:
            raise OverloadError(
                f"the queue must have room for {pending.size} more queries. Received: "
                f"{self.queries} of {limit} waiting."
            )
        self._waiting.append(pending)
        self.queries += pending.size

    async def stop(self) -> None:
        """Rejects new requests, and waits until those admitted have been answered."""
        self._stopped = self._stopped or asyncio.get_running_loop().create_future()
        if not self._is_busy and not self._stopped.done():
            self._stopped.set_result(None)
        await asyncio.shield(self._stopped)

    @property
    def _wanted(self) -> int:
        return min(self._returning, self._settings.max_size)

    def _gather(self, loop: asyncio.AbstractEventLoop, before: int) -> None:
        """Answers a batch, unless the loop's last look at the sockets brought more requests."""
        self._timer = None
        if before < self.queries < self._settings.max_size:
            loop.call_soon(self._gather, loop, self.queries)
            return
        if self.queries < self._wanted and loop.time() < self._until and self._stopped is None:
            self._timer = loop.call_at(self._until, self._gather, loop, self.queries)
            return
        self._began = loop.time()
        batch = self._take()
        if self._executor is None or not batch:
            self._settle(loop, batch, self._answer(batch) if batch else [])
        else:
            answered = loop.run_in_executor(self._executor, self._answer, batch)
            answered.add_done_callback(lambda done: self._settle(loop, batch, done.result()))

    def _settle(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: Sequence[Pending],
        outcomes: Sequence[Outcome],
    ) -> None:
        for pending, outcome in zip(batch, outcomes, strict=True):
            if pending.future.done():
                continue
            if isinstance(outcome, Exception):
                pending.future.set_exception(outcome)
            else:
                pending.future.set_result(outcome)
        self._returning = self.queries + sum(pending.size for pending in batch)
        delay = self._settings.max_delay_milliseconds / 1_000
        self._until = loop.time() + min(loop.time() - self._began, delay)
        # After the callers, whose turn comes first.
        loop.call_soon(self._afterwards, outcomes)
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            loop.call_soon(self._gather, loop, 0)
        elif self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

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


def _expire(future: asyncio.Future[RetrievalResponse]) -> None:
    if not future.done():
        future.set_exception(DeadlineError("the deadline passed before the response was ready."))
