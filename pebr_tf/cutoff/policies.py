"""Ways to end a list, each as a score with one cut-off: an item is retrieved iff score >= c.

    top_k       -rank: the same number of items for every query
    score       the cosine
    gap         the cosine less that of the query's best item
    cdf         literal pEBR: the logarithm of the query's law at the cosine, log z / tau (Beta),
                (s - 1) / tau (exponential)
    level       logit - level_q(T), the level measured over the corpus
    level_head  the same with the level that the head predicts from the query alone
    nucleus     log of the softmax mass from the item on: a list is the smallest prefix whose mass
                reaches a share
    adapter     a_q * cosine + b_q, learnt from clicks; see `adapter`
    oracle      knows the relevant items; see `oracle`

All fall along a query's ranking, so `pebr_tf.metrics` compares them at an equal average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.adapter import CosineAdapter
from pebr_tf.cutoff.candidates import ROWS, Candidates
from pebr_tf.cutoff.oracle import oracle_scores
from pebr_tf.distributions.logit import relevance_logit
from pebr_tf.metrics.ranked import RankedLists

POLICIES = (
    "level",
    "level_head",
    "top_k",
    "score",
    "gap",
    "cdf",
    "nucleus",
    "adapter",
    "oracle",
)
_TITLES = {
    "top_k": "top k",
    "score": "one cosine for all",
    "gap": "gap to the best cosine",
    "cdf": "literal pEBR (CDF)",
    "nucleus": "nucleus",
    "adapter": "cosine adapter",
    "oracle": "oracle",
}


@dataclass(frozen=True)
class Policies:
    """The ways to end a list, with what was learnt for them.

    Attributes:
      temper: T of the level.
      adapter: The fitted adapter; None: there is no `adapter`.
    """

    temper: float
    adapter: CosineAdapter | None = None

    def names(self, candidates: Candidates) -> tuple[str, ...]:
        """Those that can score these candidates, ours first."""
        missing = {"level_head": candidates.head_levels is None, "adapter": self.adapter is None}
        return tuple(name for name in POLICIES if not missing.get(name, False))

    def title(self, name: str) -> str:
        """What a reader sees."""
        if name in ("level", "level_head"):
            place = " from the head" if name == "level_head" else ""
            return f"level{place}, T = {self.temper:g}"
        return _TITLES[name]

    def lists(self, name: str, candidates: Candidates) -> RankedLists:
        """The candidates scored by a policy.

        Raises:
          ValueError: An unknown policy, or one that lacks what it needs.
        """
        names = self.names(candidates)
        if name not in names:
            raise ValueError(f"policy must be one of {', '.join(names)}. Received: {name!r}.")
        scores, offsets = self._scores(name, candidates)
        return RankedLists(scores, candidates.relevant, candidates.totals, offsets)

    def _scores(self, name: str, candidates: Candidates) -> tuple[np.ndarray, np.ndarray | None]:
        """[Q, M] scores, -inf where there is no candidate, and [Q] what to take off."""
        cosines, tau = candidates.cosines, candidates.tau
        if name == "level":
            return candidates.logits, candidates.levels[self.temper]
        if name == "level_head":
            return candidates.logits, candidates.head_levels
        if name == "cdf":
            top = relevance_logit(tf.ones_like(tau), tau, candidates.family)
            return candidates.logits, top.numpy()
        if name == "score":
            return cosines, None
        if name == "gap":
            return cosines, _best(candidates)
        if name == "oracle":
            return oracle_scores(candidates.relevant, candidates.totals, candidates.depth), None
        if name == "nucleus":
            return _nucleus(candidates), None
        if name == "adapter":
            return _adapted(candidates, self.adapter), None
        ranks = np.arange(candidates.depth, dtype=np.float32)
        return np.where(cosines == -np.inf, cosines, -ranks), None


def _best(candidates: Candidates) -> np.ndarray:
    """[Q] cosines of the best; 0 for a query without a candidate."""
    best = candidates.cosines[:, 0]
    return np.where(best == -np.inf, np.float32(0), best)


def _adapted(candidates: Candidates, adapter: CosineAdapter | None) -> np.ndarray:
    """[Q, M] logits of the adapter."""
    assert adapter is not None
    slope, offset = adapter(tf.constant(candidates.queries.vectors))
    scores: np.ndarray = candidates.cosines * slope.numpy()[:, None]
    scores += offset.numpy()[:, None]
    return scores


def _nucleus(candidates: Candidates) -> np.ndarray:
    """[Q, M] log of the share of the softmax mass that an item and all below it have.

    Counted from the end, for 1 less the mass before an item loses its digits there.
    """
    level = candidates.levels[1.0].astype(np.float64)[:, None]
    scores = np.empty_like(candidates.logits)
    for begin in range(0, len(scores), ROWS):
        part = slice(begin, begin + ROWS)
        shares = np.exp(candidates.logits[part] - level[part]) / candidates.corpus_size
        beyond = np.maximum(1 - shares.sum(axis=1, keepdims=True), 0)
        mass = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1] + beyond
        scores[part] = np.log(np.maximum(mass, np.finfo(np.float32).tiny))
    scores[candidates.cosines == -np.inf] = -np.inf
    return scores
