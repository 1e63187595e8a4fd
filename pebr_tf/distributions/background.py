"""The corpus background: the law of a query's cosine with a random item, from two moments.

The cosine of a unit query q with a random item has mean q.mu and variance q' Sigma q, where mu and
Sigma are the mean and covariance of the item vectors: no sampling, one matrix-vector product. The
Beta law with these moments is the paper's p(d) = Beta(a_k, b_k) with a real background in place of
the uniform one; `Beta.tilted` makes the law of the relevant items from it.
"""

from typing import Any

import tensorflow as tf

from pebr_tf.distributions import domain
from pebr_tf.distributions.beta import PARAMETER_HIGH, PARAMETER_LOW, Beta


def background_law(query: Any, item_mean: Any, item_covariance: Any) -> Beta:
    """The background laws [B] of unit query vectors [B, n], in their dtype.

    `item_mean` [n] and `item_covariance` [n, n] are those of the unit item vectors.
    """
    dtype = domain.result_dtype(query)
    query, item_mean, item_covariance = (
        domain.to_float64(value) for value in (query, item_mean, item_covariance)
    )
    mean = (1.0 + tf.linalg.matvec(query, item_mean)) / 2.0
    variance = tf.einsum("bn,nm,bm->b", query, item_covariance, query) / 4.0
    law = beta_of_moments(mean, variance)
    return Beta(tf.cast(law.alpha, dtype), tf.cast(law.beta, dtype))


def beta_of_moments(mean: tf.Tensor, variance: tf.Tensor) -> Beta:
    """The Beta law with a mean and a variance of z, float64 tensors of one shape.

    Beta(m * c, (1 - m) * c) with c = m * (1 - m) / v - 1. Both parameters are held to the domain of
    `Beta`, which only matters for cosines that are (nearly) all the same, or all at both ends.
    """
    mean = tf.clip_by_value(mean, 1e-9, 1.0 - 1e-9)
    spread = mean * (1.0 - mean)
    concentration = spread / tf.clip_by_value(variance, 1e-12 * spread, spread) - 1.0
    alpha, beta = (
        tf.clip_by_value(share * concentration, PARAMETER_LOW, PARAMETER_HIGH)
        for share in (mean, 1.0 - mean)
    )
    return Beta(alpha, beta)
