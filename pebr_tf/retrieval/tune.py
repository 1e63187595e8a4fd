"""Finds the least work with which an index reaches a target recall, on queries with exact results.

Recall is lost in two places: in leaves that are not searched, and by quantisation that puts an item
below the margin. The first loss is counted without a search, from the leaves of the exact results;
the second by searching. The smaller of macro recall (the mean over queries) and micro recall (over
all items) must reach the target.
"""

import bisect
import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy import special

from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.plan import IndexTuning, Leaves, Planner
from pebr_tf.retrieval.result import RangeResult
from pebr_tf.retrieval.scann_searcher import ScannSearcher
from pebr_tf.retrieval.vectors import unit_vectors

CONCENTRATIONS = (0.15, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.2)
COVERS = (0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999)
LEAST_LEAVES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
# In deviations of the quantisation error.
MARGINS = (1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.25, 3.5, 4.0, 4.5, 5.0, 6.0, 8.0, 12.0)
# Cost of starting a leaf and of scoring an item exactly, in units of one scanned item.
LEAF_COST = 30
CANDIDATE_COST = 25
# Tuning aims above the target by this share of the permitted loss: other queries do a bit worse.
SAFETY = 0.2
# Shares of the permitted loss that leaves may take; the margin gets the rest.
LEAF_SHARES = (0.8, 0.6, 0.4, 0.2)
PROBE = 100
TOP_K_COVERS = (0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.9995)


@dataclass(frozen=True)
class TuningExamples:
    """Queries [Q, n], unit vectors, with thresholds [Q], cosines, and exact results."""

    queries: np.ndarray
    thresholds: np.ndarray
    answers: RangeResult

    def __len__(self) -> int:
        return len(self.queries)


def recalls(found: RangeResult, truth: RangeResult) -> np.ndarray:
    """[Q, 2] figures whose means are the macro and the micro recall of `truth` in `found`.

    Micro recall is a ratio of sums; its column is linear about it, so that it varies with the
    queries as the ratio does. A query without items counts as 1.
    """
    wanted = truth.counts
    ids, codes = np.unique(np.concatenate([truth.item_ids, found.item_ids]), return_inverse=True)
    keys = np.concatenate([truth.rows(), found.rows()]) * np.int64(len(ids) + 1) + codes
    present = np.isin(keys[: len(truth.item_ids)], keys[len(truth.item_ids) :])
    hits = np.bincount(truth.rows(), present, len(truth))
    macro = np.where(wanted > 0, hits / np.maximum(wanted, 1), 1.0)
    micro = hits.sum() / wanted.sum() if wanted.sum() else 1.0
    weighted = micro + (hits - micro * wanted) * len(truth) / max(wanted.sum(), 1)
    return np.stack([macro, weighted], axis=1)


def recall(found: RangeResult, truth: RangeResult) -> tuple[float, float]:
    """Macro and micro recall of `truth` in `found`; 1 without a query."""
    macro, micro = recalls(found, truth).mean(axis=0) if len(truth) else (1.0, 1.0)
    return float(macro), float(micro)


def lowest_recall(target: float) -> float:
    """The recall to reach on the tuning queries so that other queries reach the target."""
    return target + SAFETY * (1 - target)


