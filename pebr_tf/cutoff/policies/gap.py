"""The distance to the query's best item."""

from __future__ import annotations

import numpy as np

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.retrieval import RangeResult, Searcher
from pebr_tf.retrieval.encoded import EncodedQueries


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
