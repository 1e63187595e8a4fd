"""The contrastive seam: candidates -> logits -> softmax cross-entropy, one way or both."""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pebr_tf.losses.candidates import collect
from pebr_tf.losses.negatives import Negatives


def contrastive(
    query_vectors: Any,
    item_vectors: Any,
    logits: Callable[[tf.Tensor], tf.Tensor],
    negatives: Negatives | None = None,
    symmetric_weight: float = 0.0,
    gamma: float = 0.0,
) -> tf.Tensor:
    """Noise-contrastive loss of the score log r(d, q) = logits (paper, section 3.2, equation 1).

    With l[i, j] the logit of query i and item j, and the positives on the diagonal:

        query_to_item[i] = -log softmax_j(l[i, j] - log_q[j])[i]
        item_to_query[i] = -log softmax_j(l[j, i] - gamma * log_query_prior[j])[i]
        loss[i]          = query_to_item[i] + symmetric_weight * item_to_query[i]

    The first term does not change when all logits of a query move by one amount, so it leaves the
    query's level free. The second runs down a column, over logits that each query has scaled by
    its own temperature: there, levels compete. Without log_q the two together are least at
    l = log(p(d|q) / p(d)) + gamma * log p(q), up to one constant for all queries.

    Vectors are [B, n]; row i of the items is the positive of query i. `logits` is the loss's own
    equation, from cosines [B, B] to logits [B, B]. `negatives` are masks and corrections; gamma
    needs their `log_query_prior`.
    """
    candidates = collect(query_vectors, item_vectors, negatives)
    scores = logits(candidates.cosines)
    # No weight and no gradient where candidates are removed.
    scores = tf.where(candidates.removed, tf.constant(-math.inf, scores.dtype), scores)
    corrected = scores if candidates.log_q is None else scores - candidates.log_q
    loss = cross_entropy(corrected)
    if symmetric_weight:
        if gamma:
            scores -= gamma * tf.expand_dims(candidates.log_query_prior, 1)
        loss += symmetric_weight * column_cross_entropy(scores)
    return loss


def cross_entropy(logits: tf.Tensor) -> tf.Tensor:
    """[B] -log softmax of the diagonal of logits [B, B]; -inf marks removed candidates.

        log(1 + sum_j exp(l[i, j] - l[i, i]))      j != i

    TensorFlow's fused op computes loss and gradient in one pass over the matrix. A row with all
    other candidates removed gives exactly 0.
    """
    labels = tf.range(tf.shape(logits)[0])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


@tf.custom_gradient
def column_cross_entropy(logits: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """[B] `cross_entropy` of the transpose of logits [B, B], without transposing, which is slow."""
    top = tf.reduce_max(logits, axis=0)
    weights = tf.exp(logits - top)
    totals = tf.reduce_sum(weights, axis=0)
    diagonal = tf.linalg.diag_part(logits)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        shares = weights * (upstream / totals)
        return tf.linalg.set_diag(shares, tf.linalg.diag_part(shares) - upstream)

    return top - diagonal + tf.math.log(totals), gradient
