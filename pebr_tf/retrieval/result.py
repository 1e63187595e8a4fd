"""Results of different lengths, one after another in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class RangeResult:
    """The items of B queries; those of query i are at row_splits[i] to row_splits[i + 1].

    Attributes:
      row_splits: [B + 1] int64, from 0 to M.
      item_ids: [M] ids of the items, in the dtype of the index: int64 or text.
      scores: [M] float32 cosines, descending in a row; of equal ones the smaller id first.
      thresholds: [B] float32 cosine at which each list ends.
      expected_counts: [B] float32 number of items that the index predicted before it searched.
      truncated: [B] bool, true where a limit on results or on work may have cut the list.
    """

    row_splits: np.ndarray
    item_ids: np.ndarray
    scores: np.ndarray
    thresholds: np.ndarray
    expected_counts: np.ndarray
    truncated: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """[B] number of items of each query."""
        return self.row_splits[1:] - self.row_splits[:-1]

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def row(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """The item ids and scores of one query."""
        begin, end = self.row_splits[index], self.row_splits[index + 1]
        return self.item_ids[begin:end], self.scores[begin:end]

    def rows(self) -> np.ndarray:
        """[M] index of the query that each item belongs to."""
        return np.repeat(np.arange(len(self)), self.counts)

    def keep(self, mask: np.ndarray) -> RangeResult:
        """Only the items where `mask` [M] is true."""
        kept = np.concatenate([[0], np.cumsum(mask)])[self.row_splits]
        return replace(
            self, row_splits=kept, item_ids=self.item_ids[mask], scores=self.scores[mask]
        )

    def head(self, limit: int | np.ndarray) -> RangeResult:
        """The first `limit` items of each query: one number, or [B]."""
        if not len(self) or np.all(self.counts <= limit):
            return self
        rank = np.arange(len(self.scores)) - np.repeat(self.row_splits[:-1], self.counts)
        return self.keep(rank < np.repeat(np.broadcast_to(limit, len(self)), self.counts))

    def limited(self, limit: int | np.ndarray) -> RangeResult:
        """The same as `head`; queries that lose items are marked as truncated."""
        return replace(self.head(limit), truncated=self.truncated | (self.counts > limit))

    def between(self, begin: int, end: int) -> RangeResult:
        """The results of queries `begin` to `end` - 1; shares memory with this one."""
        rows, first, last = slice(begin, end), self.row_splits[begin], self.row_splits[end]
        return RangeResult(
            self.row_splits[begin : end + 1] - first,
            self.item_ids[first:last],
            self.scores[first:last],
            self.thresholds[rows],
            self.expected_counts[rows],
            self.truncated[rows],
        )


def splits_of(counts: np.ndarray) -> np.ndarray:
    """Row splits [B + 1] of counts [B]."""
    splits = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=splits[1:])
    return splits


def ranked(
    rows: np.ndarray, item_ids: np.ndarray, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ids and scores ordered by row, then score descending, then id ascending."""
    order = np.lexsort((item_ids, -scores, rows))
    return item_ids[order], scores[order]


def empty(size: int, thresholds: np.ndarray, id_dtype: np.dtype) -> RangeResult:
    return RangeResult(
        row_splits=np.zeros(size + 1, np.int64),
        item_ids=np.empty(0, id_dtype),
        scores=np.empty(0, np.float32),
        thresholds=thresholds,
        expected_counts=np.zeros(size, np.float32),
        truncated=np.zeros(size, bool),
    )


def concatenate(results: Sequence[RangeResult]) -> RangeResult:
    """Joins the results of several batches of queries, in their order."""
    if len(results) == 1:
        return results[0]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(result, name) for result in results])

    names = ("item_ids", "scores", "thresholds", "expected_counts", "truncated")
    return RangeResult(splits_of(joined("counts")), *map(joined, names))


def assemble(parts: Sequence[tuple[np.ndarray, RangeResult]]) -> RangeResult:
    """Joins the results of several groups of queries, in the order of the queries.

    Args:
      parts: Pairs of query indices [B_i] and a result of B_i queries; together every index once.
    """
    indices = np.concatenate([rows for rows, _ in parts])
    return take_rows(concatenate([result for _, result in parts]), np.argsort(indices))


def take_rows(result: RangeResult, rows: np.ndarray) -> RangeResult:
    """The results at `rows`, in the order of `rows`."""
    counts = result.counts[rows]
    splits = splits_of(counts)
    positions = np.arange(splits[-1]) + np.repeat(result.row_splits[rows] - splits[:-1], counts)
    return replace(
        result,
        row_splits=splits,
        item_ids=result.item_ids[positions],
        scores=result.scores[positions],
        thresholds=result.thresholds[rows],
        expected_counts=result.expected_counts[rows],
        truncated=result.truncated[rows],
    )
