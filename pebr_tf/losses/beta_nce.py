"""BetaNCE: the Beta law as the contrastive score."""

from typing import Any

import tensorflow as tf

from pebr_tf.distributions.logit import UNIT_EPSILON, log_unit, relevance_logit
from pebr_tf.losses import similarity
from pebr_tf.losses.softmax import contrastive


def beta_logits(cosines: tf.Tensor, tau: Any, delta_beta: Any = 0.0) -> tf.Tensor:
    """The score of Beta laws of the relevant items and the background (paper, section 3.2.2).

        log r(d, q) = log z / tau_q + delta_beta_q * log(1 - z)      z = (1 + s) / 2

    where 1 / tau = alpha_g - alpha_k and delta_beta = beta_g - beta_k, each scalar or [B]. Cosines
    and logits are [B, B]. Both logarithms are bounded at the poles; see `log_unit`.
    """
    logits = _scaled_logarithm(cosines, similarity.per_query(tau, cosines))
    if isinstance(delta_beta, float | int) and delta_beta == 0:
        return logits
    return logits + similarity.per_query(delta_beta, cosines) * log_unit(-cosines)


@tf.custom_gradient
def _scaled_logarithm(cosines: tf.Tensor, tau: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """`relevance_logit` [B, B] for tau [] or [B, 1], with its gradient in closed form.

        d logit / d s = 1 / (tau * 2 max(z, UNIT_EPSILON))        d logit / d tau = -logit / tau

    TensorFlow's own would go back through both branches of `log_unit`, a dozen passes over the
    matrix in place of these few.
    """
    logits = relevance_logit(cosines, tau, "beta")

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        slopes = tf.maximum(1.0 + cosines, 2.0 * UNIT_EPSILON)
        axis = 1 if tau.shape.rank else None
        total = tf.reduce_sum(upstream * logits, axis=axis, keepdims=bool(tau.shape.rank))
        return upstream / tau / slopes, -total / tau

    return logits, gradient


def beta_nce(
    query_vectors: Any, item_vectors: Any, tau: Any, delta_beta: Any = 0.0, **options: Any
) -> tf.Tensor:
    """[B] values of BetaNCE, the contrastive loss of log z / tau_q (paper, section 3.2.2).

        loss[i] = -log(z(q_i, d_i)^(1 / tau_i) / sum_j z(q_i, d_j)^(1 / tau_i))

    The arguments are those of `exp_nce`, and `delta_beta`: scalar or [B] beta_g - beta_k, for the
    general form; 0 is the paper's final loss.
    """
    return contrastive(
        query_vectors, item_vectors, lambda s: beta_logits(s, tau, delta_beta), **options
    )
