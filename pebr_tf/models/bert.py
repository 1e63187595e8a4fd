"""BERT: the tokens of a text to one unit vector, with the weights of a folder."""

from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.models.bert_folder import BertFolder

# Texts that are encoded at once where no gradient is needed, sorted by their lengths.
CHUNK = 64
_DENSE = {
    "_project": "attention.output.dense",
    "_wide": "intermediate.dense",
    "_narrow": "output.dense",
}
_NORMS = {"_attended_norm": "attention.output.LayerNorm", "_norm": "output.LayerNorm"}


class Bert(tf.keras.layers.Layer):
    """Word pieces through layers of attention, pooled to a vector."""

    def __init__(
        self, folder: BertFolder, trained: int = 0, recompute: bool = False, **kwargs: Any
    ):
        """Makes the layers with the weights of the folder.

        Args:
          folder: The weights.
          trained: Layers that training changes, from the top; more than there are: the embeddings,
            too.
          recompute: Whether the gradient computes the layers anew, to save memory.
          **kwargs: Of a Keras layer.
        """
        super().__init__(**kwargs)
        self._pooling, self._recompute = folder.pooling, recompute
        self._frozen = folder.layers - trained
        arrays = folder.weights
        words, positions, types, scale, offset = (
            arrays[f"embeddings.{name}"]
            for name in (
                "word_embeddings.weight",
                "position_embeddings.weight",
                "token_type_embeddings.weight",
                "LayerNorm.weight",
                "LayerNorm.bias",
            )
        )
        self._words, self._positions = (
            self.add_weight(
                name=name,
                shape=array.shape,
                initializer=lambda shape, dtype, array=array: tf.constant(array, dtype),
                trainable=self._frozen < 0,
            )
            # A text is one segment.
            for name, array in (("words", words), ("positions", positions + types[0]))
        )
        policy = self._dtype_policy
        self._norm = _norm(folder, scale, offset, policy)
        self._norm.trainable = self._frozen < 0
        self._blocks = [
            _Block(folder, f"encoder.layer.{i}.", dtype=policy) for i in range(folder.layers)
        ]
        for block in self._blocks[: max(self._frozen, 0)]:
            block.trainable = False

    def call(self, ids: tf.RaggedTensor, training: bool = False) -> tf.Tensor:
        """Unit vectors [B, d], float32, of pieces [B, (T)]."""
        if training and self._frozen < len(self._blocks):
            return self._encoded(ids, self._recompute)
        # A few texts of like lengths at a time: padding costs time, and attention much memory.
        order = tf.argsort(ids.row_lengths(), stable=True)
        count = tf.shape(order)[0]
        parts = tf.TensorArray(
            tf.float32, 0, dynamic_size=True, infer_shape=False, element_shape=[None, self.width]
        )

        def step(place: tf.Tensor, parts: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            rows = order[place * CHUNK : (place + 1) * CHUNK]
            return place + 1, parts.write(place, self._encoded(tf.gather(ids, rows)))

        chunks = tf.maximum((count + CHUNK - 1) // CHUNK, 1)
        _, parts = tf.while_loop(
            lambda place, _: place < chunks, step, (0, parts), parallel_iterations=1
        )
        return tf.gather(parts.concat(), tf.math.invert_permutation(order))

    @property
    def width(self) -> int:
        """Length d of a vector."""
        return int(self._words.shape[1])

    def factors(self, decay: float) -> dict[str, float]:
        """By the identity of each trained variable what multiplies its learning rate.

        The top layer has 1, and each layer below `decay` times the one above.
        """
        bottom = [self._words, self._positions, *self._norm.variables]
        levels = [block.trainable_variables for block in self._blocks[::-1]]
        levels.append(bottom if self._frozen < 0 else [])
        return {
            variable._unique_id: decay**depth
            for depth, variables in enumerate(levels)
            for variable in variables
        }

    def _encoded(self, ids: tf.RaggedTensor, recompute: bool = False) -> tf.Tensor:
        lengths, places = ids.row_lengths(), ids.to_tensor()
        longest = tf.shape(places)[1]
        shape = [tf.shape(places)[0], longest, self.width]
        mask = tf.sequence_mask(lengths, longest)
        vectors = tf.gather(self._words, places) + self._positions[:longest]
        vectors = self._norm(tf.reshape(vectors, [-1, self.width]))
        # Nothing behind the end of a text is attended to.
        bias = tf.where(mask, 0.0, -1e9)[:, tf.newaxis, tf.newaxis, :]
        for place, block in enumerate(self._blocks):
            if place == self._frozen:
                vectors = tf.stop_gradient(vectors)
            again = recompute and place >= self._frozen
            vectors = (tf.recompute_grad(block) if again else block)(vectors, bias)
        vectors = tf.cast(tf.reshape(vectors, shape), tf.float32)
        if self._pooling == "cls":
            pooled = vectors[:, 0]
        else:
            # The length of the sum does not count.
            pooled = tf.reduce_sum(vectors * tf.cast(mask, tf.float32)[:, :, tf.newaxis], axis=1)
        return tf.math.l2_normalize(pooled, axis=1)


class _Block(tf.keras.layers.Layer):
    """Attention, then two dense layers, each added to its input and normed after it."""

    def __init__(self, folder: BertFolder, prefix: str, **kwargs: Any):
        super().__init__(**kwargs)
        policy = self._dtype_policy
        self._heads, self._width = folder.heads, folder.width
        arrays = {
            name.removeprefix(prefix): array
            for name, array in folder.weights.items()
            if name.startswith(prefix)
        }
        # One product for queries, keys and values.
        joined = {
            part: np.concatenate(
                [arrays[f"attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            )
            for part in ("weight", "bias")
        }
        self._attend = _dense(joined["weight"], joined["bias"], policy)
        for attribute, name in _DENSE.items():
            dense = _dense(arrays[f"{name}.weight"], arrays[f"{name}.bias"], policy)
            setattr(self, attribute, dense)
        for attribute, name in _NORMS.items():
            norm = _norm(folder, arrays[f"{name}.weight"], arrays[f"{name}.bias"], policy)
            setattr(self, attribute, norm)

    def call(self, vectors: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        """[B * T, d] of the same shape; `bias` [B, 1, 1, T] is added to the scores."""
        batch, longest = tf.shape(bias)[0], tf.shape(bias)[3]
        size = self._width // self._heads
        parts = tf.reshape(self._attend(vectors), [batch, longest, 3, self._heads, size])
        query, key, value = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
        scores = tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32)
        shares = tf.nn.softmax(scores / size**0.5 + bias)
        attended = tf.matmul(tf.cast(shares, self.compute_dtype), value)
        attended = tf.reshape(tf.transpose(attended, [0, 2, 1, 3]), [-1, self._width])
        vectors = self._attended_norm(vectors + self._project(attended))
        wide = tf.nn.gelu(self._wide(vectors), approximate=False)
        return self._norm(vectors + self._narrow(wide))


def _dense(weight: np.ndarray, bias: np.ndarray, policy: Any) -> tf.keras.layers.Dense:
    layer = tf.keras.layers.Dense(len(bias), dtype=policy)
    layer.build([None, weight.shape[1]])
    layer.set_weights([weight.T, bias])
    return layer


def _norm(
    folder: BertFolder, scale: np.ndarray, offset: np.ndarray, policy: Any
) -> tf.keras.layers.LayerNormalization:
    layer = tf.keras.layers.LayerNormalization(epsilon=folder.epsilon, dtype=policy)
    layer.build([None, folder.width])
    layer.set_weights([scale, offset])
    return layer
