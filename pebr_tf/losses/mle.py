"""Maximum likelihood: relevant and irrelevant cosines each follow a law of the query."""

from typing import Any

import tensorflow as tf

from pebr_tf.distributions import Beta
from pebr_tf.losses.candidates import collect
from pebr_tf.losses.negatives import Negatives


def mle(
    query_vectors: Any, item_vectors: Any, tau: Any, *, negatives: Negatives | None = None
) -> tf.Tensor:
    """Negative log-likelihood of which items are relevant, given all cosines, [B].

        loss[i] = -log p_ii - sum_j log(1 - p_ij)
        p_ij    = f_i(s_ij) / (f_i(s_ij) + odds_i * h(s_ij))

    Irrelevant cosines follow h, the law of uniform vectors on the sphere, and relevant ones f_i,
    that of `Beta.from_tau(tau_i)` there. The odds are the number of the query's negatives to its
    one positive. The paper's objective (section 3.1) is the likelihood of the cosines themselves,
    which is none for towers, because they make the cosines: see docs/maths.md, section 6.

    The arguments are those of `exp_nce`; vectors have at least 3 dimensions.
    """
    query_vectors = tf.convert_to_tensor(query_vectors)
    candidates = collect(query_vectors, item_vectors, negatives)
    cosines = tf.clip_by_value(candidates.cosines, -1.0, 1.0)
    # A law's parameters are [B] and meet the last axis of its argument.
    relevant, irrelevant = (
        law.on_sphere(query_vectors.shape[-1]).log_prob(tf.transpose(cosines))
        for law in (Beta.from_tau(tau), Beta(1.0, 1.0))
    )
    odds = candidates.sum_negatives(tf.ones_like(cosines))
    logits = tf.cast(tf.transpose(relevant - irrelevant), cosines.dtype)
    logits -= tf.math.log(tf.maximum(odds, 1.0))[:, tf.newaxis]
    positive = tf.nn.softplus(-tf.linalg.diag_part(logits))
    return positive + candidates.sum_negatives(tf.nn.softplus(logits))
