"""A Beta law for each query, fitted by likelihood to frozen towers."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

from pebr_tf.distributions import Beta
from pebr_tf.distributions.law import traced_as_is
from pebr_tf.models.query_head import QueryHead

PARAMETER_LOW, PARAMETER_HIGH = 1e-2, 1e4


@tf.keras.utils.register_keras_serializable("pebr_tf")
class VectorLawHead(QueryHead):
    """alpha = m * c and beta = (1 - m) * c, with m the mean of z and c the concentration.

    Its inputs are cut off from the gradient: a likelihood that reached the towers would raise every
    cosine to 1, where any density can be made as high as one likes.
    """

    def __init__(self, hidden: Sequence[int] = (64,), **kwargs: Any):
        """Makes the head; before training every query has Beta(5, 5).

        Args:
          hidden: Widths of the hidden layers.
          **kwargs: Of the Keras layer.
        """
        super().__init__(2, hidden, **kwargs)

    def call(self, query_vectors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Parameters alpha [B] and beta [B], in [1e-2, 1e4], of query vectors [B, n]."""
        raw = self.raw(tf.stop_gradient(query_vectors))
        mean, concentration = tf.sigmoid(raw[:, 0]), 10.0 * tf.exp(raw[:, 1])
        alpha, beta = (
            tfp.math.clip_by_value_preserve_gradient(value, PARAMETER_LOW, PARAMETER_HIGH)
            for value in (mean * concentration, (1.0 - mean) * concentration)
        )
        return alpha, beta

    @traced_as_is
    def negative_log_likelihood(
        self, query_vectors: tf.Tensor, positive_cosines: tf.Tensor
    ) -> tf.Tensor:
        """What to minimise, [B], for the cosines [B] of each query with a relevant item."""
        alpha, beta = self(query_vectors)
        return -Beta(alpha, beta).log_prob(tf.stop_gradient(positive_cosines))
