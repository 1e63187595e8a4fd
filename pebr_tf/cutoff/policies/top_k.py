"""The same number of items for every query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
