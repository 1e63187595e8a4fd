"""The index as it would serve: what it finds of the exact answer, and how fast."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff import Calibration, ReleaseKnobs
from pebr_tf.retrieval import ExactSearcher, RangeResult, Searcher
from pebr_tf.retrieval.encoded import EncodedQueries
from pebr_tf.retrieval.result import concatenate
from pebr_tf.retrieval.tune import recall

# Queries that the index is tried on.
QUERIES = 1_000
BATCHES = (1, 32)
# A batch size is measured for so many calls, and after these seconds for no more.
CALLS, SECONDS = 400, 5.0
BLOCK = 32


class Search:
    """Searches for encoded queries with the default knob, floor and limit."""

    def __init__(self, calibration: Calibration, settings: Cutoff):
        """Takes the knobs and their default."""
        self._rule = ReleaseKnobs(calibration, settings).default_rule()
        self._limit = settings.limit

    def __call__(self, searcher: Searcher, encoded: EncodedQueries) -> RangeResult:
        """The items of each query."""
        cutoffs = self._rule.cutoffs[encoded.stratum]
        return self._rule.policy.search(searcher, encoded, cutoffs, self._limit).items

    def exactly(
        self, searcher: ExactSearcher, encoded: EncodedQueries, found: RangeResult
    ) -> RangeResult:
        """What `found` should hold: all items at its thresholds, or of the same policy."""
        if not self._rule.policy.ends_at_cosine:
            return self(searcher, encoded)
        return searcher.search(encoded.embedding, found.thresholds, limit=self._limit)


def index_recall(
    searcher: Searcher, exact: ExactSearcher, encoded: EncodedQueries, search: Search
) -> dict[str, Any]:
    """Macro and micro share of the exact answers, on up to `QUERIES` queries."""
    encoded = encoded.take(slice(0, QUERIES))
    blocks = [encoded.take(slice(begin, begin + BLOCK)) for begin in range(0, len(encoded), BLOCK)]
    found = [search(searcher, block) for block in blocks]
    truth = [search.exactly(exact, *pair) for pair in zip(blocks, found, strict=True)]
    macro, micro = recall(concatenate(found), concatenate(truth))
    return {"recall_macro": macro, "recall_micro": micro, "queries": len(encoded)}


def latency(
    searcher: Searcher, encoded: EncodedQueries, search: Search, batches: Sequence[int] = BATCHES
) -> dict[str, Any]:
    """Milliseconds of a call, p50 and p99, and queries a second, at each batch size."""
    columns: dict[str, list[float]] = {"p50_ms": [], "p99_ms": [], "queries_per_second": []}
    for size in batches:
        times = _times(searcher, encoded, search, size)
        columns["p50_ms"].append(float(np.percentile(times, 50) * 1e3))
        columns["p99_ms"].append(float(np.percentile(times, 99) * 1e3))
        columns["queries_per_second"].append(float(size * len(times) / np.sum(times)))
    return {"batch": list(batches), **columns}


def _times(searcher: Searcher, encoded: EncodedQueries, search: Search, size: int) -> list[float]:
    """Seconds of each call; the first, which finds nothing warm, is not counted."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    for call in range(CALLS + 1):
        # Round and round, so that a batch is full even of few queries.
        rows = (np.arange(size) + call * size) % len(encoded)
        part = encoded.take(rows)
        begin = time.perf_counter()
        search(searcher, part)
        now = time.perf_counter()
        times.append(now - begin)
        if now > end and call:
            break
    return times[1:]
