"""Micro-batching: calls that wait at the same time are answered together.

One thread answers. While it is busy with a batch, calls gather. When it is done, those who have
just been answered are about to ask again: the next batch waits until as many queries are there as
were waiting and answered then, but no longer than the last batch took, nor than
`max_delay_milliseconds`. A lone caller is thus answered at once, and a busy service works in
batches as large as its load makes them.

The queue is bounded in queries: what does not fit is refused at once, so that those admitted are
answered in time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pebr_tf.config.serving import Batching
from serving.errors import DeadlineExceeded, Overloaded, Unavailable
from serving.service.call import Call, Reply


@dataclass(eq=False)
class Pending:
    """An admitted call.

    Attributes:
      call: What was asked.
      future: Where the answer goes, on the loop that asked.
      admitted: `time.perf_counter()` of its admission.
    """

    call: Call
    future: asyncio.Future[Reply]
    admitted: float = field(default_factory=time.perf_counter)

    @property
    def size(self) -> int:
        """Its number of queries."""
        return len(self.call.queries)


Outcome = Reply | Exception


class Batcher:
    """A bounded queue of calls, and the thread that answers them batch by batch."""

    def __init__(
        self,
        settings: Batching,
        answer: Callable[[Sequence[Pending]], Sequence[Outcome]],
        afterwards: Callable[[], None] = lambda: None,
    ):
        """Starts the thread.

        Args:
          settings: Sizes and delay.
          answer: Answers a batch, one outcome a call; called by one thread alone. It must not
            raise.
          afterwards: What is to be done when the outcomes of a batch are on their way, by the same
            thread. It must not raise.
        """
        self._settings, self._answer, self._afterwards = settings, answer, afterwards
        self._delay = settings.max_delay_milliseconds / 1000
        self._waiting: deque[Pending] = deque()
        self._queries = 0
        # What the next batch may wait for: queries, and seconds.
        self._returning, self._patience = 0, 0.0
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="batcher", daemon=True)
        self._thread.start()

    @property
    def queries(self) -> int:
        """Queries that wait."""
        return self._queries

    async def submit(self, call: Call) -> Reply:
        """The answer to a call, when its batch has been answered.

        Raises:
          Overloaded: The queue has no room for its queries.
          DeadlineExceeded: Its time was over first.
          Unavailable: The batcher has been stopped.
          ServiceError: What became of it in its batch.
        """
        loop = asyncio.get_running_loop()
        pending = Pending(call, loop.create_future())
        self._admit(pending)
        timer = None
        if call.deadline < float("inf"):
            wait = max(call.deadline - time.monotonic(), 0)
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
                raise Unavailable("the service is stopping.")
            if self._queries + pending.size > limit:
                raise Overloaded(
                    f"the queue must have room for {pending.size} more queries. Received: "
                    f"{self._queries} of {limit} waiting."
                )
            self._waiting.append(pending)
            self._queries += pending.size
            self._changed.notify()

    def stop(self) -> None:
        """Refuses new calls, answers those admitted, and ends the thread; blocks until then."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            began = time.perf_counter()
            outcomes = self._answer(batch)
            with self._changed:
                self._returning = self._queries + sum(pending.size for pending in batch)
                self._patience = min(time.perf_counter() - began, self._delay)
            by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Pending, Outcome]]] = {}
            for pending, outcome in zip(batch, outcomes, strict=True):
                by_loop.setdefault(pending.future.get_loop(), []).append((pending, outcome))
            for loop, settled in by_loop.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_settle, settled)
            self._afterwards()

    def _next(self) -> list[Pending]:
        """Waits for the next batch; empty when there will be none."""
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
        """Waits for those who have just been answered, for as long as it is worth."""
        wanted = min(self._returning, self._settings.max_size)
        end = time.perf_counter() + self._patience
        while self._queries < wanted and not self._stopping:
            left = end - time.perf_counter()
            if left <= 0 or not self._changed.wait(left):
                return

    def _take(self) -> list[Pending]:
        """Takes calls up to `max_size` queries, at least one; drops those nobody waits for."""
        batch: list[Pending] = []
        size = 0
        while self._waiting:
            pending = self._waiting[0]
            if batch and size + pending.size > self._settings.max_size:
                break
            self._waiting.popleft()
            self._queries -= pending.size
            if not pending.future.done():
                batch.append(pending)
                size += pending.size
        return batch


def _settle(settled: Sequence[tuple[Pending, Outcome]]) -> None:
    """Hands outcomes over, on the loop of the calls."""
    for pending, outcome in settled:
        if pending.future.done():
            continue
        if isinstance(outcome, Exception):
            pending.future.set_exception(outcome)
        else:
            pending.future.set_result(outcome)


def _expire(future: asyncio.Future[Reply]) -> None:
    if not future.done():
        future.set_exception(DeadlineExceeded("the deadline was over before the answer was there."))
