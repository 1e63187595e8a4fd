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

Experiments compare with more, which no release serves:

    cdf_pdf        literal pEBR by the pdf convention, (1 + 1 / tau) * log z
    corpus_law     log odds of the law over the corpus' own background; see `corpus_law`
    fitted_law     log odds of a law that was fitted to clicks; see `fitted_law`
    depth_law      log of the recall that an item buys, by a learnt law; see `depth_law`
    rank_quantile  minus the share of clicks down to the rank, by boosted trees; see `rank_quantile`

All fall along a query's ranking, so `pebr_tf.metrics` compares them at an equal average.

*Conventions.* `cdf` is Beta(1 / tau, 1), the paper's; `cdf_pdf` is Beta(1 + 1 / tau, 1), what the
loss trains over a uniform background. They end a list at log z = c * tau and at
log z = c * tau / (1 + tau). For queries of equal tau they are one policy. Otherwise they differ at
an equal average: against a query of tau near 0, the pdf convention moves the end of a list by a
factor 1 / (1 + tau) in log z, 5% at tau = .05. The exponential law has no such choice: its density
is exp(s / tau) in both, and what `cdf` leaves out of its logarithm, log(1 - exp(-2 z / tau)), is
below 1e-4 where z >= 5 tau.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.adapter import CosineAdapter, adapter_scores
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.corpus_law import CorpusLaw
from pebr_tf.cutoff.depth_law import DepthLaw
from pebr_tf.cutoff.fitted_law import fitted_law_scores
from pebr_tf.cutoff.nucleus import nucleus_scores
from pebr_tf.cutoff.oracle import oracle_scores
from pebr_tf.cutoff.rank_quantile import RankQuantile
from pebr_tf.distributions.logit import relevance_logit
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.models.law_head import LawHead

# What an evaluation has.
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
# What experiments add, before the oracle.
BASELINES = ("cdf_pdf", "corpus_law", "fitted_law", "rank_quantile", "depth_law")
_TITLES = {
    "top_k": "top k",
    "score": "one cosine for all",
    "gap": "gap to the best cosine",
    "cdf": "literal pEBR (CDF)",
    "cdf_pdf": "literal pEBR (CDF), pdf convention",
    "nucleus": "nucleus",
    "adapter": "cosine adapter",
    "corpus_law": "corpus-law CDF",
    "fitted_law": "fitted-law CDF",
    "rank_quantile": "boosted rank quantile",
    "depth_law": "learnt depth law",
    "oracle": "oracle",
}


@dataclass(frozen=True)
class Policies:
    """The ways to end a list, with what was learnt for them.

    Attributes:
      level_temperature: T of the level.
      adapter: The fitted adapter; None: there is no `adapter`.
      corpus_law: The moments of the corpus; None: there is no `corpus_law`.
      fitted_law: The fitted head; None: there is no `fitted_law`.
      rank_quantile: The fitted trees; None: there is no `rank_quantile`.
      depth_law: The fitted law; None: there is no `depth_law`.
      both_conventions: Whether there is `cdf_pdf`, for towers of the Beta family.
    """

    level_temperature: float
    adapter: CosineAdapter | None = None
    corpus_law: CorpusLaw | None = None
    fitted_law: LawHead | None = None
    rank_quantile: RankQuantile | None = None
    depth_law: DepthLaw | None = None
    both_conventions: bool = False

    def names(self, candidates: Candidates) -> tuple[str, ...]:
        """Those that can score these candidates, ours first, the oracle last."""
        missing = {
            "level_head": candidates.head_levels is None,
            "cdf_pdf": not self.both_conventions or candidates.family != "beta",
            **{name: getattr(self, name) is None for name in ("adapter", *BASELINES[1:])},
        }
        order = (*POLICIES[:-1], *BASELINES, POLICIES[-1])
        return tuple(name for name in order if not missing.get(name, False))

    def title(self, name: str) -> str:
        """What a reader sees."""
        if name in ("level", "level_head"):
            place = " from the head" if name == "level_head" else ""
            return f"level{place}, T = {self.level_temperature:g}"
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
            return candidates.logits, candidates.levels[self.level_temperature]
        if name == "level_head":
            return candidates.logits, candidates.head_levels
        if name == "cdf":
            top = relevance_logit(tf.ones_like(tau), tau, candidates.family)
            return candidates.logits, top.numpy()
        if name == "score":
            return cosines, None
        if name == "gap":
            return cosines, _best(candidates)
        if name == "top_k":
            ranks = np.arange(candidates.depth, dtype=np.float32)
            return np.where(cosines == -np.inf, cosines, -ranks), None
        return self._own_scores(name, candidates), None

    def _own_scores(self, name: str, candidates: Candidates) -> np.ndarray:
        """[Q, M] scores of the policies that have an array of their own."""
        if name == "nucleus":
            return nucleus_scores(candidates)
        if name == "cdf_pdf":
            # (1 + 1 / tau) * log z = (1 + tau) * logit.
            return candidates.logits * (1 + candidates.tau)[:, None]
        if name == "adapter" and self.adapter is not None:
            return adapter_scores(self.adapter, candidates)
        if name == "corpus_law" and self.corpus_law is not None:
            return self.corpus_law.scores(candidates)
        if name == "fitted_law" and self.fitted_law is not None:
            return fitted_law_scores(self.fitted_law, candidates)
        if name == "rank_quantile" and self.rank_quantile is not None:
            return self.rank_quantile.scores(candidates)
        if name == "depth_law" and self.depth_law is not None:
            return self.depth_law.scores(candidates)
        return oracle_scores(candidates.relevant, candidates.totals, candidates.depth)


def _best(candidates: Candidates) -> np.ndarray:
    """[Q] cosines of the best; 0 for a query without a candidate."""
    best = candidates.cosines[:, 0]
    return np.where(best == -np.inf, np.float32(0), best)
