"""Encodes query texts with the query model, in this process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import tensorflow as tf

from pebr_tf.errors import UserError
from pebr_tf.retrieval.encoded import ENCODED_FIELDS, EncodedQueries


class Encoder(Protocol):
    """Turns texts into `EncodedQueries`; thread-safe."""

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> EncodedQueries:
        """Encodes texts [B] before `deadline`, on the clock of `time.monotonic`."""
        ...


def tune_for_small_graphs() -> None:
    """Makes TensorFlow fast for graphs of many small operations; call it before the first use.

    A query model has hundreds of small operations: passing them between threads takes longer than
    running them, and so do the graph's assertions on values that the model itself computed.
    """
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.optimizer.set_experimental_options({"debug_stripper": True})


class EmbeddedEncoder:
    """A query model loaded into this process; thread-safe."""

    def __init__(self, directory: Path):
        try:
            self._model = tf.saved_model.load(str(directory))
            self._function = self._model.signatures["serving_default"]
        except (OSError, KeyError) as error:
            raise UserError(f"{directory} must be a query model. Received: {error}.") from None

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> EncodedQueries:
        """Encodes texts [B]; takes milliseconds, so the deadline is ignored."""
        outputs = self._function(query=tf.constant(list(queries), tf.string, [len(queries)]))
        return EncodedQueries(**{name: outputs[name].numpy() for name in ENCODED_FIELDS})
