"""ExpNCE and InfoNCE: the truncated exponential law as the contrastive score."""

from typing import Any

import tensorflow as tf

from pebr_tf.distributions.logit import relevance_logit
from pebr_tf.losses import similarity
from pebr_tf.losses.softmax import contrastive


def exp_logits(cosines: tf.Tensor, tau: Any) -> tf.Tensor:
    """The score of the truncated exponential law (paper, section 3.2.1): log r(d, q) = s / tau_q.

    Cosines s and logits are [B, B]; tau is scalar or [B].
    """
    return relevance_logit(cosines, similarity.per_query(tau, cosines), "exponential")


def exp_nce(query_vectors: Any, item_vectors: Any, tau: Any, **options: Any) -> tf.Tensor:
    """[B] values of ExpNCE, with a temperature for each query (paper, section 3.2.1).

        loss[i] = log(1 + sum_j exp(s(q_i, d_j) / tau_i) / exp(s(q_i, d_i) / tau_i))

    With one scalar tau for all queries it is InfoNCE (section 2.2.2). Temperatures are [B] or a
    scalar, above 0; vectors and `options` are those of `contrastive`.
    """
    return contrastive(query_vectors, item_vectors, lambda s: exp_logits(s, tau), **options)
