"""One tower: ids of a query or an item to a unit vector."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from pebr_tf.config import Towers
from pebr_tf.models.bert import Bert
from pebr_tf.models.fields import Field
from pebr_tf.models.transformer import TextTransformer


class TokenTables(tf.keras.layers.Layer):
    """A vector for every word of every vocabulary; two towers may share one instance.

    Attributes:
      tables: Variables [V, d] by vocabulary.
    """

    def __init__(self, sizes: Mapping[str, int], dimension: int, **kwargs: Any):
        super().__init__(**{"dtype": "float32", **kwargs})
        # Keeps the pooled vectors of the order of one.
        bound = 0.5 / dimension**0.5
        self.tables = {
            name: self.add_weight(
                name=name,
                shape=(size, dimension),
                # A shared initializer would fill all tables with the same numbers.
                initializer=tf.keras.initializers.RandomUniform(-bound, bound),
            )
            for name, size in sizes.items()
        }

    def call(self, ids: tf.RaggedTensor, vocabulary: str) -> tf.Tensor:
        """[B, d], the sum of the vectors of ids [B, (T)] over the root of their number.

        The root keeps short and long texts on one scale, because the vectors of a text point in
        many directions.
        """
        # The unique rows are gathered first: under a strategy TensorFlow's own lookup copies the
        # whole table, or has a dense gradient, which would travel between the workers in every
        # step and make Adam move rows that the batch does not have.
        unique, indices = tf.unique(ids.flat_values)
        rows = tf.gather(_own_copy(self.tables[vocabulary]), unique)
        return tf.nn.embedding_lookup_sparse(
            rows, ids.with_flat_values(indices), None, combiner="sqrtn", allow_fast_lookup=True
        )


def _own_copy(variable: tf.Variable) -> tf.Variable:
    """The copy of a variable on this replica's device; outside a replica the variable itself."""
    context = tf.distribute.get_replica_context()
    if context is None:
        return variable
    copies = context.strategy.experimental_local_results(variable)
    return copies[tf.get_static_value(context.replica_id_in_sync_group) % len(copies)]


class Tower(tf.keras.layers.Layer):
    """Pools each field, then a perceptron makes the unit vector (DSSM).

    Text may go through a transformer in place of the sum of its tokens, and through a pretrained
    encoder beside them.
    """

    def __init__(
        self,
        fields: tuple[Field, ...],
        tables: TokenTables,
        towers: Towers,
        max_tokens: int = 64,
        encoder: Bert | None = None,
        **kwargs: Any,
    ):
        """Makes a tower of `fields`, whose vectors are in `tables`.

        A transformer reads at most `max_tokens` tokens of a text. The encoder is one that is
        trained; of a frozen one the batches have the vectors.
        """
        super().__init__(**kwargs)
        self.fields, self.tables, self._encoder = fields, tables, encoder
        self._hidden = [tf.keras.layers.Dense(w, "relu") for w in towers.hidden_layers]
        self._dropout = tf.keras.layers.Dropout(towers.dropout)
        self._last = tf.keras.layers.Dense(towers.dimension)
        self._transformer = None
        if towers.kind == "transformer" and any(field.kind == "text" for field in fields):
            # All text fields share one, because they share one vocabulary.
            self._transformer = TextTransformer(towers, max_tokens, name="transformer")

    def pooled(self, features: Mapping[str, Any], training: bool = False) -> tf.Tensor:
        """[B, F] pooled fields, the input of the perceptron."""
        parts = [self._pool(field, features[field.name], training) for field in self.fields]
        return tf.concat(parts, axis=1)

    def _pool(self, field: Field, values: Any, training: bool) -> tf.Tensor:
        if field.kind == "number":
            return values[:, tf.newaxis]
        if field.kind == "encoded":
            return self._encoder(values, training=training) if self._encoder else values
        if field.kind == "text" and self._transformer is not None:
            table = self.tables.tables[field.vocabulary]
            return self._transformer(table, values, training=training)
        return self.tables(values, field.vocabulary)

    def call(self, pooled: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Unit vectors [B, n], float32 under every precision, of `pooled` [B, F]."""
        for layer in self._hidden:
            pooled = self._dropout(layer(pooled), training=training)
        return tf.math.l2_normalize(tf.cast(self._last(pooled), tf.float32), axis=1)
