"""The temperature of each query."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

from pebr_tf.models.query_head import QueryHead


@tf.keras.utils.register_keras_serializable("pebr_tf")
class TauHead(QueryHead):
    """tau_q = tau_start * exp(perceptron(features)), held to [tau_low, tau_high].

    The clamp lets the gradient through, so that a query at its end can come back.
    """

    def __init__(
        self,
        tau_start: float = 0.05,
        tau_low: float = 0.002,
        tau_high: float = 1.0,
        hidden: Sequence[int] = (64,),
        **kwargs: Any,
    ):
        """Makes the head.

        Args:
          tau_start: The temperature of every query before training.
          tau_low: The smallest temperature.
          tau_high: The largest temperature.
          hidden: Widths of the hidden layers.
          **kwargs: Of the Keras layer.

        Raises:
          ValueError: Not 0 < tau_low <= tau_start <= tau_high.
        """
        super().__init__(1, hidden, **kwargs)
        if not 0 < tau_low <= tau_start <= tau_high < math.inf:
            raise ValueError(
                "TauHead requires 0 < tau_low <= tau_start <= tau_high. "
                f"Received: {tau_low}, {tau_start} and {tau_high}."
            )
        self.tau_start, self.tau_low, self.tau_high = tau_start, tau_low, tau_high

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Temperatures [B] of pooled query features [B, n]."""
        log_tau = math.log(self.tau_start) + self.raw(features)[:, 0]
        low, high = math.log(self.tau_low), math.log(self.tau_high)
        log_tau = tfp.math.clip_by_value_preserve_gradient(log_tau, low, high)
        # The exponential of a rounded logarithm may step over an end by an ulp.
        return tfp.math.clip_by_value_preserve_gradient(
            tf.exp(log_tau), self.tau_low, self.tau_high
        )

    def get_config(self) -> dict[str, Any]:
        ours = {
            "tau_start": self.tau_start,
            "tau_low": self.tau_low,
            "tau_high": self.tau_high,
        }
        return {**super().get_config(), **ours}
