"""The logit of a query and an item: the one function that the losses and the cut-offs share."""

from typing import Any, Literal

import tensorflow as tf

Family = Literal["beta", "exponential"]

# The smallest z that a logit tells apart from 0: below it the loss would have an unbounded gradient
# for an item that is antipodal to the query.
Z_LOW = 1e-6


def relevance_logit(s: tf.Tensor, tau: Any, family: Family = "beta") -> tf.Tensor:
    """The log of r(d, q) up to a constant of the query: log(z) / tau (BetaNCE) or s / tau (ExpNCE).

    Args:
      s: Cosines in [-1, 1], of any shape.
      tau: Temperatures, broadcastable with `s`.
      family: "beta" (paper, section 3.2.2) or "exponential" (section 3.2.1).

    Returns:
      Logits of the broadcast shape, in the dtype of `s`; the Beta family's z is held above `Z_LOW`.
    """
    if require_family(family) == "exponential":
        return s / tau
    return tf.math.log(tf.maximum((1.0 + s) / 2.0, Z_LOW)) / tau


def cosine_of_logit(logit: tf.Tensor, tau: Any, family: Family = "beta") -> tf.Tensor:
    """The cosine that has this logit, the inverse of `relevance_logit`; above 1 when none has."""
    if require_family(family) == "exponential":
        return logit * tau
    return 2.0 * tf.exp(logit * tau) - 1.0


def require_family(family: Family) -> Family:
    """The family itself, when it is one."""
    if family not in ("beta", "exponential"):
        raise ValueError(f"family must be 'beta' or 'exponential'. Received: {family!r}.")
    return family
