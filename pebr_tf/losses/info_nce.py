"""InfoNCE: the pairwise softmax loss with one temperature for all queries."""

from typing import Any

import tensorflow as tf

from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.negatives import Negatives


def info_nce(
    query_vectors: Any,
    item_vectors: Any,
    tau: Any,
    *,
    negatives: Negatives | None = None,
    symmetric_weight: float = 0.0,
    gamma: float = 0.0,
) -> tf.Tensor:
    """InfoNCE, softmax cross-entropy of s / tau (paper, section 2.2.2).

        loss[i] = -log(exp(s(q_i, d_i) / tau) / sum_j exp(s(q_i, d_j) / tau))

    Args:
      query_vectors: [B, n] vectors.
      item_vectors: [B, n] vectors; row i is the positive of query i.
      tau: Scalar temperature above 0.
      negatives: Masks, extra items and corrections.
      symmetric_weight: Weight of the item -> query term; see `softmax.contrastive`.
      gamma: Query prior correction of that term.

    Returns:
      [B] losses.
    """
    shape = tf.convert_to_tensor(tau).shape
    if shape.rank != 0:
        raise ValueError(
            "info_nce requires one scalar tau; a temperature for each query makes it exp_nce. "
            f"Received: tau of shape {shape}."
        )
    return exp_nce(
        query_vectors,
        item_vectors,
        tau,
        negatives=negatives,
        symmetric_weight=symmetric_weight,
        gamma=gamma,
    )
