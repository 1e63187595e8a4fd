"""The towers' SavedModel: embeds items and queries, a batch at a time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import QueryVectors
from pebr_tf.errors import UserError
from pebr_tf.release.payload import ID_COLUMN

SIGNATURES = ("item", "query")
QUERY_BATCH = 1_024
_QUERY_OUTPUTS = ("embedding", "tau", "stratum", "frequency", "known_share")
_KINDS = {tf.string: "bytes_list", tf.float32: "float_list"}


class TowersModel:
    def __init__(self, path: str | Path, payload_columns: Sequence[str] = ()):
        """Loads the SavedModel.

        `payload_columns` are text columns to read beside the inputs of the item tower.

        Raises:
          UserError: There is no SavedModel, or it lacks a signature.
        """
        try:
            # The signatures do not keep their variables alive.
            self._model = tf.saved_model.load(str(path))
        except OSError as error:
            raise UserError(f"{path} must be a SavedModel. Received: {error}.") from None
        received = sorted(self._model.signatures)
        if not set(SIGNATURES) <= set(received):
            raise UserError(
                f"the model must have the signatures {' and '.join(SIGNATURES)}. "
                f"Received: {', '.join(received) or 'none'} in {path}."
            )
        self._item, self._query = (self._model.signatures[name] for name in SIGNATURES)
        inputs = self._item.structured_input_signature[1]
        self._item_inputs = {name: spec.dtype for name, spec in inputs.items()}
        text = dict.fromkeys((ID_COLUMN, *payload_columns), tf.string)
        self._columns = {**text, **self._item_inputs}
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
        vectors = self._item(**{name: parsed[name] for name in self._item_inputs})["embedding"]
        return vectors.numpy(), {name: column.numpy() for name, column in parsed.items()}

    def embed_queries(self, queries: Sequence[str]) -> QueryVectors:
        """Vectors, temperatures, strata and frequencies of one query or more."""
        batches = [
            self._query(query=tf.constant(queries[begin : begin + QUERY_BATCH]))
            for begin in range(0, len(queries), QUERY_BATCH)
        ]
        vectors, tau, strata, frequency, known = (
            np.concatenate([batch[name].numpy() for batch in batches]) for name in _QUERY_OUTPUTS
        )
        return QueryVectors(vectors, tau, strata, frequency=frequency, known_share=known)
