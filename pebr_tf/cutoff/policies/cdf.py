"""Literal pEBR: the logarithm of the CDF of the query's law at the cosine.

docs/maths.md, "Conventions", compares the paper's convention with that of the loss.
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
