"""Literal pEBR: the logarithm of the CDF of the query's law at the cosine.

For the Beta family the law is the paper's Beta(1 / tau, 1), with score log(z) / tau. The law of the
exponential family has the density exp(s / tau) and the score (s - 1) / tau. What this leaves out of
the logarithm, log(1 - exp(-2 z / tau)), is below 1e-4 where z >= 5 tau.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions.logit import cosine_of_logit, relevance_logit


class CdfPolicy(Policy):
    """score = log CDF of the query's law."""

    name = "cdf"
    title = "literal pEBR (CDF)"
    short_title = "literal pEBR"

    def scores(self, candidates: Candidates) -> np.ndarray:
        return candidates.logits

    def offsets(self, candidates: Candidates) -> np.ndarray | None:
        return np.asarray(_top_logit(candidates.tau, candidates.family))

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        logits = cutoffs + _top_logit(encoded.tau, self.family)
        return cosine_of_logit(logits, encoded.tau, self.family)


def _top_logit(tau: Any, family: Any) -> tf.Tensor:
    """[B] logits of a cosine of 1, where the CDF is 1; 0 for the Beta family."""
    return relevance_logit(tf.ones_like(tau), tau, family)
