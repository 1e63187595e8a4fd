"""What the service exports to Prometheus.

Thresholds, temperatures and result counts are drift signals: they move when traffic is no longer
what the release was calibrated on, before anyone can measure recall.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from serving.retriever import Batch
from serving.service.call import Reply

_SECONDS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 5
)  # fmt: skip
_COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_COSINES = tuple(step / 20 for step in range(20))
_TEMPERATURES = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1)
_BREAKER = ("closed", "half-open", "open")
STAGES = ("queue", "encode", "search", "lookup")


class BatchHistogram:
    """A histogram that takes many values at once.

    That of prometheus_client takes one at a time, and with a few for each query would be a tenth of
    the work of the service.
    """

    def __init__(
        self,
        name: str,
        text: str,
        buckets: Sequence[float],
        label: str | None = None,
        children: Sequence[str] = ("",),
    ):
        """Makes one at zero.

        Args:
          name: Of the metric.
          text: What it counts.
          buckets: Upper ends, rising.
          label: Name of a label, or None.
          children: The values of that label.
        """
        self._name, self._text, self._label = name, text, label
        self._ends = np.array([*buckets, np.inf])
        self._counts = {child: np.zeros(len(self._ends), np.int64) for child in children}
        self._sums = dict.fromkeys(children, 0.0)
        self._lock = threading.Lock()

    def add(self, values: Any, child: str = "") -> None:
        """Counts values [N]."""
        values = np.asarray(values, np.float64)
        places = np.searchsorted(self._ends, values)
        with self._lock:
            self._counts[child] += np.bincount(places, minlength=len(self._ends))
            self._sums[child] += float(values.sum())

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """What Prometheus is told."""
        names = None if self._label is None else [self._label]
        family = HistogramMetricFamily(self._name, self._text, labels=names)
        with self._lock:
            for child, counts in self._counts.items():
                totals = zip(self._ends.tolist(), np.cumsum(counts).tolist(), strict=True)
                buckets = [(floatToGoString(end), total) for end, total in totals]
                labels = [] if self._label is None else [child]
                family.add_metric(labels, buckets, self._sums[child])
        yield family


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

        requests = counter("requests", "Calls by outcome", "api", "status")
        seconds = histogram("request_seconds", "From arrival to answer", _SECONDS, "api")
        # Finding the child of some labels takes longer than counting.
        self._request_counter = functools.cache(requests.labels)
        self._request_seconds = functools.cache(seconds.labels)
        text = "Of answered calls, by stage"
        self._stages = BatchHistogram("pebr_stage_seconds", text, _SECONDS, "stage", STAGES)
        self._batches = histogram("batch_queries", "Queries that were answered together", _BATCHES)
        busy = counter("busy_seconds", "Time of the thread that answers, by stage", "stage")
        self._busy = {name: busy.labels(name) for name in STAGES[1:]}
        self._results = BatchHistogram("pebr_results", "Items of a query", _COUNTS)
        self._empty = counter("empty", "Queries without an item")
        self._truncated = counter("truncated", "Queries whose list the limit or limit cut")
        self._thresholds = BatchHistogram("pebr_threshold", "Cosine where a list ended", _COSINES)
        self._temperatures = BatchHistogram("pebr_tau", "Temperature of a query", _TEMPERATURES)
        for each in (self._stages, self._results, self._thresholds, self._temperatures):
            registry.register(each)
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
        self._request_counter(api, status).inc()
        self._request_seconds(api).observe(seconds)

    def batch(self, batch: Batch, replies: Sequence[Reply]) -> None:
        """Counts a batch that was answered together.

        Args:
          batch: What was found for all.
          replies: To the calls of the batch, at least one.
        """
        items = batch.items
        self._batches.observe(len(items))
        # A batch has these in common.
        for name, counter in self._busy.items():
            counter.inc(getattr(replies[0].stages, name))
        for name in STAGES:
            self._stages.add([getattr(reply.stages, name) for reply in replies], name)
        self._results.add(items.counts)
        self._thresholds.add(items.thresholds)
        self._temperatures.add(np.concatenate([reply.answer.tau for reply in replies]))
        self._empty.inc(int((items.counts == 0).sum()))
        self._truncated.inc(int(items.truncated.sum()))

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
