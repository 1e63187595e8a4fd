"""Lists whose scores fall with the rank, which makes every cut-off a few binary searches.

`Lists` holds scores in any order and looks at all of them for each cut-off. A score that is
monotone in the cosine needs less: how many items a query gets is found by bisection in its row, and
how many of them are relevant by comparing that number with the ranks of the relevant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pebr_tf.metrics.equal_average import Figures, Lists


@dataclass(frozen=True)
class Ranks:
    """Places of some items in the rows of a ranking.

    Attributes:
      rows: [P] the query of each.
      ranks: [P] from 0, the best; the row's length or more for one that is no candidate.
    """

    rows: np.ndarray
    ranks: np.ndarray

    def before(self, counts: np.ndarray) -> np.ndarray:
        """[Q] how many are among the first `counts` [Q] of their row."""
        inside = self.ranks < counts[self.rows]
        return np.bincount(self.rows[inside], minlength=len(counts))


@dataclass(frozen=True)
class RankedLists:
    """Candidates of Q queries, best first.

    Attributes:
      scores: [Q, M] float32 that never rise in a row; -inf where a row has fewer candidates.
        With `offsets`, these are taken off: policies that differ in a number a query share one
        array.
      relevant: The relevant candidates.
      totals: [Q] relevant items of each query, at least 1; those that are no candidates included.
      offsets: [Q] float32, or None for 0.
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
        # NaN compares false, so this refuses it as well.
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

    def figures(self, counts: np.ndarray, queries: np.ndarray | None = None) -> Figures:
        """What lists of `counts` [Q] items give, for all queries or where `queries` [Q] is true."""
        hits, totals = self.hits(counts), self.totals
        if queries is not None:
            counts, hits, totals = counts[queries], hits[queries], totals[queries]
        return Figures.of(counts, hits, totals)

    def cutoff_at(self, average: float, floor: int = 0) -> float:
        """The lowest cut-off that retrieves at most `average` items a query on average.

        Infinity if even the best scores are too many, for all that are equal come together.

        Args:
          average: Items, above 0.
          floor: Items that a query gets whatever the cut-off.
        """
        if not average > 0:
            raise ValueError(f"average must be above 0. Received: {average}.")
        allowed = int(np.floor(average * len(self) + 1e-9))
        least = np.minimum(floor, self.lengths)
        few, many = np.zeros_like(self.lengths), self.lengths
        low, high = _key(-np.inf), _key(np.inf)
        # Every float32 has its place among the whole numbers, so that the bisection is exact.
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
        place = np.cumsum(queries) - 1
        inside = queries[self.relevant.rows]
        ranks = Ranks(place[self.relevant.rows[inside]], self.relevant.ranks[inside])
        offsets = None if self.offsets is None else self.offsets[queries]
        return RankedLists(self.scores[queries], ranks, self.totals[queries], offsets)

    def head(self, limit: int) -> RankedLists:
        """The first `limit` candidates of each query."""
        return RankedLists(self.scores[:, :limit], self.relevant, self.totals, self.offsets)

    def unranked(self) -> Lists:
        """The same in the general form."""
        relevant = np.zeros(self.scores.shape, bool)
        inside = self.relevant.ranks < self.lengths[self.relevant.rows]
        relevant[self.relevant.rows[inside], self.relevant.ranks[inside]] = True
        scores = self.scores
        if self.offsets is not None:
            scores = scores - self.offsets[:, None].astype(np.float32)
        return Lists(scores, relevant, self.totals)


def summary(figures: Figures, capped: np.ndarray) -> Mapping[str, Any]:
    """Figures as plain numbers, with how many items the queries get.

    Args:
      figures: Of Q queries; without a query, all numbers are 0.
      capped: [Q] whether a query's list was cut by the limit.
    """
    counts = figures.counts
    numbers = {
        "precision": figures.precision,
        "recall": figures.recall,
        "micro_precision": figures.micro_precision,
        "micro_recall": figures.micro_recall,
        "average": figures.average,
        "empty": figures.empty,
        "capped": float(capped.mean()) if len(counts) else 0.0,
    }
    for percent in (10, 50, 90, 99):
        # A number of items that some query has, not one between two queries.
        place = np.percentile(counts, percent, method="lower") if len(counts) else 0
        numbers[f"p{percent}"] = int(place)
    return numbers


def _key(number: float) -> int:
    """The place of a float32 in the order of all."""
    bits = int(np.float32(number).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _number(key: int) -> float:
    """The float32 at a place."""
    number = float(np.int32(abs(key)).view(np.float32))
    return number if key >= 0 else -number
