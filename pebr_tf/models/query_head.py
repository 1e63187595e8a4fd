"""The base of the heads on query features: a small network in full precision."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


class QueryHead(tf.keras.layers.Layer):
    """A perceptron on query features, float32 also under mixed precision.

    The last layer starts at zero, so that every query starts with the same documented values.

    Attributes:
      hidden: Widths of the hidden layers; without any the head is linear.
    """

    def __init__(self, outputs: int, hidden: Sequence[int] = (64,), **kwargs: Any):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.hidden = tuple(hidden)
        if any(not isinstance(width, int) or width < 1 for width in self.hidden):
            raise ValueError(f"hidden must hold integers of at least 1. Received: {self.hidden}.")
        layers = [tf.keras.layers.Dense(w, "relu", dtype="float32") for w in self.hidden]
        last = tf.keras.layers.Dense(outputs, kernel_initializer="zeros", dtype="float32")
        self._perceptron = [*layers, last]

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__} requires features of shape [B, n] with a known n. "
                f"Received: {tuple(input_shape)}."
            )
        for layer in self._perceptron:
            layer.build(input_shape)
            input_shape = layer.compute_output_shape(input_shape)
        super().build(input_shape)

    def raw(self, features: tf.Tensor) -> tf.Tensor:
        """The perceptron's outputs, [B, outputs], for features [B, n]."""
        for layer in self._perceptron:
            features = layer(features)
        return features
