"""Predicts the level of each query before the search."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pebr_tf.distributions.law import traced_as_is
from pebr_tf.distributions.logit import Family, require_family
from pebr_tf.models.query_head import QueryHead


@tf.keras.utils.register_keras_serializable("pebr_tf")
class LevelHead(QueryHead):
    """Regresses tau_q * level_q, the level on the scale of cosines, on the frozen query vector.

    On that scale the target is bounded for every temperature: log(z_hi) <= 0 for the Beta family,
    a cosine in [-1, 1] for the exponential one. The head's outputs have the same bounds.
    """

    def __init__(self, family: Family = "beta", hidden: Sequence[int] = (128, 128), **kwargs: Any):
        """Makes the head.

        Args:
          family: Which logit the level is made of; see `pebr_tf.distributions.logit`.
          hidden: Widths of the hidden layers.
          **kwargs: Of the Keras layer.
        """
        super().__init__(1, hidden, **kwargs)
        self.family = require_family(family)

    def call(self, query_vectors: tf.Tensor, tau: tf.Tensor) -> tf.Tensor:
        """Levels [B] of query vectors [B, n] with temperatures tau [B]."""
        return self._scaled(query_vectors) / tf.stop_gradient(tau)

    @traced_as_is
    def squared_error(
        self, query_vectors: tf.Tensor, tau: tf.Tensor, level: tf.Tensor
    ) -> tf.Tensor:
        """What to minimise, [B]: the squared error of tau * level against measured levels [B]."""
        return tf.math.squared_difference(self(query_vectors, tau) * tau, tau * level)

    def _scaled(self, query_vectors: tf.Tensor) -> tf.Tensor:
        raw = self.raw(tf.stop_gradient(query_vectors))[:, 0]
        return tf.tanh(raw) if self.family == "exponential" else -tf.nn.softplus(raw)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "family": self.family}
