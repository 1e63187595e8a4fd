"""Query texts to all that is known of them before the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import tensorflow as tf

from pebr_tf.errors import UserError
from pebr_tf.retrieval.encoded import ENCODED_FIELDS, EncodedQueries


class Encoder(Protocol):
    """What turns texts into `EncodedQueries`; safe for concurrent callers."""

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> EncodedQueries:
        """Encodes texts [B], by `deadline` on the clock of `time.monotonic`."""
        ...


def tune_for_small_graphs() -> None:
    """Makes TensorFlow fast at graphs of many small operations; before its first use.

    A query model has hundreds of operations and no large one: handing them from thread to thread
    takes longer than they do, and so do the assertions among them, on what the model itself made.
    """
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.optimizer.set_experimental_options({"debug_stripper": True})


class EmbeddedEncoder:
    """A query model loaded into this process; safe for concurrent callers."""

    def __init__(self, directory: Path):
        """Loads a SavedModel with the signature `serving_default` of `serving.signatures`."""
        try:
            self._model = tf.saved_model.load(str(directory))
            self._function = self._model.signatures["serving_default"]
        except (OSError, KeyError) as error:
            raise UserError(f"{directory} must be a query model. Received: {error}.") from None

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> EncodedQueries:
        """Encodes texts [B]; takes milliseconds, so that no deadline is looked at."""
        outputs = self._function(query=tf.constant(list(queries), tf.string, [len(queries)]))
        return EncodedQueries(**{name: outputs[name].numpy() for name in ENCODED_FIELDS})
