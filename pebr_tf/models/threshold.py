"""From a query's law and the share to keep, to the cosine where its list ends."""

import tensorflow as tf

from pebr_tf.distributions import Beta


@tf.keras.utils.register_keras_serializable("pebr_tf")
class ThresholdLayer(tf.keras.layers.Layer):
    """The cosine above which a share of a query's relevant items lies, by its Beta law.

    It has no weights. In a graph, and so in a SavedModel, input outside the law's domain gives NaN.
    """

    def call(self, alpha: tf.Tensor, beta: tf.Tensor, share: tf.Tensor) -> tf.Tensor:
        """Thresholds [B] in [-1, 1] of laws Beta(alpha, beta) [B] and shares in [0, 1], [B]."""
        return Beta(alpha, beta).threshold(share)
