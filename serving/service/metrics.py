"""What the service exports to Prometheus.

Thresholds, temperatures and result counts are drift signals: they move when traffic is no longer
what the release was calibrated on, before anyone can measure recall.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from serving.service.call import Reply, Stages

_SECONDS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 5
)  # fmt: skip
_COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_COSINES = tuple(step / 20 for step in range(-4, 20))
_TEMPERATURES = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1)
_BREAKER = ("closed", "half-open", "open")
STAGES = ("queue", "encode", "search", "lookup")


class Metrics:
    """All metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        """Makes them, all at zero."""
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"pebr_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"pebr_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
            return Histogram(f"pebr_{name}", text, labels, registry=registry, buckets=buckets)

        self._requests = counter("requests", "Calls by outcome", "api", "status")
        self._seconds = histogram("request_seconds", "From arrival to answer", _SECONDS, "api")
        stages = histogram("stage_seconds", "Of answered calls, by stage", _SECONDS, "stage")
        self._stages = [stages.labels(name) for name in STAGES]
        self._batches = histogram("batch_queries", "Queries that were answered together", _BATCHES)
        busy = counter("busy_seconds", "Time of the thread that answers, by stage", "stage")
        self._busy = {name: busy.labels(name) for name in STAGES[1:]}
        self._results = histogram("results", "Items of a query", _COUNTS)
        self._empty = counter("empty", "Queries without an item")
        self._truncated = counter("truncated", "Queries whose list the cap or max_results cut")
        self._thresholds = histogram("threshold", "Cosine where a list ended", _COSINES)
        self._temperatures = histogram("tau", "Temperature of a query", _TEMPERATURES)
        self._queue = gauge("queue_queries", "Queries waiting for a batch")
        self._version = gauge("release_version", "Version of the release that answers")
        self._loaded = gauge("release_loaded_timestamp_seconds", "When it began to answer")
        self._swaps = counter("release_swaps", "Times that another release took over")
        self._refusals = counter("release_refusals", "Times that a release was not taken")
        text = "1 for each release that is refused now"
        self._refused = gauge("release_refused", text, "version", "reason")

        self._breaker = gauge("tf_serving_breaker", "0: calls pass, 1: one is tried, 2: none pass")

    def request(self, api: str, status: str, seconds: float) -> None:
        """Counts a call of an API, whatever became of it."""
        self._requests.labels(api, status).inc()
        self._seconds.labels(api).observe(seconds)

    def batch(self, queries: int, **seconds: float) -> None:
        """Counts a batch, and the seconds that it took by stage."""
        self._batches.observe(queries)
        for stage, spent in seconds.items():
            self._busy[stage].inc(spent)

    def reply(self, reply: Reply) -> None:
        """Counts an answer."""
        items, answer = reply.answer.items, reply.answer
        self._stage(reply.stages)
        self._truncated.inc(int(items.truncated.sum()))
        for count, threshold, tau in zip(
            items.counts.tolist(), items.thresholds.tolist(), answer.tau.tolist(), strict=True
        ):
            self._results.observe(count)
            self._thresholds.observe(threshold)
            self._temperatures.observe(tau)
            if not count:
                self._empty.inc()

    def _stage(self, stages: Stages) -> None:
        for name, metric in zip(STAGES, self._stages, strict=True):
            metric.observe(getattr(stages, name))

    def queue(self, queries: int) -> None:
        """Says how many queries wait."""
        self._queue.set(queries)

    def release(self, version: int, swapped: bool) -> None:
        """Says which release answers from now on."""
        self._version.set(version)
        self._loaded.set(time.time())
        if swapped:
            self._swaps.inc()

    def refused(self, reasons: dict[int, str]) -> None:
        """Says which releases are refused now, and why."""
        self._refused.clear()
        for version, reason in reasons.items():
            self._refused.labels(str(version), reason).set(1)

    def breaker(self, state: Callable[[], str]) -> None:
        """Exports the state of a circuit breaker, asked at each scrape."""
        self._breaker.set_function(lambda: _BREAKER.index(state()))

    def refusal(self) -> None:
        """Counts a release that was tried and not taken."""
        self._refusals.inc()
