"""Precision and recall of lists of different lengths, at an equal average number of items.

Every policy is a score and one cut-off for all queries: an item is retrieved iff its score is at
least the cut-off. The fixed number is the score -rank, one cosine for all is the cosine itself, the
level is logit - level. Policies compare on one footing: each gets the cut-off with which it
retrieves the same number of items on average.

Scores fall with the rank, so the length of a list is found by bisection in its row, and the number
of relevant items in it by comparing that length with the ranks of the relevant items.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Figures:
    """Precision and recall of Q lists. Macro is the mean over queries, micro is over all items.

    Attributes:
      precision: Macro; an empty list counts 0.
      recall: Macro.
      micro_precision: 0 if nothing is retrieved.
      micro_recall: Over all relevant items.
      counts: [Q] items of each query.
    """

    precision: float
    recall: float
    micro_precision: float
    micro_recall: float
    counts: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray, hits: np.ndarray, totals: np.ndarray) -> Figures:
        """Computes the figures of lists of `counts` [Q] items, of which `hits` [Q] are relevant.

        `totals` [Q] are the relevant items of each query, at least 1. Without a query, all are 0.
        """
        queries = max(len(counts), 1)
        return cls(
            precision=float(np.sum(hits / np.maximum(counts, 1)) / queries),
            recall=float(np.sum(hits / totals) / queries),
            micro_precision=float(hits.sum() / max(counts.sum(), 1)),
            micro_recall=float(hits.sum() / max(totals.sum(), 1)),
            counts=counts,
        )

    @property
    def average(self) -> float:
        """Items per query."""
        return float(self.counts.sum() / max(len(self.counts), 1))

    @property
    def empty(self) -> float:
        """Share of queries without an item."""
        return float(np.sum(self.counts == 0) / max(len(self.counts), 1))


@dataclass(frozen=True)
class Ranks:
    """Ranks of some items.

    Attributes:
      rows: [P] the query of each item.
      ranks: [P] from 0, the best; at least the row's length for an item that is not a candidate.
    """

    rows: np.ndarray
    ranks: np.ndarray

    def before(self, counts: np.ndarray) -> np.ndarray:
        """[Q] how many of the items are among the first `counts` [Q] of their row."""
        inside = self.ranks < counts[self.rows]
        return np.bincount(self.rows[inside], minlength=len(counts))

    def part(self, queries: np.ndarray) -> Ranks:
        """The items of the queries where `queries` [Q] is true, numbered among these."""
        inside = queries[self.rows]
        return Ranks((np.cumsum(queries) - 1)[self.rows[inside]], self.ranks[inside])


@dataclass(frozen=True)
class RankedLists:
    """Candidates of Q queries, best first.

    Attributes:
      scores: [Q, M] float32, not rising along a row; -inf where a row has fewer candidates.
      relevant: The relevant candidates.
      totals: [Q] relevant items of each query, at least 1, including those that are not candidates.
      offsets: [Q] float32 subtracted from the scores, or None for 0. Policies that differ by one
        number per query share one array of scores.
      lengths: [Q] candidates of each query.
    """

    scores: np.ndarray
    relevant: Ranks
    totals: np.ndarray
    offsets: np.ndarray | None = None
    lengths: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or self.scores.shape[:1] != self.totals.shape:
            raise ValueError(
                "scores must be [Q, M] and totals [Q]. Received: "
                f"{self.scores.shape} and {self.totals.shape}."
            )
        # NaN compares false, so this check rejects it as well.
        if (
            not (self.scores[:, 1:] <= self.scores[:, :-1]).all()
            or np.isnan(self.scores[:, 0]).any()
        ):
            raise ValueError("scores must be numbers that never rise in a row.")
        object.__setattr__(self, "scores", self.scores.astype(np.float32, copy=False))
        if self.offsets is not None and (
            self.offsets.shape != self.totals.shape or not np.isfinite(self.offsets).all()
        ):
            raise ValueError(
                f"offsets must be {len(self)} finite numbers. Received: {self.offsets.shape}."
            )
        nothing, everything = (np.full(len(self), size) for size in (0, self.scores.shape[1]))
        lowest = float(np.finfo(np.float32).min)
        object.__setattr__(self, "lengths", self._bisect(lowest, nothing, everything))
        if (self.totals < np.maximum(self.hits(self.lengths), 1)).any():
            raise ValueError(
                "totals must be at least 1 and at least the relevant candidates of a query."
            )

    def __len__(self) -> int:
        return len(self.scores)

    def at(self, rows: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """[P] float32 scores of items at `ranks` [P] of queries `rows` [P]."""
        scores: np.ndarray = self.scores[rows, ranks]
        if self.offsets is None:
            return scores
        return scores - self.offsets[rows].astype(np.float32, copy=False)

    def counts_at(self, cutoff: float | np.ndarray) -> np.ndarray:
        """[Q] items that score at least `cutoff`, one number or [Q]."""
        return self._bisect(cutoff, np.zeros_like(self.lengths), self.lengths)

    def _bisect(
        self, cutoff: float | np.ndarray, least: np.ndarray, most: np.ndarray
    ) -> np.ndarray:
        """[Q] items that score at least `cutoff`, known to be from `least` [Q] to `most` [Q]."""
        cutoffs = np.broadcast_to(np.asarray(cutoff, np.float32), self.totals.shape)
        low, high = least.astype(np.int64), most.astype(np.int64)
        while len(rows := np.flatnonzero(low < high)):
            middle = (low[rows] + high[rows]) // 2
            passed = self.at(rows, middle) >= cutoffs[rows]
            low[rows[passed]] = middle[passed] + 1
            high[rows[~passed]] = middle[~passed]
        return low

    def hits(self, counts: np.ndarray) -> np.ndarray:
        """[Q] relevant items among the first `counts` [Q]."""
        return self.relevant.before(np.minimum(counts, self.lengths))

    def shares(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[Q] precision and [Q] recall of lists of `counts` [Q] items."""
        hits = self.hits(counts)
        return hits / np.maximum(counts, 1), hits / self.totals

    def figures(self, counts: np.ndarray, queries: np.ndarray | None = None) -> Figures:
        """Figures of lists of `counts` [Q] items, of all queries or where `queries` [Q] is true."""
        hits, totals = self.hits(counts), self.totals
        if queries is not None:
            counts, hits, totals = counts[queries], hits[queries], totals[queries]
        return Figures.of(counts, hits, totals)

    def cutoff_at(self, average: float, floor: int = 0) -> float:
        """The lowest cut-off that retrieves at most `average` items per query on average.

        It is infinity if even the best scores are too many: items of equal score come together.
        Every query gets `floor` items, whatever the cut-off.
        """
        if not average > 0:
            raise ValueError(f"average must be above 0. Received: {average}.")
        allowed = int(np.floor(average * len(self) + 1e-9))
        least = np.minimum(floor, self.lengths)
        few, many = np.zeros_like(self.lengths), self.lengths
        low, high = _key(-np.inf), _key(np.inf)
        # Bisection over the ordered float32 numbers themselves, so that it is exact.
        while low < high:
            middle = (low + high) // 2
            counts = self._bisect(_number(middle), few, many)
            if np.maximum(counts, least).sum() <= allowed:
                few, high = counts, middle
            else:
                many, low = counts, middle + 1
        some = np.flatnonzero(few)
        return float(self.at(some, few[some] - 1).min(initial=np.inf))

    def part(self, queries: np.ndarray) -> RankedLists:
        """The lists of the queries where `queries` [Q] is true."""
        offsets = None if self.offsets is None else self.offsets[queries]
        relevant = self.relevant.part(queries)
        return RankedLists(self.scores[queries], relevant, self.totals[queries], offsets)

    def shifted(self, offsets: np.ndarray) -> RankedLists:
        """The same lists with `offsets` [Q] subtracted from the scores."""
        if not np.any(offsets):
            return self
        before = 0 if self.offsets is None else self.offsets
        return RankedLists(self.scores, self.relevant, self.totals, before + offsets)

    def fixed(self, queries: np.ndarray, count: int) -> RankedLists:
        """The same lists, but the first `count` candidates where `queries` [Q] is true.

        Those score as the best of all lists do, so that a cut-off keeps them together.
        """
        if not queries.any():
            return self
        best = self.at(np.arange(len(self)), np.zeros(len(self), np.int64)).max()
        offsets = 0 if self.offsets is None else self.offsets[queries, None]
        scores = self.scores.copy()
        scores[queries] = np.where(scores[queries] > -np.inf, best + offsets, -np.inf)
        scores[queries, count:] = -np.inf
        return RankedLists(scores, self.relevant, self.totals, self.offsets)

    def head(self, limit: int) -> RankedLists:
        return RankedLists(self.scores[:, :limit], self.relevant, self.totals, self.offsets)


def top_k_for(lists: RankedLists, recall: float) -> int | None:
    """The least number of items per query with which equal lists reach a macro recall, or None."""
    rows, ranks = lists.relevant.rows, lists.relevant.ranks
    found = ranks < lists.lengths[rows]
    rows, ranks = rows[found], ranks[found]
    order = np.argsort(ranks, kind="stable")
    reached = np.cumsum(1 / lists.totals[rows[order]]) / max(len(lists), 1)
    # Sums such as ten tenths are inexact in their last bits.
    place = int(np.searchsorted(reached, recall - 1e-12))
    return int(ranks[order][place]) + 1 if place < len(order) else None


def _key(number: float) -> int:
    """The position of a float32 in the order of all float32 numbers."""
    bits = int(np.float32(number).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _number(key: int) -> float:
    number = float(np.int32(abs(key)).view(np.float32))
    return number if key >= 0 else -number
