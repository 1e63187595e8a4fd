"""The pointwise loss: every pair is a binary classification of its own."""

from typing import Any

import tensorflow as tf

from pebr_tf.losses.candidates import collect
from pebr_tf.losses.exp_nce import exp_logits
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.softmax import require_no_softmax_terms, require_weight


def pointwise(
    query_vectors: Any,
    item_vectors: Any,
    tau: Any = 1.0,
    *,
    negatives: Negatives | None = None,
    symmetric_weight: float = 0.0,
    gamma: float = 0.0,
    negative_weight: float = 1.0,
) -> tf.Tensor:
    """Sigmoid cross-entropy (paper, section 2.2.1).

        loss[i] = -log sigmoid(s(q_i, d_i) / tau)
                  - negative_weight * sum_j log sigmoid(-s(q_i, d_j) / tau)

    The paper prints +log sigmoid(s) for the negatives, which would reward a high cosine; the
    cross-entropy that it describes has -log sigmoid(-s).

    Args:
      query_vectors: [B, n] vectors.
      item_vectors: [B, n] vectors; row i is the positive of query i.
      tau: Scalar or [B] temperatures above 0; the paper's is 1.
      negatives: Masks and extra items.
      symmetric_weight: Must be 0: a pair is the same pair in both directions.
      gamma: Must be 0, likewise.
      negative_weight: Weight of one negative; 1 is the paper's, 1 / (number of negatives) balances.

    Returns:
      [B] losses.
    """
    require_weight("negative_weight", negative_weight)
    require_no_softmax_terms("pointwise", negatives, symmetric_weight, gamma)
    candidates = collect(query_vectors, item_vectors, negatives, tau=tau)
    logits = exp_logits(candidates.cosines, tau)
    positive = tf.nn.softplus(-tf.linalg.diag_part(logits))
    return positive + negative_weight * candidates.sum_negatives(tf.nn.softplus(logits))
