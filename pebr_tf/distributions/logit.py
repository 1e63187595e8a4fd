"""The logit of a query and an item: the one function that the losses and the cut-offs share."""

from typing import Any, Literal

import tensorflow as tf

Family = Literal["beta", "exponential"]

# Below this z the logarithm continues as its tangent. A z so small is a cosine under -.9998, which
# random vectors reach only in two or three dimensions; float32 still resolves z to .03% there.
UNIT_EPSILON = 1e-4


def log_unit(cosines: tf.Tensor) -> tf.Tensor:
    """The logarithm of z = (1 + s) / 2, continued as its tangent below UNIT_EPSILON.

        log z                                                   if z >= UNIT_EPSILON
        log UNIT_EPSILON + (z - UNIT_EPSILON) / UNIT_EPSILON    otherwise

    Value and slope are continuous, the slope is at most 1 / UNIT_EPSILON, and it never vanishes, as
    it would under a plain clip: a positive at the opposite pole still gets a gradient. Cosines s
    have any shape; rounding may put them a little outside [-1, 1]. The values of -s are log(1 - z).
    """
    z = (1.0 + cosines) / 2.0
    held = tf.maximum(z, UNIT_EPSILON)
    return tf.math.log(held) + (z - held) / UNIT_EPSILON


def relevance_logit(s: tf.Tensor, tau: Any, family: Family = "beta") -> tf.Tensor:
    """The log of r(d, q) up to a constant of the query: log(z) / tau (BetaNCE) or s / tau (ExpNCE).

    Cosines `s` of any shape broadcast with temperatures `tau` (paper, sections 3.2.2 and 3.2.1).
    """
    scores = log_unit(s) if family == "beta" else s
    return scores / tau


def cosine_of_logit(logit: tf.Tensor, tau: Any, family: Family = "beta") -> tf.Tensor:
    """The cosine that has this logit, the inverse of `relevance_logit` for cosines above -.9998.

    A value above 1 means that no cosine has it.
    """
    if family == "exponential":
        return logit * tau
    return 2.0 * tf.exp(logit * tau) - 1.0
