"""The towers' SavedModel as IndexBuilder uses it: embeds items and queries."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tfx.dsl.io import fileio

from pebr_tf.errors import UserError

ITEM_ID = "item_id"
SIGNATURES = ("item", "query")
QUERY_BATCH = 1_024
_KINDS = {tf.string: "bytes_list", tf.float32: "float_list"}


class TowersModel:
    """Embeds items and queries in batches."""

    def __init__(self, path: str, payload_columns: Sequence[str] = ()):
        """Loads the SavedModel.

        `payload_columns` are text columns to read beside the inputs of the item tower.

        Raises:
          UserError: There is no SavedModel, or it lacks a signature.
        """
        if not fileio.exists(os.path.join(path, "saved_model.pb")):
            raise UserError(f"the model must be a SavedModel. Received: none in {path}.")
        # The signatures do not keep their variables alive.
        self._model = tf.saved_model.load(path)
        received = sorted(self._model.signatures)
        if not set(SIGNATURES) <= set(received):
            raise UserError(
                f"the model must have the signatures {' and '.join(SIGNATURES)}. "
                f"Received: {', '.join(received) or 'none'} in {path}."
            )
        self._item, self._query = (self._model.signatures[name] for name in SIGNATURES)
        inputs = self._item.structured_input_signature[1]
        self.item_inputs = {name: spec.dtype for name, spec in inputs.items()}
        text = dict.fromkeys((ITEM_ID, *payload_columns), tf.string)
        self._columns = {**text, **self.item_inputs}
        self._features = {
            name: tf.io.FixedLenFeature([], dtype) for name, dtype in self._columns.items()
        }

    def missing_columns(self, serialized: bytes) -> list[str]:
        """The columns that a serialized item lacks or has with another type."""
        features = tf.train.Example.FromString(serialized).features.feature
        return [
            name
            for name, dtype in self._columns.items()
            if name not in features or features[name].WhichOneof("kind") != _KINDS.get(dtype)
        ]

    def embed_items(self, serialized: Sequence[bytes]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The vectors [B, n] of B serialized items, and their columns, [B] each."""
        parsed = tf.io.parse_example(tf.constant(serialized, tf.string), self._features)
        vectors = self._item(**{name: parsed[name] for name in self.item_inputs})["embedding"]
        return vectors.numpy(), {name: column.numpy() for name, column in parsed.items()}

    def embed_queries(self, queries: Sequence[str]) -> np.ndarray:
        """The vectors [Q, n] of Q > 0 queries."""
        batches = [
            self._query(query=tf.constant(queries[begin : begin + QUERY_BATCH]))["embedding"]
            for begin in range(0, len(queries), QUERY_BATCH)
        ]
        return np.concatenate([batch.numpy() for batch in batches])
