"""The pointwise loss: every pair is a binary classification of its own."""

from typing import Any

import tensorflow as tf

from pebr_tf.losses.candidates import collect
from pebr_tf.losses.exp_nce import exp_logits
from pebr_tf.losses.negatives import Negatives


def pointwise(
    query_vectors: Any, item_vectors: Any, tau: Any = 1.0, *, negatives: Negatives | None = None
) -> tf.Tensor:
    """Sigmoid cross-entropy, [B] (paper, section 2.2.1).

        loss[i] = -log sigmoid(s(q_i, d_i) / tau) - sum_j log sigmoid(-s(q_i, d_j) / tau)

    The paper prints +log sigmoid(s) for the negatives, which would reward a high cosine; the
    cross-entropy that it describes has -log sigmoid(-s). The arguments are those of `mle`; the
    paper's tau is 1.
    """
    candidates = collect(query_vectors, item_vectors, negatives)
    logits = exp_logits(candidates.cosines, tau)
    positive = tf.nn.softplus(-tf.linalg.diag_part(logits))
    return positive + candidates.sum_negatives(tf.nn.softplus(logits))
