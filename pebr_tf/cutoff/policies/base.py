"""The interface of a policy: a score with one cut-off. An item is retrieved iff score >= cut-off.

A policy is used in three ways, and all three give the same lists: `lists` scores candidates that
were compared with the whole catalogue, `search` asks an index, and `threshold` is the cosine where
a list ends, for policies that know it before the search.

Scores never rise along a query's ranking, so that `pebr_tf.metrics` can compare policies at an
equal average number of items.
"""

import abc
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.distributions.logit import Family
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.retrieval import RangeResult, Searcher
from pebr_tf.retrieval.encoded import EncodedQueries
from pebr_tf.retrieval.result import assemble, take_rows


@dataclass(frozen=True, kw_only=True)
class Policy(abc.ABC):
    """A rule that ends lists, with everything it learned.

    Attributes:
      family: Logit that the towers were trained with; see `pebr_tf.distributions.logit`.
      floor: Least number of items of a query.
    """

    # Whether a list is everything at or above one cosine, or ends by rank or mass.
    ends_at_cosine: ClassVar[bool] = True
    # Where levels and laws come from: a small search, or the items that the query model holds.
    level_source: ClassVar[str] = "sample"

    family: Family = "beta"
    floor: int = 1

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Identifies the policy in the configuration and in evaluation.json."""

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """Shown to readers."""

    @abc.abstractmethod
    def scores(self, candidates: Candidates) -> np.ndarray:
        """[Q, M] float32 scores before `offsets`; -inf where a row has no candidate."""

    def offsets(self, candidates: Candidates) -> np.ndarray | None:
        """[Q] numbers to subtract from the scores, or None for 0."""
        return None

    def applies_to(self, candidates: Candidates) -> bool:
        """Whether the candidates have everything that `scores` needs."""
        return True

    def lists(self, candidates: Candidates) -> RankedLists:
        """The candidates, scored by this policy."""
        return RankedLists(
            self.scores(candidates),
            candidates.relevant,
            candidates.totals,
            self.offsets(candidates),
        )

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        """[B] cosines where lists end, or None if that is unknown before the search.

        Cut-offs are [B]; `encoded` has tau, level, alpha and beta as `EncodedQueries` has. A cosine
        above 1 means that no item passes. Works eagerly and in a graph.
        """
        return None

    def search(
        self,
        searcher: Searcher,
        encoded: EncodedQueries,
        cutoffs: np.ndarray,
        limits: int | np.ndarray,
    ) -> tuple[RangeResult, np.ndarray]:
        """The items of each query whose score is at least its cut-off, and at least the floor.

        Also the levels [B] that ended the lists; the query model's for policies that use none.
        `cutoffs` [B] are float32. `limits`, [B] or one number, are the most items of a query: a
        list that its limit shortens is marked as `truncated`.
        """
        items, levels = self._search(searcher, encoded, cutoffs, int(np.max(limits, initial=1)))
        return items.limited(limits), levels

    def _search(
        self, searcher: Searcher, encoded: EncodedQueries, cutoffs: np.ndarray, limit: int
    ) -> tuple[RangeResult, np.ndarray]:
        """Items with one limit and the floor, and levels [B]."""
        items = self._search_without_floor(searcher, encoded, cutoffs, limit)
        return _with_floor(searcher, encoded, items, self.floor), encoded.level

    def _search_without_floor(
        self, searcher: Searcher, encoded: EncodedQueries, cutoffs: np.ndarray, limit: int
    ) -> RangeResult:
        thresholds = self.threshold(tf.constant(cutoffs, tf.float32), encoded)
        if thresholds is None:
            raise NotImplementedError(f"{self.name} is evaluated only; no release serves it.")
        return searcher.search(encoded.embedding, np.asarray(thresholds), limit=limit)


def _with_floor(
    searcher: Searcher, encoded: EncodedQueries, items: RangeResult, floor: int
) -> RangeResult:
    """The same items, but the best `floor` items for queries that have fewer."""
    short = items.counts < min(floor, len(searcher))
    if not short.any():
        return items
    rows, others = np.flatnonzero(short), np.flatnonzero(~short)
    best = searcher.search(encoded.embedding[rows], top_k=floor, limit=floor)
    best = replace(best, thresholds=best.scores[best.row_splits[1:] - 1])
    return assemble([(others, take_rows(items, others)), (rows, best)])
