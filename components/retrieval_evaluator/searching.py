"""The index as it would serve: its recall against exact search, and its latency."""

import time

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.cutoff.knobs import ReleaseKnobs
from pebr_tf.release.evaluation import LatencyResult
from pebr_tf.retrieval import ExactSearcher, RangeResult, Searcher
from pebr_tf.retrieval.encoded import EncodedQueries
from pebr_tf.retrieval.result import concatenate
from pebr_tf.retrieval.tune import recalls

# Queries that measure the recall of the index.
QUERIES = 1_000
BATCHES = (1, 32)
# Each batch size is measured for at most so many calls and seconds.
CALLS, SECONDS = 400, 5.0
BLOCK = 32


class Search:
    """Searches for encoded queries with the default knob, floor and limit."""

    def __init__(self, calibration: Calibration, settings: Cutoff):
        self._rule = ReleaseKnobs(calibration, settings).default_rule()
        self._limit = settings.limit

    def __call__(self, searcher: Searcher, encoded: EncodedQueries) -> RangeResult:
        cutoffs = self._rule.cutoffs[encoded.stratum]
        return self._rule.policy.search(searcher, encoded, cutoffs, self._limit)[0]

    def exactly(
        self, searcher: ExactSearcher, encoded: EncodedQueries, found: RangeResult
    ) -> RangeResult:
        """What `found` should hold: all items at its thresholds, or of the same policy."""
        if not self._rule.policy.ends_at_cosine:
            return self(searcher, encoded)
        return searcher.search(encoded.embedding, found.thresholds, limit=self._limit)


def index_recall(
    searcher: Searcher, exact: ExactSearcher, encoded: EncodedQueries, search: Search
) -> np.ndarray:
    """[I, 2] macro and micro recall of the exact answers by query, at most `QUERIES`."""
    encoded = encoded.take(slice(0, QUERIES))
    blocks = [encoded.take(slice(begin, begin + BLOCK)) for begin in range(0, len(encoded), BLOCK)]
    found = [search(searcher, block) for block in blocks]
    truth = [search.exactly(exact, *pair) for pair in zip(blocks, found, strict=True)]
    return recalls(concatenate(found), concatenate(truth))


def latency(searcher: Searcher, encoded: EncodedQueries, search: Search) -> list[LatencyResult]:
    results = []
    for size in BATCHES:
        times = np.array(_times(searcher, encoded, search, size))
        p50, p99 = np.percentile(times, [50, 99]) * 1e3
        rate = size * len(times) / times.sum()
        results.append(LatencyResult(size, float(p50), float(p99), float(rate)))
    return results


def _times(searcher: Searcher, encoded: EncodedQueries, search: Search, size: int) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    for call in range(CALLS + 1):
        # Queries repeat, so that a batch is full even if there are few.
        rows = (np.arange(size) + call * size) % len(encoded)
        part = encoded.take(rows)
        begin = time.perf_counter()
        search(searcher, part)
        now = time.perf_counter()
        times.append(now - begin)
        if now > end and call:
            break
    return times[1:]
