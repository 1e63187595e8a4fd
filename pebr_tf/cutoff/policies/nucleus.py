"""The nucleus: the smallest prefix whose softmax mass reaches a share."""

from dataclasses import dataclass, replace

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.candidates import ROWS, Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions.level_numpy import logits_of
from pebr_tf.retrieval import RangeResult, Searcher
from pebr_tf.retrieval.encoded import EncodedQueries
from pebr_tf.retrieval.level import LevelCut, search_by_level


@dataclass(frozen=True, kw_only=True)
class NucleusPolicy(Policy):
    """score = log of the share of the softmax mass that an item and all items below it have.

    Attributes:
      probe_size: Items of the small search that gives the normaliser, the level at T = 1.
    """

    name = "nucleus"
    title = "nucleus"
    ends_at_cosine = False

    probe_size: int = Cutoff.probe_size

    def scores(self, candidates: Candidates) -> np.ndarray:
        level = candidates.levels[1.0].astype(np.float64)[:, None]
        scores = np.empty_like(candidates.logits)
        for begin in range(0, len(scores), ROWS):
            part = slice(begin, begin + ROWS)
            shares = np.exp(candidates.logits[part] - level[part]) / candidates.corpus_size
            # Summed from the end: 1 minus the mass before an item loses its digits there.
            beyond = np.maximum(1 - shares.sum(axis=1, keepdims=True), 0)
            mass = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1] + beyond
            scores[part] = np.log(np.maximum(mass, np.finfo(np.float32).tiny))
        scores[candidates.cosines == -np.inf] = -np.inf
        return scores

    def _search_without_floor(
        self, searcher: Searcher, encoded: EncodedQueries, cutoffs: np.ndarray, limit: int
    ) -> RangeResult:
        # No item reaches an infinite cut-off: this search gives the level only.
        size = max(self.probe_size, self.floor)
        cut = LevelCut(np.inf, 1.0, self.family, size, self.floor)
        level = search_by_level(searcher, encoded.embedding, encoded.tau, cut).levels
        found = searcher.search(encoded.embedding, top_k=limit, limit=limit)
        rows = found.rows()
        scores, tau = found.scores.astype(np.float64), encoded.tau[rows].astype(np.float64)
        logits = logits_of(scores[:, None], tau, self.family)[:, 0]
        mass = np.exp(logits - level[rows]) / max(len(searcher), 1)
        total = np.concatenate([[0.0], np.cumsum(mass)])
        before = total[:-1] - np.repeat(total[found.row_splits[:-1]], found.counts)
        # 1 - mass >= exp(cutoff) needs no logarithm of 0.
        kept = found.keep(1 - before >= np.exp(cutoffs[rows]))
        full = (kept.counts == found.counts) & (found.counts < len(searcher))
        return replace(kept, truncated=full)
