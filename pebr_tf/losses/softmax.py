"""The contrastive seam: candidates -> logits -> softmax cross-entropy, one way or both."""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pebr_tf.losses.candidates import LossCandidates, collect
from pebr_tf.losses.negatives import Negatives


def contrastive(
    query_vectors: Any,
    item_vectors: Any,
    logits: Callable[..., tf.Tensor],
    *,
    parameters: dict[str, Any],
    negatives: Negatives | None,
    symmetric_weight: float,
    gamma: float,
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

    `logits` is the loss's own equation: cosines [B, B] and `parameters`, scalar or [B], such as
    tau, to logits [B, B]. The other arguments are those of `exp_nce`.
    """
    _require_symmetric(symmetric_weight, gamma)
    candidates = collect(query_vectors, item_vectors, negatives, **parameters)
    scores = logits(candidates.cosines, **parameters)
    scores = without_removed(scores, candidates.removed)
    corrected = scores if candidates.log_q is None else scores - candidates.log_q
    loss = cross_entropy(corrected)
    if symmetric_weight:
        loss += symmetric_weight * _item_to_query(scores, candidates, gamma)
    return loss


def without_removed(logits: tf.Tensor, removed: tf.Tensor) -> tf.Tensor:
    """Logits [B, B] with -inf where they are removed: no weight and no gradient."""
    return tf.where(removed, tf.constant(-math.inf, logits.dtype), logits)


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


def _item_to_query(scores: tf.Tensor, candidates: LossCandidates, gamma: float) -> tf.Tensor:
    if gamma:
        if candidates.log_query_prior is None:
            raise ValueError(
                f"gamma > 0 requires log_query_prior. Received: gamma={gamma}, "
                "log_query_prior=None."
            )
        scores -= gamma * candidates.log_query_prior[:, tf.newaxis]
    return column_cross_entropy(scores)


def _require_symmetric(symmetric_weight: float, gamma: float) -> None:
    for name, value in (("symmetric_weight", symmetric_weight), ("gamma", gamma)):
        if not 0.0 <= value < math.inf:
            raise ValueError(f"{name} must be a finite number, 0 or more. Received: {value}.")
    if gamma and not symmetric_weight:
        raise ValueError(
            "gamma corrects the symmetric term and requires symmetric_weight > 0. "
            f"Received: gamma={gamma}, symmetric_weight={symmetric_weight}."
        )


def require_no_log_q(loss: str, negatives: Negatives | None) -> None:
    """Raises ValueError if a loss without a softmax gets a correction that only a softmax has."""
    if negatives is not None and negatives.log_q is not None:
        raise ValueError(
            f"{loss} has no softmax: log_q must be None. Received: a log_q of shape "
            f"{tuple(tf.convert_to_tensor(negatives.log_q).shape)}."
        )
