"""Literal pEBR by the other convention: Beta(1 + 1 / tau, 1), which the loss trains.

`CdfPolicy` has the paper's Beta(1 / tau, 1), with score log(z) / tau; here it is
(1 + 1 / tau) * log(z). They end a list at log z = c * tau and at log z = c * tau / (1 + tau). For
queries of equal tau they are one policy. Otherwise they differ at an equal average: relative to a
query of tau near 0, this convention moves the end of a list by a factor 1 / (1 + tau) in log z, 5%
at tau = .05.
"""

from __future__ import annotations

import numpy as np

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.cdf import CdfPolicy


class PdfCdfPolicy(CdfPolicy):
    """score = log CDF of Beta(1 + 1 / tau, 1)."""

    name = "cdf_pdf"
    title = "literal pEBR (CDF), pdf convention"

    def applies_to(self, candidates: Candidates) -> bool:
        return candidates.family == "beta"

    def scores(self, candidates: Candidates) -> np.ndarray:
        # (1 + 1 / tau) * log z = (1 + tau) * logit.
        return candidates.logits * (1 + candidates.tau)[:, None]
