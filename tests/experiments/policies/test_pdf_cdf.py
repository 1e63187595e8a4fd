"""Literal pEBR by the pdf convention."""

import numpy as np
import scipy.stats
from cutoff_worlds import make_world

from experiments.policies.pdf_cdf import PdfCdfPolicy
from pebr_tf.cutoff.candidates import collect_candidates
from pebr_tf.cutoff.policies.cdf import CdfPolicy


def test_literal_pebr_by_the_pdf_convention():
    """Log CDF of Beta(1 + 1 / tau, 1); the other convention ends other lists."""
    corpus, queries, relevant = make_world()
    beta, exponential = (
        collect_candidates(corpus, queries, relevant, family, (1.0,), 300)
        for family in ("beta", "exponential")
    )
    z, tau = (1 + beta.cosines.astype(np.float64)) / 2, queries.tau[:, None]
    paper, pdf = (policy.lists(beta) for policy in (CdfPolicy(), PdfCdfPolicy()))
    expected = scipy.stats.beta.logcdf(z, 1 + 1 / tau, 1)
    np.testing.assert_allclose(pdf.scores, expected, rtol=1e-4, atol=1e-5)
    counts = [each.counts_at(each.cutoff_at(20)) for each in (paper, pdf)]
    assert counts[0].sum() == counts[1].sum() == 1200
    assert (counts[0] != counts[1]).any()
    assert not PdfCdfPolicy().applies_to(exponential)
