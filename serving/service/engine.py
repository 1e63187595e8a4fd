"""Answers requests in batches: admission, batching, retrieval, metrics."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

from pebr_tf.config import Serving
from serving.errors import ServiceError
from serving.retrieval import RetrievalRequest, RetrievalResponse
from serving.retriever import Retriever
from serving.service.batcher import Batcher, Outcome, Pending
from serving.service.cache import CachedEncoder, ResponseCache
from serving.service.metrics import Metrics

log = logging.getLogger("pebr.engine")


class Engine:
    def __init__(
        self,
        retriever: Retriever,
        settings: Serving,
        metrics: Metrics,
        executor: Executor | None = None,
    ):
        """`executor` answers the batches; without one, the event loop does."""
        self.retriever, self._metrics = retriever, metrics
        # With encodings that are kept; for the batches only.
        self._answering = retriever
        self._responses: ResponseCache | None = None
        sizes = settings.cache
        if sizes.queries:
            encoder = CachedEncoder(retriever.encoder, sizes.queries, metrics.cached)
            self._answering = replace(retriever, encoder=encoder)
        if sizes.responses:
            self._responses = ResponseCache(sizes.responses, metrics.cached)
        # Whether the service accepts requests; false as soon as it begins to stop.
        self.ready = True
        # Whether another process takes over: connections end after their next response.
        self.retiring = False
        self._batcher = Batcher(settings.batching, self._answer, self._count, executor)

    async def retrieve(self, request: RetrievalRequest) -> RetrievalResponse:
        """Answers a request, together with others that wait at the same time."""
        if self._responses is not None and self.ready:
            kept = self._responses.get(request)
            if kept is not None:
                return kept
        try:
            response = await self._batcher.submit(request)
        finally:
            self._metrics.queue.set(self._batcher.queries)
        if self._responses is not None:
            self._responses.put(request, response)
        return response

    async def stop(self) -> None:
        """Rejects new requests, and answers those admitted."""
        self.ready = False
        await self._batcher.stop()

    def _answer(self, batch: Sequence[Pending]) -> Sequence[Outcome]:
        began = time.perf_counter()
        outcomes: dict[Pending, Outcome] = {}
        for pending in batch:
            try:
                self.retriever.check(pending.request)
            except Exception as error:
                # No request may fail all others.
                outcomes[pending] = _service_error(error)
        valid = [pending for pending in batch if pending not in outcomes]
        if valid:
            outcomes.update(_answer_together(self._answering, valid))
        for pending, outcome in outcomes.items():
            if isinstance(outcome, RetrievalResponse):
                outcome.seconds.queue = began - pending.admitted
        return [outcomes[pending] for pending in batch]

    def _count(self, outcomes: Sequence[Outcome]) -> None:
        responses = [each for each in outcomes if isinstance(each, RetrievalResponse)]
        breaker = getattr(self.retriever.encoder, "breaker", None)
        try:
            if breaker is not None:
                self._metrics.breaker(breaker)
            if responses:
                self._metrics.batch(responses)
        except Exception:
            log.exception("failed")


def _answer_together(retriever: Retriever, batch: Sequence[Pending]) -> dict[Pending, Outcome]:
    try:
        responses = retriever.answer([pending.request for pending in batch])
        return dict(zip(batch, responses, strict=True))
    except Exception as error:
        if isinstance(error, ServiceError) or len(batch) == 1:
            return dict.fromkeys(batch, _service_error(error))
        # One request may be the cause, so each is tried alone.
        return {each: _answer_together(retriever, [each])[each] for each in batch}


def _service_error(error: Exception) -> ServiceError:
    """Returns what the caller is told about an exception, and logs it if it is internal."""
    if isinstance(error, ServiceError):
        return error
    log.exception("failed")
    return ServiceError(f"the search failed: {type(error).__name__}.")
