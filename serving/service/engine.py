"""From a call to its reply: admission, batch, encoding, search, payload."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

import numpy as np

from pebr_tf.config import Serving
from serving.errors import InvalidArgument, ServiceError
from serving.retriever import Batch, Retriever, Wish
from serving.service.batcher import Batcher, Outcome, Pending
from serving.service.call import Call, Reply, Stages
from serving.service.heads import Heads
from serving.service.live import Live, ReleaseSource
from serving.service.metrics import Metrics

log = logging.getLogger("pebr.engine")


class Engine:
    """Answers the calls of both APIs."""

    def __init__(self, live: Live, settings: Serving, metrics: Metrics):
        """Takes a loaded release; see `open`."""
        self._live, self._metrics = live, metrics
        self._ready = True
        self._heads: tuple[Retriever, Heads] | None = None
        self._uncounted: list[tuple[Batch, list[Reply]]] = []
        self._batcher = Batcher(settings.batching, self._answer, self._count)

    @classmethod
    def open(cls, source: ReleaseSource, settings: Serving, metrics: Metrics) -> Engine:
        """Loads a release and starts the threads; blocks until calls can be answered.

        Raises:
          UserError: No release that can be served.
        """
        return cls(Live(source, settings, metrics), settings, metrics)

    @property
    def ready(self) -> bool:
        """Whether calls are answered: from the first release to the stop."""
        return self._ready

    def retriever(self) -> Retriever:
        """What answers now."""
        return self._live.retriever

    async def retrieve(self, call: Call) -> Reply:
        """The answer to a call.

        Raises:
          ServiceError: Why there is none; see `serving.errors`.
        """
        try:
            return await self._batcher.submit(call)
        finally:
            self._metrics.queue(self._batcher.queries)

    def drain(self) -> None:
        """Says that the service is about to stop; calls are still answered."""
        self._ready = False

    async def stop(self) -> None:
        """Refuses new calls, answers those admitted, and ends the threads."""
        self.drain()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._batcher.stop)
        await loop.run_in_executor(None, self._live.close)

    def _answer(self, batch: Sequence[Pending]) -> Sequence[Outcome]:
        """One outcome for each call of a batch, all from one release."""
        began = time.perf_counter()
        retriever = self._live.retriever
        outcomes: dict[Pending, Outcome] = {}
        wishes: dict[Pending, Wish] = {}
        for pending in batch:
            try:
                wishes[pending] = wish_of(retriever, pending.call)
            except InvalidArgument as error:
                outcomes[pending] = error
            except Exception as error:
                # Whatever it is, it must not end the thread that answers all others.
                outcomes[pending] = _failed(error)
        outcomes.update(self._answer_together(retriever, wishes, began))
        return [outcomes[pending] for pending in batch]

    def _answer_together(
        self, retriever: Retriever, wishes: dict[Pending, Wish], began: float
    ) -> dict[Pending, Outcome]:
        if not wishes:
            return {}
        try:
            return self._replies(retriever, wishes, began)
        except ServiceError as error:
            return dict.fromkeys(wishes, error)
        except Exception as error:
            if len(wishes) == 1:
                return dict.fromkeys(wishes, _failed(error))
            # One of them may be the cause: the others are answered without it.
            alone = ({pending: wish} for pending, wish in wishes.items())
            parts = [self._answer_together(retriever, each, began) for each in alone]
            return {pending: outcome for part in parts for pending, outcome in part.items()}

    def _replies(
        self, retriever: Retriever, wishes: dict[Pending, Wish], began: float
    ) -> dict[Pending, Outcome]:
        deadline = max(pending.call.deadline for pending in wishes)
        batch = retriever.answer(list(wishes.values()), deadline)
        searched = time.perf_counter()
        heads = self._heads_of(retriever, [pending.call for pending in wishes], batch)
        spent = {
            "encode": batch.encode_seconds,
            "search": batch.search_seconds,
            "lookup": time.perf_counter() - searched,
        }
        replies = {
            pending: Reply(
                version=retriever.release.version,
                answer=answer,
                heads=mine,
                stages=Stages(queue=began - pending.admitted, **spent),
            )
            for pending, answer, mine in zip(wishes, batch.answers, heads, strict=True)
        }
        self._uncounted.append((batch, list(replies.values())))
        return replies

    def _count(self) -> None:
        """Counts what has been answered; callers do not wait for it."""
        try:
            for batch, replies in self._uncounted:
                self._metrics.batch(batch, replies)
        except Exception:
            log.exception("failed")
        self._uncounted.clear()

    def _heads_of(
        self, retriever: Retriever, calls: Sequence[Call], batch: Batch
    ) -> list[list[bytes]]:
        """The rendered items of each call."""
        if self._heads is None or self._heads[0] is not retriever:
            self._heads = retriever, Heads(retriever.payload)
        heads = self._heads[1]
        if len({(call.form, call.fields) for call in calls}) > 1:
            return [
                heads.of(answer.items.item_ids, call.form, call.fields)
                for call, answer in zip(calls, batch.answers, strict=True)
            ]
        made = heads.of(batch.items.item_ids, calls[0].form, calls[0].fields)
        ends = np.cumsum([len(answer.items.scores) for answer in batch.answers]).tolist()
        return [made[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _failed(error: Exception) -> ServiceError:
    """What a caller is told of an exception that is being handled; the log has the rest."""
    log.exception("failed")
    return ServiceError(f"the search failed: {type(error).__name__}.")


def wish_of(retriever: Retriever, call: Call) -> Wish:
    """A call as a release understands it.

    Raises:
      InvalidArgument: The release has no such column, or a number is out of its range.
    """
    columns = retriever.payload.columns
    for name in call.fields or ():
        if name not in columns:
            raise InvalidArgument(
                "fields", f"fields must be among {', '.join(columns)}. Received: {name!r}."
            )
    return retriever.wish(call.queries, call.knob, call.value, call.limit)
