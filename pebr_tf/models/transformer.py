"""A text as the mean of its tokens' vectors after attention: what a sum of tokens cannot tell."""

from typing import Any

import tensorflow as tf

from pebr_tf.config import Towers


class TextTransformer(tf.keras.layers.Layer):
    """Token vectors and learned positions through layers of attention, then their mean.

    It takes the place of the sum in `TokenTables` for fields of text; its result has the same
    shape, so that the rest of a tower does not know the difference.
    """

    def __init__(self, towers: Towers, max_tokens: int, **kwargs: Any):
        """Makes the layer; tokens beyond `max_tokens` are left out."""
        super().__init__(**kwargs)
        self._max_tokens, self._width = max_tokens, towers.token_dimension
        self._layers = [_AttentionLayer(towers) for _ in range(towers.transformer_layers)]
        self._last_norm = tf.keras.layers.LayerNormalization(epsilon=1e-6)

    def build(self, input_shape: Any) -> None:
        """Makes the positions, which start small beside the tokens."""
        self._positions = self.add_weight(
            name="positions",
            shape=(self._max_tokens, self._width),
            initializer=tf.keras.initializers.RandomNormal(stddev=0.02),
        )
        super().build(input_shape)

    def call(self, table: tf.Tensor, ids: tf.RaggedTensor, training: bool = False) -> tf.Tensor:
        """[B, d], the vectors of texts with tokens `ids` [B, (T)] of the table [V, d]."""
        ids = ids[:, : self._max_tokens]
        lengths = ids.row_lengths()
        places = ids.to_tensor()
        vectors = tf.cast(tf.gather(table, places), self.compute_dtype)
        vectors += tf.cast(self._positions, self.compute_dtype)[: tf.shape(places)[1]]
        mask = tf.sequence_mask(lengths, tf.shape(places)[1])
        for layer in self._layers:
            vectors = layer(vectors, mask, training=training)
        weights = tf.cast(mask, tf.float32)[:, :, tf.newaxis]
        total = tf.reduce_sum(tf.cast(self._last_norm(vectors), tf.float32) * weights, axis=1)
        return total / tf.maximum(tf.reduce_sum(weights, axis=1), 1.0)


class _AttentionLayer(tf.keras.layers.Layer):
    """Attention, then two dense layers, each added to its input, which is normed before it."""

    def __init__(self, towers: Towers):
        super().__init__()
        width, heads = towers.token_dimension, towers.transformer_heads
        self._attention = tf.keras.layers.MultiHeadAttention(
            heads, width // heads, dropout=towers.dropout
        )
        self._wide = tf.keras.layers.Dense(4 * width, "gelu")
        self._narrow = tf.keras.layers.Dense(width)
        self._norms = [tf.keras.layers.LayerNormalization(epsilon=1e-6) for _ in range(2)]
        self._dropout = tf.keras.layers.Dropout(towers.dropout)

    def call(self, vectors: tf.Tensor, mask: tf.Tensor, training: bool = False) -> tf.Tensor:
        """[B, T, d] of the same shape; `mask` [B, T] is false behind the end of a text."""
        normed = self._norms[0](vectors)
        attended = self._attention(
            normed, normed, attention_mask=mask[:, tf.newaxis, :], training=training
        )
        vectors += self._dropout(attended, training=training)
        dense = self._narrow(self._wide(self._norms[1](vectors)))
        return vectors + self._dropout(dense, training=training)
