"""Policies that learn nothing: a number of items, a cosine, a distance to the best cosine."""

from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.retrieval import RangeResult, Searcher
from pebr_tf.retrieval.encoded import EncodedQueries


class TopKPolicy(Policy):
    """score = -rank, with ranks from 0: a cut-off of 1 - k keeps k items."""

    name = "top_k"
    title = "top k"
    ends_at_cosine = False

    def scores(self, candidates: Candidates) -> np.ndarray:
        ranks = np.arange(candidates.depth, dtype=np.float32)
        return np.where(candidates.cosines == -np.inf, candidates.cosines, -ranks)

    def _search_without_floor(
        self, searcher: Searcher, encoded: EncodedQueries, cutoffs: np.ndarray, limit: int
    ) -> RangeResult:
        wanted = np.floor(-cutoffs).astype(np.int64) + 1
        longest = max(int(wanted.max(initial=1)), 1)
        found = searcher.search(encoded.embedding, top_k=longest, limit=limit)
        kept = found.head(np.maximum(wanted, 0))
        return replace(kept, truncated=np.minimum(wanted, len(searcher)) > limit)


class ScorePolicy(Policy):
    """score = cosine."""

    name = "score"
    title = "one cosine for all"

    def scores(self, candidates: Candidates) -> np.ndarray:
        return candidates.cosines

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        return cutoffs


class GapPolicy(Policy):
    """score = cosine - cosine of the query's best item."""

    name = "gap"
    title = "gap to the best cosine"

    def scores(self, candidates: Candidates) -> np.ndarray:
        return candidates.cosines

    def offsets(self, candidates: Candidates) -> np.ndarray | None:
        best = candidates.cosines[:, 0]
        return np.where(best == -np.inf, np.float32(0), best)

    def _search_without_floor(
        self, searcher: Searcher, encoded: EncodedQueries, cutoffs: np.ndarray, limit: int
    ) -> RangeResult:
        best = searcher.search(encoded.embedding, top_k=1)
        if not len(best.scores):
            return best
        return searcher.search(encoded.embedding, best.scores + cutoffs, limit=limit)
