"""The Beta-tilted exponential law (the paper's BetaExp, appendix A), as a mixture of Beta laws.

The density z^(alpha - 1) * (1 - z)^(beta - 1) * exp(k * z), k = 2 / tau, has no closed CDF, and the
paper integrates it numerically. The power series of exp(k * z) turns it into a mixture of
Beta(alpha + j, beta), j = 0, 1, 2, ..., with weights

    w_j  proportional to  k^j / j! * B(alpha + j, beta).

Every term is positive, so nothing cancels, at any parameter and with singular ends. One step of the
first parameter is elementary,

    I_z(a, b) - I_z(a + 1, b) = z^a * (1 - z)^b / (a * B(a, b)) =: D(a),

so with J terms and W_i = w_0 + ... + w_i the CDF needs a single incomplete beta function:

    F(z) = I_z(alpha + J, beta) + sum_{i < J} W_i * D(alpha + i).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from pebr_tf.distributions import domain
from pebr_tf.distributions.beta import PARAMETER_HIGH, PARAMETER_LOW
from pebr_tf.distributions.law import CosineLaw
from pebr_tf.distributions.special import betainc, quantile

TAU_LOW, TAU_HIGH = 1e-3, 1e3

# Rows worked on at once: bounds the memory of the [rows, terms] tables, 10 MB at tau = .002.
_ROWS = 1024

# Terms of a block. D(a + 1) / D(a) is at most 1e6 * z in the domain, so a block cannot overflow.
_BLOCK = 32


class BetaExponential(CosineLaw):
    """Density proportional to (1 + s)^(alpha - 1) * (1 - s)^(beta - 1) * exp(s / tau)."""

    def __init__(self, alpha: Any, beta: Any, tau: Any, tau_low: float | None = None):
        """Makes the law.

        Args:
          alpha: Values in [1e-3, 1e6].
          beta: Values in [1e-3, 1e6], broadcastable with `alpha`.
          tau: Temperatures in [1e-3, 1000], broadcastable with `alpha`. The work grows as 1 / tau.
          tau_low: A static lower bound of `tau`. Only XLA needs it, to know the number of terms
            when it compiles; elsewhere the smallest tau at hand decides.
        """
        super().__init__(alpha, beta, tau)
        self.alpha = domain.float64_within("alpha", alpha, PARAMETER_LOW, PARAMETER_HIGH)
        self.beta = domain.float64_within("beta", beta, PARAMETER_LOW, PARAMETER_HIGH)
        self.tau = domain.float64_within("tau", tau, tau_low or TAU_LOW, TAU_HIGH)
        self._tau_low = tau_low

    def _log_prob(self, z: tf.Tensor) -> tf.Tensor:
        return self._by_rows(_Mixture.log_prob, z)

    def _cdf(self, z: tf.Tensor) -> tf.Tensor:
        return self._by_rows(_Mixture.cdf, z)

    def _quantile(self, p: tf.Tensor) -> tf.Tensor:
        return self._by_rows(_Mixture.quantile, p)

    def _mean(self) -> tf.Tensor:
        return self._by_rows(_Mixture.mean, tf.zeros([], tf.float64))

    def _by_rows(
        self, method: Callable[[_Mixture, tf.Tensor], tf.Tensor], argument: tf.Tensor
    ) -> tf.Tensor:
        """`method` of the mixture at `argument`, broadcast, at most `_ROWS` rows at a time."""
        values = (self.alpha, self.beta, 2.0 / self.tau, argument)
        shape = tf.shape(argument)
        for value in values:
            shape = tf.broadcast_dynamic_shape(shape, tf.shape(value))
        count = tf.reduce_prod(shape)
        rows = tf.clip_by_value(count, 1, _ROWS)
        blocks = -(-count // rows)
        padding = [[0, blocks * rows - count]]
        # Padded rows are the harmless law Beta(1, 1) with exp(z), at 1.
        columns = tuple(
            tf.reshape(
                tf.pad(tf.reshape(tf.broadcast_to(v, shape), [-1]), padding, constant_values=1.0),
                [blocks, rows],
            )
            for v in values
        )
        mapped = tf.map_fn(
            lambda block: method(_Mixture.of(block[:3], self._tau_low), block[3]),
            columns,
            fn_output_signature=tf.float64,
        )
        return tf.reshape(tf.reshape(mapped, [-1])[:count], shape)


class _Mixture(NamedTuple):
    """The J Beta laws that make up rows of the law of z; everything is float64.

    The sum over W_i * D(alpha + i) is worked out in Q blocks of K terms: a block's first D has an
    exponential of its own, the others follow from it by a table of ratios and powers of z. That is
    K + Q exponentials for a value of the CDF in place of J = K * Q.

    Attributes:
      alpha: [R].
      beta: [R].
      rate: [R], k = 2 / tau.
      weights: [R, J], w_j, summing to 1 in a row.
      log_normaliser: [R], the log of the integral of the density as it stands above.
      anchors: [R, Q], log(D(alpha + K * q)) without its powers of z and 1 - z.
      table: [R, Q, K], W_i * D(alpha + i) / D(alpha + K * q) without powers of z.
    """

    alpha: tf.Tensor
    beta: tf.Tensor
    rate: tf.Tensor
    weights: tf.Tensor
    log_normaliser: tf.Tensor
    anchors: tf.Tensor
    table: tf.Tensor

    @classmethod
    def of(cls, rows: tuple[tf.Tensor, ...], tau_low: float | None) -> _Mixture:
        """The mixture of `rows`, which are alpha, beta and rate, [R] each."""
        alpha, beta, rate = rows
        j = tf.range(_terms(rate, tau_low), dtype=tf.float64)
        first = alpha[:, None] + j
        log_beta = (
            tf.math.lgamma(first)
            + tf.math.lgamma(beta)[:, None]
            - tf.math.lgamma(first + beta[:, None])
        )
        log_weights = j * tf.math.log(rate)[:, None] - tf.math.lgamma(j + 1.0) + log_beta
        weights = tf.nn.softmax(log_weights, axis=1)
        log_steps = tf.reshape(-tf.math.log(first) - log_beta, [tf.shape(alpha)[0], -1, _BLOCK])
        cumulated = tf.reshape(tf.cumsum(weights, axis=1), tf.shape(log_steps))
        return cls(
            alpha=alpha,
            beta=beta,
            rate=rate,
            weights=weights,
            log_normaliser=tf.reduce_logsumexp(log_weights, axis=1),
            anchors=log_steps[:, :, 0],
            table=cumulated * tf.exp(log_steps - log_steps[:, :, :1]),
        )

    def log_prob(self, z: tf.Tensor) -> tf.Tensor:
        return (
            (self.alpha - 1.0) * tf.math.log(z)
            + (self.beta - 1.0) * tf.math.log1p(-z)
            + self.rate * z
            - self.log_normaliser
        )

    def cdf(self, z: tf.Tensor) -> tf.Tensor:
        interior = (z > 0.0) & (z < 1.0)
        inside = tf.where(interior, z, 0.5)
        log_z, log_rest = tf.math.log(inside)[:, None], tf.math.log1p(-inside)[:, None]
        starts = self.alpha[:, None] + _BLOCK * _range(tf.shape(self.anchors)[1])
        firsts = tf.exp(self.anchors + starts * log_z + self.beta[:, None] * log_rest)
        followers = tf.linalg.matvec(self.table, tf.exp(_range(_BLOCK) * log_z))
        steps = tf.reduce_sum(firsts * followers, axis=1)
        terms = tf.cast(tf.shape(self.weights)[1], tf.float64)
        total = betainc(self.alpha + terms, self.beta, z) + tf.where(interior, steps, 0.0)
        return tf.minimum(total, 1.0)

    def quantile(self, p: tf.Tensor) -> tf.Tensor:
        return quantile(self.cdf, self.log_prob, p)

    def mean(self, _: tf.Tensor) -> tf.Tensor:
        first = self.alpha[:, None] + _range(tf.shape(self.weights)[1])
        return tf.reduce_sum(self.weights * first / (first + self.beta[:, None]), axis=1)


def _range(size: tf.Tensor | int) -> tf.Tensor:
    return tf.cast(tf.range(size), tf.float64)


def _terms(rate: tf.Tensor, tau_low: float | None) -> tf.Tensor | float:
    """J, a multiple of the block; a Python number when `tau_low` is given.

    The weights fall faster than those of a Poisson law of mean k: 8 standard deviations beyond it
    leave out less than 1e-14.
    """
    if tau_low is not None:
        largest = 2.0 / tau_low
        return _BLOCK * float(math.ceil((largest + 8.0 * math.sqrt(largest) + 30.0) / _BLOCK))
    # A row outside the domain is NaN in a graph; it must not decide for its neighbours.
    largest = tf.reduce_max(tf.where(tf.math.is_nan(rate), tf.ones_like(rate), rate))
    return _BLOCK * tf.math.ceil((largest + 8.0 * tf.sqrt(largest) + 30.0) / _BLOCK)
