"""The interface of retrieval: all items at or above each query's own threshold."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.retrieval.result import RangeResult, empty, take_rows
from pebr_tf.retrieval.vectors import reject_rows, unit_vectors

DEFAULT_LIMIT = Cutoff.limit


@dataclass(frozen=True)
class SearchRequest:
    """A validated search request.

    Attributes:
      queries: [B, n] float32 unit vectors.
      thresholds: [B] float32 cosines; -inf where every item passes.
      top_k: The number of items that the caller wants, or None.
      limit: The most results of one query.
    """

    queries: np.ndarray
    thresholds: np.ndarray
    top_k: int | None
    limit: int

    @property
    def longest(self) -> int:
        return self.limit if self.top_k is None else min(self.top_k, self.limit)

    @property
    def limit_binds(self) -> bool:
        """Whether a full list ends at the limit and not at the caller's top_k."""
        return self.top_k is None or self.top_k > self.limit

    def take(self, rows: np.ndarray) -> SearchRequest:
        return replace(self, queries=self.queries[rows], thresholds=self.thresholds[rows])

    def __len__(self) -> int:
        return len(self.queries)


class Searcher(abc.ABC):
    """Finds the items whose cosine with a query is at least the query's threshold.

    Safe for concurrent callers. Every implementation keeps the same contract;
    `ExactSearcher` is the oracle of the other.

    Attributes:
      vectors: [N, n] unit vectors; do not write to them.
      ids: [N] ids, int64 or text, in the order of `vectors`.
      background: [M, n] vectors of a uniform random sample of the items, for levels of queries.
    """

    def __init__(self, vectors: np.ndarray, ids: np.ndarray, background: np.ndarray):
        self.vectors, self.ids, self.background = vectors, ids, background

    @property
    def dimension(self) -> int:
        """n, of item and query vectors."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.ids)

    @abc.abstractmethod
    def _search(self, request: SearchRequest) -> RangeResult:
        """Answers a checked request of at least one query on an index of at least one item."""

    def search(
        self,
        queries: Any,
        thresholds: Any = None,
        top_k: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> RangeResult:
        """Every item at or above each query's threshold, best first.

        An empty batch gives an empty result, an empty index a result of empty rows. Scores are
        float32 cosines, within 5e-7 of the real ones; whether an item is at its threshold is
        decided on the float32 nearest to the real cosine, so that >= includes ties.

        Args:
          queries: [B, n] vectors; scaled to length 1 unless they have it.
          thresholds: [B] or one number; at most -1 passes every item, above 1 none. None: -1.
          top_k: The number of items per query that the caller wants.
          limit: The most items of a query, to bound work: a row that it cuts is `truncated`.

        Raises:
          ValueError: Neither thresholds nor top_k; a query of another dimension, with NaN or
            infinity, or of length zero; a NaN threshold or another number of them; top_k or
            limit below 1.
        """
        if thresholds is None and top_k is None:
            raise ValueError("search requires thresholds, top_k or both. Received: neither.")
        request = SearchRequest(
            queries=(vectors := unit_vectors("queries", queries, self.dimension)),
            thresholds=check_thresholds(thresholds, len(vectors)),
            top_k=top_k if top_k is None else check_positive("top_k", top_k),
            limit=check_positive("limit", limit),
        )
        if not len(request) or not len(self):
            return empty(len(request), request.thresholds, self.ids.dtype)
        return self._search(request)

    def probe(self, queries: np.ndarray, size: int) -> RangeResult:
        """The best `size` items of checked queries [B, n], or most of them if that is cheaper."""
        return self.search(queries, top_k=size, limit=size)

    def extend(
        self, queries: np.ndarray, thresholds: np.ndarray, probe: RangeResult, limit: int
    ) -> tuple[np.ndarray, RangeResult]:
        """Searches again where a probe of checked queries [B, n] misses items above thresholds [B].

        Returns:
          The rows that were searched, ascending, and what `search` finds for them.
        """
        rows = np.flatnonzero(self._too_short(probe, thresholds))
        if not len(rows):
            return rows, take_rows(probe, rows)
        return rows, self.search(queries[rows], thresholds[rows], limit=limit)

    def _too_short(self, probe: RangeResult, thresholds: np.ndarray) -> np.ndarray:
        """[B] whether items beyond the end of a probe may lie above thresholds [B]."""
        last = probe.scores[probe.row_splits[1:] - 1]
        return (thresholds < last) & (probe.counts < len(self))


def check_thresholds(thresholds: Any, count: int) -> np.ndarray:
    """Thresholds as float32 [count]; -inf where every cosine passes."""
    if thresholds is None:
        return np.full(count, -np.inf, np.float32)
    # A copy, because the result keeps it and the caller may change its own array.
    thresholds = np.array(thresholds, np.float32)
    if thresholds.ndim == 0:
        thresholds = np.full(count, thresholds)
    if thresholds.shape != (count,):
        raise ValueError(
            f"thresholds must be one number or {count}, one per query. "
            f"Received: shape {thresholds.shape}."
        )
    if (thresholds > -1).all():
        return thresholds
    reject_rows("thresholds", "be numbers", np.isnan(thresholds))
    return np.where(thresholds <= -1, np.float32(-np.inf), thresholds)


def check_positive(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1. Received: {value!r}.")
    return int(value)
