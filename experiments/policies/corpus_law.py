"""The corpus law: the paper's general form over a background that the item vectors have.

The cosine of a query with a random item is Beta(a_k, b_k), from the mean and the covariance of the
items (`distributions.background_law`); the relevant items have that density times r(d, q): for
BetaNCE Beta(a_k + 1 / tau, b_k), for the exponential family the Beta-tilted exponential
(a_k, b_k, tau). A list keeps a share of this law. Nothing is learned beyond the towers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.policies.law_odds import law_log_odds
from pebr_tf.cutoff.candidates import Candidates, QueryVectors
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions import background_law
from pebr_tf.distributions.logit import Family


@dataclass(frozen=True, kw_only=True, eq=False)
class CorpusLawPolicy(Policy):
    """score = log odds of the CDF of the law over the corpus' own background.

    Attributes:
      mean: [n] float64 mean of the item vectors.
      covariance: [n, n] float64.
    """

    name = "corpus_law"
    title = "corpus-law CDF"

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, items: np.ndarray) -> CorpusLawPolicy:
        """The moments of item vectors [N, n]."""
        vectors = items.astype(np.float64)
        mean = vectors.mean(axis=0)
        covariance = vectors.T @ vectors / len(vectors) - np.outer(mean, mean)
        return cls(mean=mean, covariance=covariance)

    def parameters(
        self, queries: QueryVectors, family: Family
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Alpha, beta and rate of the law of each query's relevant items, [Q] each.

        The pdf convention: over the uniform background Beta(1, 1) alpha is 1 + 1 / tau.
        """
        background = background_law(queries.vectors.astype(np.float64), self.mean, self.covariance)
        alpha, beta = background.alpha.numpy(), background.beta.numpy()
        tilt = 1 / queries.tau.astype(np.float64)
        if family == "beta":
            return alpha + tilt, beta, np.zeros_like(tilt)
        return alpha, beta, 2 * tilt

    def scores(self, candidates: Candidates) -> np.ndarray:
        parameters = self.parameters(candidates.queries, candidates.family)
        return law_log_odds(candidates.cosines, *parameters)
