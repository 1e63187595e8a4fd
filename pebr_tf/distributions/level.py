"""The per-query level: the normaliser that a softmax loss never learns.

NCE learns logit(q, d) = log(p(d|q) / p(d)) only up to a constant of the query, its log Z. The level
puts it back from the query's own corpus, with a level temperature T:

    level_q(T) = T * log mean_d exp(logit(q, d) / T)

T = 1 is the exact normaliser, T -> 0 the logit of the best item, T -> infinity the mean logit. An
item is retrieved iff logit(q, d) - level_q >= cutoff, one number for all queries. For the Beta
family that is a cosine of at least 2 * exp(tau * (cutoff + level)) - 1.
"""

import math

import tensorflow as tf

from pebr_tf.distributions.logit import UNIT_EPSILON, Family, relevance_logit


def exact_level(logits: tf.Tensor, level_temperature: float = 1.0) -> tf.Tensor:
    """[B] levels over all items, in the dtype of their logits [B, N].

    `level_temperature` is T, from 0 (the maximum) to infinity (the mean), both included.
    """
    if level_temperature == 0:
        return tf.reduce_max(logits, axis=-1)
    if math.isinf(level_temperature):
        return tf.reduce_mean(logits, axis=-1)
    count = tf.cast(tf.shape(logits)[-1], logits.dtype)
    mass = tf.reduce_logsumexp(logits / level_temperature, axis=-1)
    return level_temperature * (mass - tf.math.log(count))


def level_of_cosines(
    cosines: tf.Tensor, tau: tf.Tensor, family: Family, level_temperature: float
) -> tf.Tensor:
    """[B] the exact level from cosines [B, N] and temperatures [B], in few passes over them."""
    if family != "beta" or level_temperature == 0 or math.isinf(level_temperature):
        return exact_level(relevance_logit(cosines, tau[:, tf.newaxis], family), level_temperature)
    best = tf.maximum(1.0 + tf.reduce_max(cosines, axis=1, keepdims=True), 2.0 * UNIT_EPSILON)
    rate = 1.0 / (level_temperature * tau[:, tf.newaxis])
    # Items next to the antipode have no weight: a floor replaces the tangent of their logarithm.
    ratios = tf.maximum((1.0 + cosines) / best, UNIT_EPSILON)
    mass = tf.reduce_mean(tf.exp(rate * tf.math.log(ratios)), axis=1)
    return tf.math.log(best[:, 0] / 2.0) / tau + level_temperature * tf.math.log(mass)
