"""The truncated exponential law: what ExpNCE and InfoNCE assume (paper, section 3.2.1)."""

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

from pebr_tf.distributions import domain
from pebr_tf.distributions.law import CosineLaw


class TruncatedExponential(CosineLaw):
    """Density proportional to exp(s / tau) on [-1, 1].

    In z, with k = 2 / tau: density k * exp(k * (z - 1)) / (1 - exp(-k)). Every form below has
    non-positive exponents only, so that nothing overflows however small tau is.
    """

    def __init__(self, tau: Any):
        """Makes the law of temperatures in [1e-6, 1000]."""
        super().__init__(tau)
        self.tau = domain.float64_within("tau", tau, 1e-6, 1e3)
        self._rate = 2.0 / self.tau

    def _log_prob(self, z: tf.Tensor) -> tf.Tensor:
        return self._rate * (z - 1.0) + tf.math.log(self._rate / -tf.math.expm1(-self._rate))

    def _cdf(self, z: tf.Tensor) -> tf.Tensor:
        below = tf.math.expm1(-self._rate * z) / tf.math.expm1(-self._rate)
        return tf.exp(self._rate * (z - 1.0)) * below

    def _survival(self, z: tf.Tensor) -> tf.Tensor:
        return tf.math.expm1(self._rate * (z - 1.0)) / tf.math.expm1(-self._rate)

    def _quantile(self, p: tf.Tensor) -> tf.Tensor:
        """Solves z = 1 + log(p * (1 - exp(-k)) + exp(-k)) / k, as a stable log-sum."""
        mass = tf.math.log(-tf.math.expm1(-self._rate))
        return 1.0 + tfp.math.log_add_exp(tf.math.log(p) + mass, -self._rate) / self._rate
