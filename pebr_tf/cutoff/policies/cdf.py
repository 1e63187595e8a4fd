"""Literal pEBR: the logarithm of the CDF of the query's law at the cosine.

*Conventions.* "paper" is Beta(1 / tau, 1) with score log(z) / tau; "pdf" is Beta(1 + 1 / tau, 1),
which the loss trains over a uniform background, with score (1 + 1 / tau) * log(z). They end a list
at log z = c * tau and at log z = c * tau / (1 + tau). For queries of equal tau they are one policy.
Otherwise they differ at an equal average: relative to a query of tau near 0, the pdf convention
moves the end of a list by a factor 1 / (1 + tau) in log z, 5% at tau = .05.

The exponential family has no such choice: its law has the density exp(s / tau) and the score
(s - 1) / tau. What this leaves out of the logarithm, log(1 - exp(-2 z / tau)), is below 1e-4 where
z >= 5 tau.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions.logit import cosine_of_logit, relevance_logit


class CdfPolicy(Policy):
    """score = log CDF of the query's law, by the paper's convention."""

    name = "cdf"
    title = "literal pEBR (CDF)"

    def scores(self, candidates: Candidates) -> np.ndarray:
        return candidates.logits

    def offsets(self, candidates: Candidates) -> np.ndarray | None:
        return np.asarray(_top_logit(candidates.tau, candidates.family))

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        logits = cutoffs + _top_logit(encoded.tau, self.family)
        return cosine_of_logit(logits, encoded.tau, self.family)


class PdfCdfPolicy(CdfPolicy):
    """The same by the pdf convention."""

    name = "cdf_pdf"
    title = "literal pEBR (CDF), pdf convention"

    def applies_to(self, candidates: Candidates) -> bool:
        return candidates.family == "beta"

    def scores(self, candidates: Candidates) -> np.ndarray:
        # (1 + 1 / tau) * log z = (1 + tau) * logit.
        return candidates.logits * (1 + candidates.tau)[:, None]

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        return super().threshold(cutoffs / (1 + encoded.tau), encoded)


def _top_logit(tau: Any, family: Any) -> tf.Tensor:
    """[B] logits of a cosine of 1, where the CDF is 1; 0 for the Beta family."""
    return relevance_logit(tf.ones_like(tau), tau, family)
