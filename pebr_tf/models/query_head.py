"""The base of the heads on query features: a small network in full precision."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


class QueryHead(tf.keras.layers.Layer):
    """A perceptron on query features, float32 also under mixed precision.

    The last layer starts at zero, so that every query starts with the same documented values.
    Without the widths of `hidden` layers the head is linear.
    """

    def __init__(self, outputs: int, hidden: Sequence[int] = (64,), **kwargs: Any):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        layers = [tf.keras.layers.Dense(w, "relu", dtype="float32") for w in hidden]
        last = tf.keras.layers.Dense(outputs, kernel_initializer="zeros", dtype="float32")
        self._perceptron = [*layers, last]

    def build(self, input_shape: Any) -> None:
        for layer in self._perceptron:
            layer.build(input_shape)
            input_shape = layer.compute_output_shape(input_shape)
        super().build(input_shape)

    def raw(self, features: tf.Tensor) -> tf.Tensor:
        """The perceptron's outputs, [B, outputs], for features [B, n]."""
        for layer in self._perceptron:
            features = layer(features)
        return features
