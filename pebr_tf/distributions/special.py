"""Numerics under the laws: the incomplete beta function and the inverse of a CDF."""

from collections.abc import Callable

import tensorflow as tf
import tensorflow_probability as tfp

# Densities are evaluated this far inside [0, 1], half a float32 step below 1, so that they and
# their gradients stay finite where a density is 0 or infinite at an end.
Z_MARGIN = 2.0**-25

# How closely the search encloses a quantile; in float32, a cosine near 1 is told apart to 6e-8.
Z_TOLERANCE = 1e-8


@tf.custom_gradient
def betainc(a: tf.Tensor, b: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Regularised incomplete beta function I_x(a, b), differentiable in all three.

    Forward it is `tf.math.betainc`, which has no gradient in a and b; backward it is the derivative
    of `tfp.math.betainc`, whose own forward pass is several times slower. All are float64 and
    broadcast; a and b are positive, x is in [0, 1].
    """
    shape = tf.broadcast_dynamic_shape(
        tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b)), tf.shape(x)
    )
    # The op broadcasts scalars only.
    a_full, b_full, x_full = (tf.broadcast_to(value, shape) for value in (a, b, x))

    def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([a, b, x])
            value = tfp.math.betainc(a, b, x)
        return tape.gradient(value, [a, b, x], output_gradients=upstream)

    return tf.math.betainc(a_full, b_full, x_full), gradient


def quantile(
    cdf: Callable[[tf.Tensor], tf.Tensor],
    log_prob: Callable[[tf.Tensor], tf.Tensor],
    p: tf.Tensor,
    guess: tf.Tensor,
) -> tf.Tensor:
    """The z in [0, 1] with cdf(z) = p, by a bracketed search, with its gradient.

    A good guess ends the search before it begins, a bad one costs nothing but time: it is used only
    where the CDF confirms it. The search itself has no gradient; one Newton step from the root, of
    length zero, gives the implicit one, dz = (dp - dF) / f.

    `cdf` maps float64 z in [0, 1] to P(Z < z), elementwise; `log_prob` is the log density, finite
    on (0, 1). The probabilities p have the full, broadcast shape, and so have the guesses, in
    [0, 1]; NaN stays NaN. The result is off by at most 2e-8.
    """
    low = tf.clip_by_value(guess - Z_TOLERANCE, 0.0, 1.0)
    high = tf.clip_by_value(guess + Z_TOLERANCE, 0.0, 1.0)
    confirmed = (cdf(low) <= p) & (p <= cdf(high))
    low, high = tf.where(confirmed, low, 0.0), tf.where(confirmed, high, 1.0)
    root = tfp.math.find_root_chandrupatla(
        lambda z: cdf(z) - p,
        low,
        high,
        position_tolerance=Z_TOLERANCE,
        value_tolerance=0.0,
        max_iterations=100,
    ).estimated_root
    root = tf.stop_gradient(root)
    slope = tf.exp(log_prob(tf.clip_by_value(root, Z_MARGIN, 1.0 - Z_MARGIN)))
    residual = p - cdf(root)
    return root + tf.math.divide_no_nan(
        residual - tf.stop_gradient(residual), tf.stop_gradient(slope)
    )
