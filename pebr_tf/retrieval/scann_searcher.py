"""Range search with ScaNN: time that shrinks with the answer."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from pebr_tf.retrieval import scann_files
from pebr_tf.retrieval.exact import cosines
from pebr_tf.retrieval.plan import IndexTuning, Leaves, Plan, Planner
from pebr_tf.retrieval.result import RangeResult, splits_of, take_rows
from pebr_tf.retrieval.searcher import Searcher, SearchRequest, check_thresholds

# Scores within CLOSE of a threshold are decided in float64; ScaNN searches a little below it.
ROUNDING = np.float32(1e-6)
CLOSE = 2 * ROUNDING
# Below every cosine; a small appended coordinate keeps ScaNN's sums exact.
LOWEST = np.float32(-1.001)
# The margin of a query that every item passes, however inexact its code.
ANY_MARGIN = np.float32(4)
# A search for k items scores CANDIDATES * k + MORE_CANDIDATES items exactly, a probe fewer.
CANDIDATES = 2
MORE_CANDIDATES = 100
PROBE_CANDIDATES = 1.5
# Leaves of a probe: a fixed few, but holding PROBE_ITEMS times the items that it returns.
PROBE_LEAVES = 4
PROBE_ITEMS = 4
NOTHING = (np.empty(0, np.uint32), np.empty(0, np.float32))


class ScannSearcher(Searcher):
    """ScaNN as a true range search; see `plan` and `scann_files` for the method.

    Every returned score is exact and no returned item lies below its threshold; of the items above
    it, the share that the index was tuned for is found. ScaNN's binding holds Python's lock, so
    concurrent callers are answered one after the other.
    """

    def __init__(
        self,
        directory: Path,
        ids: np.ndarray,
        leaves: Leaves,
        background: np.ndarray,
        tuning: IndexTuning,
        max_leaves: int | None = None,
    ):
        """Opens the ScaNN files in `directory`; use `load_index`, which verifies them.

        `ids` [N] are in index order, and `background` [M, n] is a sample of the items. A query
        searches at most `max_leaves`; a row that needs more is `truncated`.
        """
        self._scann = scann_files.load(directory)
        # A plain array of the same mapped file: indexing a memmap object is slow.
        augmented = np.asarray(np.load(directory / scann_files.VECTORS, mmap_mode="r"))
        super().__init__(augmented[:, :-1], ids, background)
        self._planner = Planner(leaves, tuning)
        self.max_leaves = min(max_leaves or len(leaves), len(leaves))

    @property
    def leaves(self) -> Leaves:
        return self._planner.leaves

    @property
    def tuning(self) -> IndexTuning:
        return self._planner.tuning

    def with_tuning(self, tuning: IndexTuning) -> ScannSearcher:
        """The same index with another tuning; both share memory."""
        other = copy.copy(self)
        other._planner = Planner(self.leaves, tuning)
        return other

    def probe(self, queries: np.ndarray, size: int) -> RangeResult:
        thresholds = np.full(len(queries), -np.inf, np.float32)
        leaves = np.full(len(queries), self._probe_leaves(size))
        expected = np.full(len(queries), len(self), np.float32)
        request = SearchRequest(queries, thresholds, size, size)
        size = min(size, len(self))
        plan = Plan(leaves, leaves, expected)
        return self._run(request, plan, size, int(PROBE_CANDIDATES * size) + 1)

    def extend(
        self, queries: np.ndarray, thresholds: np.ndarray, probe: RangeResult, limit: int
    ) -> tuple[np.ndarray, RangeResult]:
        # The probe searched few leaves; where a plan has more, it may have missed items.
        request = SearchRequest(queries, check_thresholds(thresholds, len(queries)), None, limit)
        limit = min(limit + 1, len(self))
        plan = self._planner.plan(queries, request.thresholds, limit)
        missed = plan.leaves > self._probe_leaves(int(probe.counts.max()))
        rows = (self._too_short(probe, thresholds) | missed).nonzero()[0]
        if not len(rows):
            return rows, take_rows(probe, rows)
        return rows, self._run(request.take(rows), plan.take(rows), limit)

    def _probe_leaves(self, size: int) -> int:
        """A few leaves, or as many as hold the items if leaves are small."""
        return min(
            max(PROBE_LEAVES, PROBE_ITEMS * size * len(self.leaves) // len(self)), self.max_leaves
        )

    def _search(self, request: SearchRequest) -> RangeResult:
        # One item more than the limit distinguishes a full list from a cut one.
        limit = min(request.longest + request.limit_binds, len(self))
        if len(request) == 1 and -1 < request.thresholds[0] <= 1:
            leaves, expected = self._planner.plan_one(request.queries[0], request.thresholds[0])
            if expected <= limit:
                return self._run_one(request, leaves, expected, limit)
        plan = self._planner.plan(request.queries, request.thresholds, limit)
        return self._run(request, plan, limit)

    def _run(
        self, request: SearchRequest, plan: Plan, limit: int, candidates: int | None = None
    ) -> RangeResult:
        """Searches as planned, for at most `limit` items of a query."""
        candidates = candidates or CANDIDATES * limit + MORE_CANDIDATES
        lowered = np.maximum(request.thresholds - ROUNDING, LOWEST)
        margins = np.where(lowered > LOWEST, self._planner.margins(plan.expected), ANY_MARGIN)
        scale = scann_files.APPROXIMATE_EPSILON / margins
        augmented = np.empty((len(request), self.dimension + 1), np.float32)
        np.multiply(request.queries, scale[:, None], out=augmented[:, :-1])
        np.multiply(lowered, -scale, out=augmented[:, -1])

        wanted = np.where(lowered > 1, 0, plan.leaves)
        answers = self._ask(augmented, wanted.tolist(), limit, candidates)
        if plan.leaves is not plan.enough:
            for row in (plan.leaves < plan.enough).nonzero()[0]:
                if len(answers[row][0]) < limit and wanted[row]:
                    wanted[row] = plan.enough[row]
                    [answers[row]] = self._ask([augmented[row]], [wanted[row]], limit, candidates)

        counts = [len(found) for found, _ in answers]
        rows = np.repeat(np.arange(len(request)), counts)
        positions = np.concatenate([found for found, _ in answers])
        scores = np.concatenate([products for _, products in answers])
        scores /= scale[rows]
        scores += lowered[rows]
        np.minimum(scores, 1, out=scores)
        close = (scores <= (request.thresholds + CLOSE)[rows]).nonzero()[0]
        if len(close):
            rows, positions, scores = self._above(request, rows, positions, scores, close)
        result = RangeResult(
            row_splits=splits_of(np.bincount(rows, minlength=len(request))),
            item_ids=self.ids[positions],
            scores=scores,
            thresholds=request.thresholds,
            expected_counts=plan.expected,
            truncated=wanted > self.max_leaves,
        )
        return self._finished(request, result)

    def _run_one(
        self, request: SearchRequest, leaves: int, expected: float, limit: int
    ) -> RangeResult:
        """The same for one query that expects no more than the limit.

        Handling arrays of one element would otherwise take a third of a specific query's time.
        """
        lowered = request.thresholds[0] - ROUNDING
        scale = np.float32(scann_files.APPROXIMATE_EPSILON) / self._planner.margin(expected)
        augmented = np.empty(self.dimension + 1, np.float32)
        np.multiply(request.queries[0], scale, out=augmented[:-1])
        augmented[-1] = -scale * lowered
        candidates = CANDIDATES * limit + MORE_CANDIDATES
        [(positions, products)] = self._ask([augmented], [leaves], limit, candidates)
        scores = products / scale
        scores += lowered
        if len(scores) and scores[0] > 1:
            np.minimum(scores, 1, out=scores)
        if len(scores) and scores[-1] <= request.thresholds[0] + CLOSE:
            rows = np.zeros(len(scores), np.int64)
            close = (scores <= request.thresholds[0] + CLOSE).nonzero()[0]
            _, positions, scores = self._above(request, rows, positions, scores, close)
        result = RangeResult(
            row_splits=np.array([0, len(scores)]),
            item_ids=self.ids[positions],
            scores=scores,
            thresholds=request.thresholds,
            expected_counts=np.array([expected], np.float32),
            truncated=np.array([leaves > self.max_leaves]),
        )
        return self._finished(request, result)

    def _finished(self, request: SearchRequest, result: RangeResult) -> RangeResult:
        """The result with ties in order and cut at the end of the request."""
        if (result.scores[:-1] == result.scores[1:]).any():
            self._order_ties(result)
        if result.counts.max() <= request.longest:
            return result
        over = result.counts > request.limit
        return replace(result.head(request.longest), truncated=result.truncated | over)

    def _ask(
        self,
        augmented: Iterable[np.ndarray],
        leaves: Iterable[int],
        limit: int,
        candidates: int,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """ScaNN's positions and dot products, best first, for each augmented query [n + 1]."""
        candidates = min(candidates, len(self))
        search, most = self._scann.search, self.max_leaves
        return [
            search(query, limit, candidates, min(count, most)) if count else NOTHING
            for query, count in zip(augmented, leaves, strict=True)
        ]

    def _above(
        self,
        request: SearchRequest,
        rows: np.ndarray,
        positions: np.ndarray,
        scores: np.ndarray,
        close: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The items at or above their threshold; the `close` ones are decided in float64."""
        thresholds = request.thresholds[rows]
        exact = cosines(request.queries, self.vectors, rows[close], positions[close])
        above = np.ones(len(rows), bool)
        above[close] = exact >= thresholds[close]
        scores = np.maximum(scores, thresholds)
        return rows[above], positions[above], scores[above]

    @staticmethod
    def _order_ties(result: RangeResult) -> None:
        """Puts the ids of equal scores in a row into ascending order, in place."""
        ids, scores, rows = result.item_ids, result.scores, result.rows()
        tied = np.zeros(len(scores) + 1, bool)
        tied[1:-1] = (scores[:-1] == scores[1:]) & (rows[:-1] == rows[1:])
        run = np.cumsum(~tied[:-1])
        members = (tied[:-1] | tied[1:]).nonzero()[0]
        ids[members] = ids[members[np.lexsort((ids[members], run[members]))]]