def stand_in_queries(vectors: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """[count, n] items with little to much noise, for an index built without queries."""
    generator = np.random.default_rng(seed)
    chosen = vectors[
        np.sort(generator.choice(len(vectors), min(count, len(vectors)), replace=False))
    ]
    noise = generator.standard_normal(chosen.shape) / np.sqrt(chosen.shape[1])
    return unit_vectors("queries", chosen + generator.uniform(0.1, 1, (len(chosen), 1)) * noise)


def stand_in_thresholds(exact: ExactSearcher, queries: np.ndarray, seed: int = 0) -> np.ndarray:
    """[Q] thresholds that give from 1 to some thousand items, log-uniformly."""
    most = int(min(3_000, max(1, len(exact) // 50)))
    counts = np.exp(np.random.default_rng(seed).uniform(0, np.log(most + 1), len(queries)))
    best = exact.search(queries, top_k=most + 1)
    last = best.row_splits[:-1] + np.minimum(counts.astype(int), best.counts) - 1
    after = np.minimum(last + 1, best.row_splits[1:] - 1)
    return (best.scores[last] + best.scores[after]) / 2


def tune(
    searcher: ScannSearcher,
    examples: TuningExamples,
    tokens: np.ndarray,
    error: float,
    target: float,
) -> IndexTuning:
    """The cheapest tuning with which `target`, a recall below 1, is reached on `examples`.

    Ids are positions in the index, and `tokens` [N] their leaves. `error` is the deviation of a
    quantised cosine.
    """
    lowest = lowest_recall(target)
    coverage = LeafCoverage(searcher.leaves, examples, tokens)
    best, least = None, np.inf
    for share in LEAF_SHARES:
        tuning, cost = coverage.cheapest(1 - share * (1 - lowest))
        margin = _least_margin(searcher, tuning, examples, error, lowest)
        if margin is None:
            continue
        tuning = dataclasses.replace(tuning, margin=margin)
        cost += CANDIDATE_COST * _candidates(searcher.leaves, tuning, examples)
        if best is None or cost < least:
            best, least = tuning, cost
    widest = dataclasses.replace(tuning, margin=MARGINS[-1] * error)
    return _for_top_k(searcher, best or widest, examples.queries, lowest)


def _least_margin(
    searcher: ScannSearcher,
    tuning: IndexTuning,
    examples: TuningExamples,
    error: float,
    lowest: float,
) -> float | None:
    """The least of MARGINS that reaches recall `lowest`, by bisection; None if none does."""

    def passes(factor: float) -> bool:
        tried = dataclasses.replace(tuning, margin=factor * error)
        found = searcher.with_tuning(tried).search(examples.queries, examples.thresholds)
        return min(recall(found, examples.answers)) >= lowest

    index = bisect.bisect_left(MARGINS, True, key=passes)
    return MARGINS[index] * error if index < len(MARGINS) else None


def _candidates(leaves: Leaves, tuning: IndexTuning, examples: TuningExamples) -> float:
    planner, everything = Planner(leaves, tuning), int(leaves.sizes.sum())
    expected = planner.plan(examples.queries, examples.thresholds, everything).expected
    lowered = examples.thresholds - planner.margins(expected)
    return float(planner.plan(examples.queries, lowered, everything).expected.mean())


def _for_top_k(
    searcher: ScannSearcher, tuning: IndexTuning, queries: np.ndarray, lowest: float
) -> IndexTuning:
    everywhere = dataclasses.replace(tuning, min_leaves=len(searcher.leaves))
    probe = min(PROBE, len(searcher))
    best = searcher.with_tuning(everywhere).search(queries, top_k=probe)
    for cover in TOP_K_COVERS:
        tuning = dataclasses.replace(tuning, top_k_cover=cover)
        found = searcher.with_tuning(tuning).search(queries, top_k=probe)
        if min(recall(found, best)) >= lowest:
            break
    return tuning


class LeafCoverage:
    """The leaves that hold the results of the examples, in the order in which they are searched."""

    def __init__(self, leaves: Leaves, examples: TuningExamples, tokens: np.ndarray):
        self.leaves, self.examples = leaves, examples
        self.dimension = examples.queries.shape[1]
        self.similarity = examples.queries @ leaves.centroids.T
        self.widths = leaves.widths(examples.queries)
        self.order = np.argsort(-self.similarity, axis=1)
        answers, shape = examples.answers, self.similarity.shape
        key = answers.rows() * shape[1] + tokens[answers.item_ids]
        hits = np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape)
        self.hits = self._sorted_sums(hits)
        self.scanned = self._sorted_sums(np.broadcast_to(leaves.sizes, shape))
        self.counts = answers.counts

    def cheapest(self, lowest: float) -> tuple[IndexTuning, float]:
        """The tuning of least cost whose leaves hold `lowest`, or the widest one, and its cost."""
        best = IndexTuning(self.dimension, COVERS[-1], LEAST_LEAVES[-1])
        least = np.inf
        for relative in CONCENTRATIONS:
            concentration = relative * self.dimension
            held = self._expected(concentration)
            for cover in COVERS:
                searched = (held < cover * held[:, -1:]).sum(axis=1) + 1
                for least_leaves in LEAST_LEAVES:
                    last = np.clip(searched, least_leaves, len(self.leaves))[:, None] - 1
                    cost = self._mean(self.scanned, last) + LEAF_COST * (last.mean() + 1)
                    if cost < least and self._recall(last) >= lowest:
                        best, least = IndexTuning(concentration, cover, least_leaves), cost
        return best, least

    def _expected(self, concentration: float) -> np.ndarray:
        deviation = self.leaves.deviations(concentration) * self.widths
        below = (self.examples.thresholds[:, None] - self.similarity) / deviation
        return self._sorted_sums(self.leaves.sizes * special.ndtr(-below.astype(np.float64)))

    def _sorted_sums(self, values: np.ndarray) -> np.ndarray:
        return np.cumsum(np.take_along_axis(values, self.order, axis=1), axis=1, dtype=np.float64)

    def _mean(self, sums: np.ndarray, last: np.ndarray) -> float:
        return float(np.take_along_axis(sums, last, axis=1).mean())

    def _recall(self, last: np.ndarray) -> float:
        found = np.take_along_axis(self.hits, last, axis=1)[:, 0]
        macro = np.where(self.counts > 0, found / np.maximum(self.counts, 1), 1.0).mean()
        return float(min(macro, found.sum() / max(self.counts.sum(), 1)))
