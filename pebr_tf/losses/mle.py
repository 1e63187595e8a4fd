"""Maximum likelihood: relevant and irrelevant cosines each follow a law of the query."""

from typing import Any, Literal, get_args

import tensorflow as tf

from pebr_tf.distributions import Beta, CosineLaw
from pebr_tf.losses.candidates import collect
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.softmax import require_no_softmax_terms, require_weight

Guard = Literal["fixed_background", "stopped_towers", "none"]


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
    guard: Guard = "fixed_background",
    negative_weight: float = 1.0,
) -> tf.Tensor:
    """Negative log-likelihood of all cosines of a query (paper, section 3.1).

        loss[i] = -log f_i(s(q_i, d_i)) - negative_weight * sum_j log h_i(s(q_i, d_j))

    Taken literally it collapses: when the towers and both laws learn from it, all cosines gather in
    one place, where f and h are spikes of unbounded density. Something must be held still:

      "fixed_background": h is a constant, so that negatives must look like it. Towers and f learn.
      "stopped_towers": the cosines are constants. Only the laws learn; towers need another loss.
      "none": the paper's objective, for comparison.

    Stopping the gradient of log h alone is no guard: what is left, log f, only attracts, and pulls
    together everything that shared clicks connect.

    A law's parameters usually come from a head on the query vector, a second way into the towers
    that no loss can see. Stop the head's input when its law is fitted under "stopped_towers".

    Args:
      query_vectors: [B, n] vectors.
      item_vectors: [B, n] vectors; row i is the positive of query i.
      tau: Scalar or [B] temperatures of the default law of relevant items.
      negatives: Masks and extra items.
      symmetric_weight: Must be 0: a pair is the same pair in both directions.
      gamma: Must be 0, likewise.
      relevant: f, with scalar or [B] parameters. Default: `Beta.from_tau(tau)`.
      irrelevant: h, with scalar or [B] parameters; a `Beta` under "fixed_background", which stops
        its gradient. Default: the law of uniform vectors on the sphere,
        Beta((n - 1) / 2, (n - 1) / 2), for n of at least 3.
      guard: What is held still, as above.
      negative_weight: Weight of one negative; 1 is the paper's, 1 / (number of negatives) balances.

    Returns:
      [B] losses, of either sign: densities may be above 1.
    """
    require_guard(guard)
    require_weight("negative_weight", negative_weight)
    require_no_softmax_terms("mle", negatives, symmetric_weight, gamma)
    query_vectors = tf.convert_to_tensor(query_vectors)
    candidates = collect(query_vectors, item_vectors, negatives, tau=tau)
    cosines = tf.clip_by_value(candidates.cosines, -1.0, 1.0)
    if guard == "stopped_towers":
        cosines = tf.stop_gradient(cosines)
    relevant = relevant or Beta.from_tau(tau)
    irrelevant = irrelevant or Beta(1.0, 1.0).on_sphere(query_vectors.shape[-1])
    if guard == "fixed_background":
        irrelevant = _fixed(irrelevant)
    positive = tf.cast(relevant.log_prob(tf.linalg.diag_part(cosines)), cosines.dtype)
    # A law's parameters are [B] and meet the last axis of its argument.
    background = tf.transpose(irrelevant.log_prob(tf.transpose(cosines)))
    background = candidates.sum_negatives(tf.cast(background, cosines.dtype))
    return -positive - negative_weight * background


def require_guard(guard: Guard) -> Guard:
    """Returns the guard; raises ValueError unless it is one of `Guard`."""
    if guard not in get_args(Guard):
        raise ValueError(f"guard must be one of {', '.join(get_args(Guard))}. Received: {guard!r}.")
    return guard


def _fixed(law: CosineLaw) -> Beta:
    if not isinstance(law, Beta):
        raise ValueError(
            "The guard 'fixed_background' requires irrelevant to be a Beta law. "
            f"Received: {type(law).__name__}."
        )
    return Beta(tf.stop_gradient(law.alpha), tf.stop_gradient(law.beta))
