"""Literal pEBR: the logarithm of the CDF of the query's law at the cosine.

*Conventions.* "paper" is Beta(1 / tau, 1) with score log(z) / tau; "pdf" is Beta(1 + 1 / tau, 1),
which the loss trains over a uniform background, with score (1 + 1 / tau) * log(z). They end a list
at log z = c * tau and at log z = c * tau / (1 + tau). For queries of equal tau they are one policy.
Otherwise they differ at an equal average: relative to a query of tau near 0, the pdf convention
moves the end of a list by a factor 1 / (1 + tau) in log z, 5% at tau = .05.

The exponential law has no such choice: its density is exp(s / tau) in both, its score is
(s - 1) / tau, and what this leaves out of the logarithm, log(1 - exp(-2 z / tau)), is below 1e-4
where z >= 5 tau.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions.beta import Convention
from pebr_tf.distributions.level import level_threshold
from pebr_tf.distributions.logit import relevance_logit


@dataclass(frozen=True, kw_only=True)
class CdfPolicy(Policy):
    """score = log CDF of the query's law.

    Attributes:
      convention: Which Beta law; releases are served with "paper".
    """

    short_title = "literal pEBR"

    convention: Convention = "paper"

    @property
    def name(self) -> str:
        return "cdf" if self.convention == "paper" else "cdf_pdf"

    @property
    def title(self) -> str:
        return f"literal pEBR (CDF){'' if self.convention == 'paper' else ', pdf convention'}"

    def applies_to(self, candidates: Candidates) -> bool:
        return self.convention == "paper" or candidates.family == "beta"

    def scores(self, candidates: Candidates) -> np.ndarray:
        if self.convention == "paper":
            return candidates.logits
        # (1 + 1 / tau) * log z = (1 + tau) * logit.
        return candidates.logits * (1 + candidates.tau)[:, None]

    def offsets(self, candidates: Candidates) -> np.ndarray | None:
        return np.asarray(_top_logit(candidates.tau, candidates.family))

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        tau = encoded.tau
        if self.convention == "pdf":
            cutoffs = cutoffs / (1 + tau)
        return level_threshold(cutoffs, _top_logit(tau, self.family), tau, self.family)


def _top_logit(tau: Any, family: Any) -> tf.Tensor:
    """[B] logits of a cosine of 1, where the CDF is 1; 0 for the Beta family."""
    return relevance_logit(tf.ones_like(tau), tau, family)
