"""Features of different texts, made once and looked up in every batch."""

from collections.abc import Sequence

import tensorflow as tf

from pebr_tf.training.batches import Batch


class TextTable:
    """The features of N different texts, in memory: about 4 bytes per token and 100 per text.

    Attributes:
      texts: [N] the texts.
      features: Tensors [N] and ragged ids [N, (T)], by name.
    """

    def __init__(self, parts: Sequence[tuple[tf.Tensor, Batch]]):
        """Joins parts, each with its texts [n] and their features."""
        self.texts = tf.concat([texts for texts, _ in parts], axis=0)
        names = parts[0][1]
        self.features = {
            name: tf.concat([_compact(features[name]) for _, features in parts], axis=0)
            for name in names
        }
        places = tf.range(tf.size(self.texts, tf.int64))
        initializer = tf.lookup.KeyValueTensorInitializer(self.texts, places)
        self._places = tf.lookup.StaticHashTable(initializer, -1)

    def __call__(self, texts: tf.Tensor) -> Batch:
        """The features of texts [B], all of which the table must have."""
        return self.at(self._places.lookup(texts))

    def at(self, places: tf.Tensor) -> Batch:
        return {name: tf.gather(values, places) for name, values in self.features.items()}


def _compact(values: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
    """Ids of tokens in 32 bits; hashes, which are not ragged, need all of theirs."""
    return tf.cast(values, tf.int32) if isinstance(values, tf.RaggedTensor) else values
