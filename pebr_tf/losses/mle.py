"""Maximum likelihood: relevant and irrelevant cosines each follow a law of the query."""

from typing import Any, Literal, get_args

import tensorflow as tf

from pebr_tf.distributions import Beta, CosineLaw
from pebr_tf.losses.candidates import collect
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.softmax import require_no_softmax_terms, require_weight

Guard = Literal["given_cosines", "stopped_towers", "none"]


def mle(
    query_vectors: Any,
    item_vectors: Any,
    tau: Any,
    *,
    negatives: Negatives | None = None,
    symmetric_weight: float = 0.0,
    gamma: float = 0.0,
    relevant: CosineLaw | None = None,
    irrelevant: CosineLaw | None = None,
    guard: Guard = "given_cosines",
    negative_weight: float = 1.0,
) -> tf.Tensor:
    """Negative log-likelihood of a query's items (paper, section 3.1).

    The paper's objective is the likelihood of the cosines:

        loss[i] = -log f_i(s(q_i, d_i)) - negative_weight * sum_j log h_i(s(q_i, d_j))

    It is no loss for towers, because the cosines are not data: the towers make them. They gather
    all cosines where f and h are dense. If h is a constant, they gather them at its mode: queries
    become orthogonal to all items. Stopping the gradient of log h alone is no remedy: what is left
    only attracts. `guard` says what is done about it:

      "given_cosines": the likelihood of which items are relevant, given all cosines. It is the
        objective above divided by the likelihood of the cosines under the mixture of f and h, whose
        odds are one positive to the negatives of the query:
        loss[i] = softplus(-x_ii) + negative_weight * sum_j softplus(x_ij),
        x_ij = log f_i(s_ij) - log h_i(s_ij) - log(negative_weight * number of negatives).
      "stopped_towers": the paper's objective with constant cosines. Only the laws learn; towers
        need another loss.
      "none": the paper's objective, for comparison.

    A law's parameters usually come from a head on the query vector, a second way into the towers
    that no loss can see. Stop the head's input when its law is fitted under "stopped_towers".

    Args:
      query_vectors: [B, n] vectors.
      item_vectors: [B, n] vectors; row i is the positive of query i.
      tau: Scalar or [B] temperatures of the default law of relevant items.
      negatives: Masks and extra items.
      symmetric_weight: Must be 0: a pair is the same pair in both directions.
      gamma: Must be 0, likewise.
      relevant: f, with scalar or [B] parameters. Default: `Beta.from_tau(tau)` on the sphere.
      irrelevant: h, with scalar or [B] parameters. Default: the law of uniform vectors on the
        sphere, Beta((n - 1) / 2, (n - 1) / 2), for n of at least 3.
      guard: As above.
      negative_weight: Weight of one negative; 1 is the paper's.

    Returns:
      [B] losses; of either sign without "given_cosines", because densities may be above 1.
    """
    require_guard(guard)
    require_weight("negative_weight", negative_weight)
    require_no_softmax_terms("mle", negatives, symmetric_weight, gamma)
    query_vectors = tf.convert_to_tensor(query_vectors)
    candidates = collect(query_vectors, item_vectors, negatives, tau=tau)
    cosines = tf.clip_by_value(candidates.cosines, -1.0, 1.0)
    if guard == "stopped_towers":
        cosines = tf.stop_gradient(cosines)
    dimension = query_vectors.shape[-1]
    relevant = relevant or Beta.from_tau(tau).on_sphere(dimension)
    irrelevant = irrelevant or Beta(1.0, 1.0).on_sphere(dimension)
    background = _log_densities(irrelevant, cosines)
    if guard != "given_cosines":
        positive = tf.cast(relevant.log_prob(tf.linalg.diag_part(cosines)), cosines.dtype)
        return -positive - negative_weight * candidates.sum_negatives(background)
    count = negative_weight * candidates.sum_negatives(tf.ones_like(cosines))
    prior = tf.math.log(tf.maximum(count, 1.0))[:, tf.newaxis]
    logits = _log_densities(relevant, cosines) - background - prior
    positive = tf.nn.softplus(-tf.linalg.diag_part(logits))
    return positive + negative_weight * candidates.sum_negatives(tf.nn.softplus(logits))


def require_guard(guard: Guard) -> Guard:
    """Returns the guard; raises ValueError unless it is one of `Guard`."""
    if guard not in get_args(Guard):
        raise ValueError(f"guard must be one of {', '.join(get_args(Guard))}. Received: {guard!r}.")
    return guard


def _log_densities(law: CosineLaw, cosines: tf.Tensor) -> tf.Tensor:
    # A law's parameters are [B] and meet the last axis of its argument.
    return tf.cast(tf.transpose(law.log_prob(tf.transpose(cosines))), cosines.dtype)
