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

from pebr_tf.distributions import domain
from pebr_tf.distributions.beta import Convention, tilted_alpha
from pebr_tf.distributions.law import CosineLaw
from pebr_tf.distributions.logit import Family, cosine_of_logit


def exact_level(logits: tf.Tensor, level_temperature: float = 1.0) -> tf.Tensor:
    """[B] levels over the whole corpus, in the dtype of the logits [B, N] of every item.

    `level_temperature` is T, from 0 (the maximum) to infinity (the mean), both included.
    """
    weights = tf.zeros_like(logits)
    return _power_mean(logits, weights, level_temperature)


def probe_level(
    probe_logits: tf.Tensor,
    sample_logits: tf.Tensor,
    corpus_size: int,
    level_temperature: float = 1.0,
) -> tf.Tensor:
    """The level from the best items exactly and a random sample standing for the rest.

    The sample's items that score at least the probe's last are in the probe already; the others
    share the weight of the corpus_size - K items that the probe did not bring.

    Args:
      probe_logits: [B, K] logits of each query's K best items.
      sample_logits: [B, M] logits of a uniform random sample of the corpus.
      corpus_size: N, the number of items of the corpus, at least K.
      level_temperature: T, from 0 (the maximum) to infinity (the mean), both included.

    Returns:
      [B] levels, in the dtype of `probe_logits`.

    Raises:
      ValueError: The probe is larger than the corpus, or its size is not static.
    """
    probe_size = probe_logits.shape[-1]
    if probe_size is None:
        raise ValueError(
            f"probe_logits must have a static last dimension. Received: {probe_logits.shape}."
        )
    if probe_size > corpus_size:
        raise ValueError(
            f"corpus_size must be at least the probe's size. Received: {corpus_size} and a probe "
            f"of {probe_size}."
        )
    last = tf.reduce_min(probe_logits, axis=-1, keepdims=True)
    stands = tf.cast(sample_logits < last, probe_logits.dtype)
    count = tf.maximum(tf.reduce_sum(stands, axis=-1, keepdims=True), 1.0)
    weight = stands * (corpus_size - probe_size) / count
    log_weight = tf.where(weight > 0, tf.math.log(tf.maximum(weight, 1e-30)), -math.inf)
    logits = tf.concat([probe_logits, sample_logits], axis=-1)
    return _power_mean(
        logits, tf.concat([tf.zeros_like(probe_logits), log_weight], axis=-1), level_temperature
    )


def _power_mean(logits: tf.Tensor, log_weights: tf.Tensor, level_temperature: float) -> tf.Tensor:
    """T * log of the weighted mean of exp(logits / T); a log-weight of -inf leaves an item out."""
    if not level_temperature >= 0:
        raise ValueError(
            f"level_temperature must be a number from 0 to infinity. Received: {level_temperature}."
        )
    present = log_weights > -math.inf
    if level_temperature == 0:
        return tf.reduce_max(tf.where(present, logits, logits.dtype.min), axis=-1)
    if math.isinf(level_temperature):
        return tf.reduce_sum(tf.nn.softmax(log_weights) * logits, axis=-1)
    return level_temperature * (
        tf.reduce_logsumexp(logits / level_temperature + log_weights, axis=-1)
        - tf.reduce_logsumexp(log_weights, axis=-1)
    )


def level_threshold(cutoff: Any, level: Any, tau: Any, family: Family = "beta") -> tf.Tensor:
    """[B] cosines at which logit - level = cutoff.

    For the Beta family t = 2 * exp(tau * (cutoff + level)) - 1 = 2 * z_hi * exp(tau * cutoff) - 1.
    A value above 1 means that no item can pass. `cutoff` is one number or [B]; `level` and `tau`
    are [B]; `family` is that of the logits of the level.
    """
    return cosine_of_logit(cutoff + level, tau, family)


class LevelLaw(CosineLaw):
    """Beta(alpha, 1) on [0, z_hi] in place of [0, 1], z_hi = exp(tau * level).

    Its CDF is (z / z_hi)^alpha up to z_hi, and 1 above. With the convention "paper" its thresholds
    are those of `level_threshold` with cutoff = log(1 - recall).
    """

    def __init__(self, tau: Any, level: Any, convention: Convention = "pdf"):
        """Makes the law.

        Args:
          tau: Temperatures in [1e-6, 1000].
          level: Levels of the Beta family, at most 0, broadcastable with `tau`.
          convention: "pdf" gives alpha = 1 + 1 / tau, "paper" alpha = 1 / tau.
        """
        super().__init__(tau, level)
        self.tau = domain.float64_within("tau", tau, 1e-6, 1e3)
        self.level = domain.float64_within("level", level, -1e9, 0.0)
        self.alpha = tilted_alpha(1.0, self.tau, convention)
        self._log_top = self.tau * self.level

    def _log_prob(self, z: tf.Tensor) -> tf.Tensor:
        inside = (self.alpha - 1.0) * tf.math.log(z) + tf.math.log(self.alpha)
        log_prob = inside - self.alpha * self._log_top
        above = tf.math.log(z) > self._log_top
        return tf.where(above, tf.constant(-math.inf, tf.float64), log_prob)

    def _log_cdf(self, z: tf.Tensor) -> tf.Tensor:
        # Held above the smallest float so that the gradient at z = 0 is finite.
        return self.alpha * tf.minimum(tf.math.log(tf.maximum(z, 1e-300)) - self._log_top, 0.0)

    def _cdf(self, z: tf.Tensor) -> tf.Tensor:
        return tf.exp(self._log_cdf(z))

    def _survival(self, z: tf.Tensor) -> tf.Tensor:
        return -tf.math.expm1(self._log_cdf(z))

    def _quantile(self, p: tf.Tensor) -> tf.Tensor:
        return tf.pow(p, 1.0 / self.alpha) * tf.exp(self._log_top)

    def _mean(self) -> tf.Tensor:
        return self.alpha / (self.alpha + 1.0) * tf.exp(self._log_top)
