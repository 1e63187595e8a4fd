"""Metrics for Prometheus.

Thresholds, temperatures and result counts are drift signals: they move when the traffic differs
from what the release was calibrated on, before anyone can measure recall.
"""

import functools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.multiprocess import MultiProcessCollector

from serving.retrieval import STAGES, RetrievalResponse
from serving.tf_serving.circuit_breaker import CircuitBreaker

_SECONDS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 5
)  # fmt: skip
_COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_COSINES = tuple(step / 20 for step in range(20))
_TEMPERATURES = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1)
_BREAKER = ("closed", "half-open", "open")


class Metrics:
    """All metrics of one process, in their own registry."""

    def __init__(self, shared: Path | None = None, place: str = "") -> None:
        """`shared` is a folder in which processes share their metrics, each at its own `place`.

        The next process at a place goes on counting where the last one ended.
        """
        self._shared = shared
        if shared is not None:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared)
            values.ValueClass = values.MultiProcessValue(lambda: place)
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"pebr_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str, mode: Any = "mostrecent") -> Gauge:
            return Gauge(f"pebr_{name}", text, labels, registry=registry, multiprocess_mode=mode)

        def histogram(name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"pebr_{name}", text, labels, registry=registry, buckets=buckets)

        requests = counter("requests", "Calls by outcome", "api", "status")
        seconds = histogram("request_seconds", "From arrival to answer", _SECONDS, "api")
        # Finding the child of a label takes longer than counting.
        self._request_counter = functools.cache(requests.labels)
        self._request_seconds = functools.cache(seconds.labels)
        stages = histogram("stage_seconds", "Seconds of answered requests", _SECONDS, "stage")
        self._stages = {name: stages.labels(name) for name in STAGES}
        self._batches = histogram("batch_queries", "Queries answered together", _BATCHES)
        busy = counter("busy_seconds", "Time of the thread that answers, by stage", "stage")
        self._busy = {name: busy.labels(name) for name in STAGES[1:]}
        self._results = histogram("results", "Items per query", _COUNTS)
        self._empty = counter("empty", "Queries without an item")
        self._truncated = counter("truncated", "Queries whose list the limit truncated")
        self._thresholds = histogram("threshold", "Cosine at which a list ends", _COSINES)
        self._temperatures = histogram("tau", "Temperature per query", _TEMPERATURES)
        cache = counter("cache", "Encoded queries and responses, by outcome", "cache", "outcome")
        self._cache = functools.cache(cache.labels)
        self.queue = gauge("queue_queries", "Queries waiting for a batch", mode="livesum")
        self._version = gauge("release_version", "Version of the release that answers")
        self._loaded = gauge("release_loaded_timestamp_seconds", "When this release took over")
        self._swaps = counter("release_swaps", "Swaps to another release")
        self.rejections = counter("release_rejections", "Attempts to load a release that failed")
        text = "1 while a release is rejected"
        self._rejected = gauge("release_rejected", text, "version", "reason")
        text = "0: closed, 1: half-open, 2: open; the highest of all processes"
        self._breaker = gauge("tf_serving_breaker", text, mode="livemax")

    def exported(self) -> CollectorRegistry:
        """The metrics of all processes."""
        if self._shared is None:
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._shared))
        return registry

    def request(self, api: str, status: str, seconds: float) -> None:
        self._request_counter(api, status).inc()
        self._request_seconds(api).observe(seconds)

    def cached(self, cache: str, hits: int, misses: int) -> None:
        """Counts what the cache of `queries` or `responses` had and had not."""
        self._cache(cache, "hit").inc(hits)
        self._cache(cache, "miss").inc(misses)

    def batch(self, responses: Sequence[RetrievalResponse]) -> None:
        items = [response.items for response in responses]
        counts = np.concatenate([each.counts for each in items])
        self._batches.observe(len(counts))
        for name, counter in self._busy.items():
            # The requests of a batch share these stages.
            counter.inc(getattr(responses[0].seconds, name))
        for response in responses:
            for name, histogram in self._stages.items():
                histogram.observe(getattr(response.seconds, name))
        for histogram, parts in (
            (self._results, [counts]),
            (self._thresholds, [each.thresholds for each in items]),
            (self._temperatures, [each.encoded.tau for each in responses]),
        ):
            for value in np.concatenate(parts).tolist():
                histogram.observe(value)
        self._empty.inc(int((counts == 0).sum()))
        self._truncated.inc(sum(int(each.truncated.sum()) for each in items))

    def release(self, version: int, swapped: bool) -> None:
        self._version.set(version)
        self._loaded.set(time.time())
        if swapped:
            self._swaps.inc()

    def rejected_release(self, version: int, reason: str, is_rejected: bool) -> None:
        """Sets whether a version is rejected now, for a reason."""
        self._rejected.labels(str(version), reason).set(is_rejected)

    def breaker(self, breaker: CircuitBreaker) -> None:
        """Sets the state of a circuit breaker."""
        self._breaker.set(_BREAKER.index(breaker.state))
