"""Answers requests in batches: admission, batching, retrieval, metrics."""

import asyncio
import logging
import time
from collections.abc import Sequence

from pebr_tf.config import Serving
from serving.errors import ServiceError
from serving.retrieval import RetrievalRequest, RetrievalResponse
from serving.retriever import Retriever
from serving.service.batcher import Batcher, Outcome, Pending
from serving.service.metrics import Metrics
from serving.service.release_manager import ReleaseManager

log = logging.getLogger("pebr.engine")


class Engine:
    def __init__(self, releases: ReleaseManager, settings: Serving, metrics: Metrics):
        self._releases, self._metrics = releases, metrics
        # Whether the service accepts requests; false as soon as it begins to stop.
        self.ready = True
        self._batcher = Batcher(settings.batching, self._answer, self._count)

    def retriever(self) -> Retriever:
        return self._releases.retriever

    async def retrieve(self, request: RetrievalRequest) -> RetrievalResponse:
        """Answers a request, together with others that wait at the same time."""
        try:
            return await self._batcher.submit(request)
        finally:
            self._metrics.queue.set(self._batcher.queries)

    def drain(self) -> None:
        """Marks the service as not ready; requests are still answered."""
        self.ready = False

    async def stop(self) -> None:
        """Rejects new requests, answers those admitted, and ends the threads."""
        self.drain()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._batcher.stop)
        await loop.run_in_executor(None, self._releases.close)

    def _answer(self, batch: Sequence[Pending]) -> Sequence[Outcome]:
        began = time.perf_counter()
        retriever = self._releases.retriever
        outcomes: dict[Pending, Outcome] = {}
        for pending in batch:
            try:
                retriever.check(pending.request)
            except Exception as error:
                # No request may end the thread that answers all others.
                outcomes[pending] = _service_error(error)
        valid = [pending for pending in batch if pending not in outcomes]
        if valid:
            outcomes.update(_answer_together(retriever, valid))
        for pending, outcome in outcomes.items():
            if isinstance(outcome, RetrievalResponse):
                outcome.seconds.queue = began - pending.admitted
        return [outcomes[pending] for pending in batch]

    def _count(self, outcomes: Sequence[Outcome]) -> None:
        responses = [each for each in outcomes if isinstance(each, RetrievalResponse)]
        try:
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
