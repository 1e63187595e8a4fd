"""The fitted law: a Beta law for each query, learnt from held-out clicks on frozen towers.

Both parameters come from a small head on the query vector (`VectorLawHead`), by the likelihood of
the cosines of clicks. Every query counts the same, however many clicks it has, as it does in a
macro average. A list keeps a share of this law.
"""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from experiments.policies.law_head import VectorLawHead
from experiments.policies.law_odds import law_log_odds
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.fitting import fit
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions import Beta

# Clicks of a query that the likelihood looks at, at most.
CLICKS = 16
# A CDF of 0 has no logarithm.
_LEAST = 1e-30


@dataclass(frozen=True, kw_only=True)
class FittedLawPolicy(Policy):
    """score = log odds of the CDF of each query's fitted law; see `law_odds`.

    Attributes:
      head: The fitted head.
    """

    name = "fitted_law"
    title = "fitted-law CDF"

    head: VectorLawHead

    def scores(self, candidates: Candidates) -> np.ndarray:
        alpha, beta = self.head(tf.constant(candidates.queries.vectors))
        return law_log_odds(candidates.cosines, alpha.numpy(), beta.numpy())


def fit_law(candidates: Candidates, seed: int = 0) -> FittedLawPolicy:
    """Fits the head to held-out clicks of calibrate queries.

    Of a click that is not among the candidates only that it lies below the last of them is known,
    so its likelihood is the law's CDF there.

    Args:
      candidates: Of calibrate queries.
      seed: Of the weights, the clicks that are looked at, what is held out and the batches.
    """
    tf.keras.utils.set_random_seed(seed)
    head = VectorLawHead((32,))
    head(tf.constant(candidates.queries.vectors[:1]))
    cosines, weights, below = _clicks(candidates, np.random.default_rng(seed))
    censored = bool(below[:, 1].any())

    def losses(
        vectors: tf.Tensor, cosines: tf.Tensor, weights: tf.Tensor, below: tf.Tensor
    ) -> tf.Tensor:
        alpha, beta = head(vectors)
        seen = -Beta(alpha[:, None], beta[:, None]).log_prob(cosines)
        likelihood = tf.reduce_sum(weights * seen, axis=1)
        if not censored:
            return likelihood
        unseen = -tf.math.log(tf.maximum(Beta(alpha, beta).cdf(below[:, 0]), _LEAST))
        return likelihood + below[:, 1] * unseen

    fit(head, losses, (candidates.queries.vectors, cosines, weights, below), seed)
    return FittedLawPolicy(head=head)


def _clicks(
    candidates: Candidates, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the likelihood is made of; the weights of a query add up to 1, or to 0 without a click.

    Returns:
      [Q, CLICKS] float32 cosines of clicks, [Q, CLICKS] their weights, and [Q, 2] the cosine that
      the other clicks are below, with their weight.
    """
    count, depth = candidates.cosines.shape
    cosines, weights = (np.zeros((count, CLICKS), np.float32) for _ in range(2))
    relevant = candidates.relevant
    inside = generator.permutation(np.flatnonzero(relevant.ranks < depth))
    inside = inside[np.argsort(relevant.rows[inside], kind="stable")]
    rows, ranks = relevant.rows[inside], relevant.ranks[inside]
    found = np.bincount(rows, minlength=count)
    place = np.arange(len(rows)) - (np.cumsum(found) - found)[rows]
    used = place < CLICKS
    # An item that the corpus lacks cannot be told from one below the candidates, unless all are.
    censored = depth < candidates.corpus_size
    missed = (candidates.totals - found) * censored
    known = np.maximum(found + missed, 1)
    at = (rows[used], place[used])
    cosines[at] = candidates.cosines[rows[used], ranks[used]]
    weights[at] = (found / np.maximum(np.minimum(found, CLICKS), 1) / known)[rows[used]]
    lengths = (candidates.cosines > -np.inf).sum(axis=1)
    last = candidates.cosines[np.arange(count), np.maximum(lengths - 1, 0)]
    last = np.where(lengths == 0, -1, last)
    return cosines, weights, np.stack([last, missed / known], axis=1).astype(np.float32)
