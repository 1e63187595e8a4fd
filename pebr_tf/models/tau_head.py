"""The temperature of each query."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

from pebr_tf.config import Towers
from pebr_tf.models.query_head import QueryHead


class TauHead(QueryHead):
    """tau_q = tau_initial * exp(perceptron(features)), held to [tau_min, tau_max].

    The clamp lets the gradient through, so that a query can leave an end of the range.
    """

    def __init__(
        self,
        tau_initial: float = Towers.tau_initial,
        tau_min: float = Towers.tau_min,
        tau_max: float = Towers.tau_max,
        hidden: Sequence[int] = Towers.tau_hidden_layers,
        **kwargs: Any,
    ):
        """Makes the head; every query starts at `tau_initial`. `hidden` are widths of layers."""
        super().__init__(1, hidden, **kwargs)
        self.tau_initial, self.tau_min, self.tau_max = tau_initial, tau_min, tau_max

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Temperatures [B] of pooled query features [B, n]."""
        log_tau = math.log(self.tau_initial) + self.raw(features)[:, 0]
        low, high = math.log(self.tau_min), math.log(self.tau_max)
        log_tau = tfp.math.clip_by_value_preserve_gradient(log_tau, low, high)
        # The exponential of a rounded logarithm may step over an end by an ulp.
        return tfp.math.clip_by_value_preserve_gradient(tf.exp(log_tau), self.tau_min, self.tau_max)
