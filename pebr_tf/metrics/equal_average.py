"""Precision and recall of lists of different lengths, at an equal average number of items.

Every way to end a list is a score and one cut-off for all queries: an item is retrieved iff its
score is at least the cut-off. The fixed number is the score -rank, one cosine for all is the cosine
itself, the level is logit - level. So all ways compare on one footing: each gets the cut-off with
which it retrieves the same number of items on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lists:
    """Candidates of Q queries, scored by one way to end a list.

    Attributes:
      scores: [Q, M]; -inf where a row has fewer candidates, which are never retrieved.
      relevant: [Q, M] bool, whether a candidate is relevant.
      totals: [Q] relevant items of each query, at least 1; those that are no candidates included.
    """

    scores: np.ndarray
    relevant: np.ndarray
    totals: np.ndarray

    def __post_init__(self) -> None:
        if self.scores.shape != self.relevant.shape or self.scores.shape[:1] != self.totals.shape:
            raise ValueError(
                "scores and relevant must be [Q, M] and totals [Q]. Received: "
                f"{self.scores.shape}, {self.relevant.shape} and {self.totals.shape}."
            )
        if np.isnan(self.scores).any():
            raise ValueError("scores must be numbers. Received: NaN.")
        if (self.totals < np.maximum(self.relevant.sum(axis=1), 1)).any():
            raise ValueError(
                "totals must be at least 1 and at least the relevant candidates of a query."
            )

    def part(self, queries: np.ndarray) -> Lists:
        """The lists of some queries."""
        return Lists(self.scores[queries], self.relevant[queries], self.totals[queries])


@dataclass(frozen=True)
class Figures:
    """What a cut-off gives. Macro is the mean over queries, micro is over all items.

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
        """From the items [Q], the relevant among them [Q] and all that are relevant [Q].

        Without a query every figure is 0.
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
        """Items of a query on average."""
        return float(self.counts.sum() / max(len(self.counts), 1))

    @property
    def empty(self) -> float:
        """Share of queries that get nothing."""
        return float(np.sum(self.counts == 0) / max(len(self.counts), 1))


def cutoff_at(lists: Lists, average: float) -> float:
    """The lowest cut-off that retrieves at most `average` items a query on average.

    Infinity if even the best scores are too many, for all that are equal come together.
    """
    if not average > 0:
        raise ValueError(f"average must be above 0. Received: {average}.")
    candidates = lists.scores[lists.scores > -np.inf]
    allowed = int(np.floor(average * len(lists.scores) + 1e-9))
    if allowed >= len(candidates):
        return float(candidates.min(initial=np.inf))
    # One more than allowed: what is strictly above it fits.
    first_out = np.partition(candidates, len(candidates) - allowed - 1)[-allowed - 1]
    return float(candidates[candidates > first_out].min(initial=np.inf))


def evaluate(lists: Lists, cutoff: float) -> Figures:
    """Precision and recall of what scores at least `cutoff`."""
    retrieved = (lists.scores >= cutoff) & (lists.scores > -np.inf)
    counts = retrieved.sum(axis=1)
    hits = (retrieved & lists.relevant).sum(axis=1)
    return Figures.of(counts, hits, lists.totals)
