"""Range search against what a user would pick instead: tuned alike, timed interleaved, one thread.

Every method is tuned to the same recall on one set of queries and timed on another, in rounds in
which the methods take turns, because times on a shared machine vary. Figures are medians over
rounds; ratios compare times that were measured side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.retrieval.corpus import SearchCorpus
from benchmarks.retrieval.method import Method, Work
from benchmarks.retrieval.methods import (
    BruteForce,
    FaissFlat,
    FaissHalf,
    FixedK,
    Hnswlib,
    RangeSearch,
    Usearch,
)
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.level import LevelCut, search_by_level
from pebr_tf.retrieval.result import RangeResult, concatenate
from pebr_tf.retrieval.tune import TuningExamples, recall

TUNING_QUERIES = 500
BATCHES = (256, 64, 1)
ROUNDS = 5
# A slow method is timed on fewer queries: as many as take about this long.
SECONDS_PER_TURN = 1.0
# Expected counts of tail, torso and head queries.
BUCKETS = ((0, 20), (20, 1_000), (1_000, None))
RIVALS: dict[str, Callable[[], Method]] = {
    "brute": BruteForce,
    "fixed-1": lambda: FixedK(1),
    "fixed-2": lambda: FixedK(2),
    "faiss": FaissFlat,
    "faiss-fp16": FaissHalf,
    "hnswlib": Hnswlib,
    "usearch": Usearch,
}


@dataclass
class MethodFigures:
    """Measurements of one method.

    Attributes:
      method: The method, tuned.
      recall: Macro and micro on the timed queries.
      false_positives: Returned items below their threshold.
      rate: Batch size -> queries per second, the median over rounds.
      latencies: [Q] seconds of each query alone, the least over rounds.
    """

    method: Method
    recall: tuple[float, float] = (0.0, 0.0)
    false_positives: int = 0
    rate: dict[int, float] = field(default_factory=dict)
    latencies: np.ndarray = field(default_factory=lambda: np.empty(0))

    def times(self, other: MethodFigures) -> float:
        """How many times as fast as `other` this is, each with the batch that suits it best."""
        return max(self.rate.values()) / max(other.rate.values())


@dataclass(frozen=True)
class MethodComparison:
    """The rows of one corpus, ours first, and the true counts of the timed queries."""

    corpus: SearchCorpus
    rows: list[MethodFigures]
    counts: np.ndarray


def compare(
    corpus: SearchCorpus,
    rivals: Sequence[str],
    target: float,
    say: Callable[[str], None],
    batches: Sequence[int] = BATCHES,
) -> MethodComparison:
    """Builds, tunes and times ours and the named rivals on a corpus."""
    say("exact answers")
    exact = ExactSearcher(corpus.items, np.arange(len(corpus.items)), checked=True)
    tuning, timed = (
        _examples(exact, corpus, part)
        for part in (slice(None, TUNING_QUERIES), slice(TUNING_QUERIES, None))
    )
    work = Work(corpus.items, tuning, target)
    rows = [MethodFigures(method()) for method in (RangeSearch, *(RIVALS[name] for name in rivals))]
    for row in rows:
        say(f"building and tuning {row.method.name}")
        row.method.prepare(work)
    for row in rows:
        say(f"recall of {row.method.name}")
        found = _in_batches(row.method, timed, batches[0])
        row.recall = recall(found, timed.answers)
        row.false_positives = _false_positives(exact, timed, found)
    _time(rows, timed, batches, say)
    return MethodComparison(corpus, rows, timed.answers.counts)


def _examples(exact: ExactSearcher, corpus: SearchCorpus, part: slice) -> TuningExamples:
    queries, thresholds = corpus.queries[part], corpus.thresholds[part]
    return TuningExamples(queries, thresholds, exact.search(queries, thresholds, limit=len(exact)))


def _in_batches(method: Method, examples: TuningExamples, batch: int) -> RangeResult:
    return concatenate(
        [
            method.search(
                examples.queries[begin : begin + batch], examples.thresholds[begin : begin + batch]
            )
            for begin in range(0, len(examples), batch)
        ]
    )


def _false_positives(exact: ExactSearcher, examples: TuningExamples, found: RangeResult) -> int:
    """Returned items whose exact cosine is below the threshold by more than rounding."""
    rows = found.rows()
    wrong = 0
    for begin in range(0, len(rows), 1_000_000):
        part = slice(begin, begin + 1_000_000)
        vectors = exact.vectors[found.item_ids[part]]
        cosines = np.einsum("ij,ij->i", vectors, examples.queries[rows[part]])
        wrong += int(np.count_nonzero(cosines < examples.thresholds[rows[part]] - 1e-6))
    return wrong


def _time(
    rows: Sequence[MethodFigures],
    timed: TuningExamples,
    batches: Sequence[int],
    say: Callable[[str], None],
) -> None:
    """Takes turns: each round times every method at every batch size on the same queries."""
    seconds: dict[tuple[int, int], list[float]] = {}
    sizes: dict[tuple[int, int], int] = {}
    alone = [np.full(len(timed), np.inf) for _ in rows]
    for turn in range(ROUNDS):
        say(f"timing, round {turn + 1} of {ROUNDS}")
        for number, row in enumerate(rows):
            for batch in batches:
                key = number, batch
                size = sizes.get(key, len(timed))
                taken = []
                begin = 0
                while begin < size:
                    part = slice(begin, min(begin + batch, size))
                    start = time.perf_counter()
                    row.method.search(timed.queries[part], timed.thresholds[part])
                    taken.append(time.perf_counter() - start)
                    begin = part.stop
                    if key not in sizes and sum(taken) > SECONDS_PER_TURN:
                        sizes[key] = size = begin
                seconds.setdefault(key, []).append(sum(taken) / begin)
                if batch == 1:
                    alone[number][:begin] = np.minimum(alone[number][:begin], taken)
    for number, row in enumerate(rows):
        row.rate = {batch: 1 / float(np.median(seconds[number, batch])) for batch in batches}
        row.latencies = alone[number][np.isfinite(alone[number])]


def by_count(row: MethodFigures, counts: np.ndarray) -> list[tuple[float, float]]:
    """The median and 99th percentile of latency, in milliseconds, of each of BUCKETS."""
    counts = counts[: len(row.latencies)]
    figures = []
    for low, high in BUCKETS:
        chosen = row.latencies[(counts >= low) & (counts < (high or np.inf))]
        figures.append(
            tuple(np.percentile(chosen, (50, 99)) * 1e3) if len(chosen) else (np.nan, np.nan)
        )
    return figures


@dataclass(frozen=True)
class LevelCost:
    """Time of `search_by_level` over that of a plain search down to the same thresholds.

    Attributes:
      ratio: Of the medians over rounds.
      extended: Share of the queries that the probe was too short for.
      recall: Macro and micro, inside the thresholds that the levels gave.
    """

    ratio: float
    extended: float
    recall: tuple[float, float]


def level_cost(ours: RangeSearch, corpus: SearchCorpus, tau: float = 0.05) -> LevelCost:
    """Compares the two, interleaved, with cut-offs that give back the corpus's own thresholds."""
    queries, thresholds = corpus.queries[TUNING_QUERIES:], corpus.thresholds[TUNING_QUERIES:]
    taus = np.full(len(queries), tau, np.float32)
    levels = search_by_level(ours.searcher, queries, taus, LevelCut(0.0)).levels
    cutoffs = np.log((1 + thresholds) / 2) / tau - levels
    batches = [slice(begin, begin + BATCHES[0]) for begin in range(0, len(queries), BATCHES[0])]
    level, plain = np.empty((2, ROUNDS, len(batches)))
    for turn in range(ROUNDS):
        found = []
        for number, part in enumerate(batches):
            start = time.perf_counter()
            cut = LevelCut(cutoffs[part])
            found.append(search_by_level(ours.searcher, queries[part], taus[part], cut))
            middle = time.perf_counter()
            ours.searcher.search(queries[part], found[-1].items.thresholds)
            level[turn, number] = middle - start
            plain[turn, number] = time.perf_counter() - middle
    ratio = np.median(level, axis=0).sum() / np.median(plain, axis=0).sum()
    items = concatenate([answer.items for answer in found])
    exact = ExactSearcher(corpus.items, np.arange(len(corpus.items)), checked=True)
    truth = exact.search(queries, items.thresholds)
    extended = np.concatenate([answer.extended for answer in found])
    return LevelCost(float(ratio), float(extended.mean()), recall(items, truth))


def growth(rows: Sequence[tuple[int, np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """Exponents of a query's time in the number of items and in its count, by least squares.

    Args:
      rows: For each corpus its size, the counts [Q] and the latencies [Q].
    """
    size = np.concatenate([np.full(len(counts), np.log(items)) for items, counts, _ in rows])
    count = np.concatenate([np.log1p(counts) for _, counts, _ in rows])
    taken = np.concatenate([np.log(latencies) for _, _, latencies in rows])
    design = np.stack([np.ones_like(size), size, count], axis=1)
    _, by_items, by_results = np.linalg.lstsq(design, taken, rcond=None)[0]
    return float(by_items), float(by_results)
