"""The per-query level: the normaliser that a softmax loss never learns.

NCE learns logit(q, d) = log(p(d|q) / p(d)) only up to a constant of the query, its log Z. The level
puts it back from the query's own corpus, with a level temperature T:

    level_q(T) = T * log mean_d exp(logit(q, d) / T)

T = 1 is the exact normaliser, T -> 0 the logit of the best item, T -> infinity the mean logit. An
item is retrieved iff logit(q, d) - level_q >= cutoff, one number for all queries.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from pebr_tf.distributions.logit import Family, cosine_of_logit


def exact_level(logits: tf.Tensor, level_temperature: float = 1.0) -> tf.Tensor:
    """[B] levels over all items, in the dtype of their logits [B, N].

    `level_temperature` is T, from 0 (the maximum) to infinity (the mean), both included.
    """
    if not level_temperature >= 0:
        raise ValueError(
            f"level_temperature must be a number from 0 to infinity. Received: {level_temperature}."
        )
    if level_temperature == 0:
        return tf.reduce_max(logits, axis=-1)
    if math.isinf(level_temperature):
        return tf.reduce_mean(logits, axis=-1)
    count = tf.cast(tf.shape(logits)[-1], logits.dtype)
    mass = tf.reduce_logsumexp(logits / level_temperature, axis=-1)
    return level_temperature * (mass - tf.math.log(count))


def level_threshold(cutoff: Any, level: Any, tau: Any, family: Family = "beta") -> tf.Tensor:
    """[B] cosines at which logit - level = cutoff.

    For the Beta family t = 2 * exp(tau * (cutoff + level)) - 1 = 2 * z_hi * exp(tau * cutoff) - 1.
    A value above 1 means that no item can pass. `cutoff` is one number or [B]; `level` and `tau`
    are [B]; `family` is that of the logits of the level.
    """
    return cosine_of_logit(cutoff + level, tau, family)
