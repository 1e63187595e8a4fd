"""Encodes query texts with the query model, in this process."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import tensorflow as tf

from pebr_tf.errors import UserError
from pebr_tf.retrieval.encoded import ENCODED_FIELDS, TOWER_FIELDS, EncodedQueries


class Encoder(Protocol):
    """Turns texts into `EncodedQueries`; thread-safe."""

    def encode(
        self, queries: Sequence[str], deadline: float = math.inf, with_law: bool = True
    ) -> EncodedQueries:
        """Encodes texts [B] before `deadline`, on the clock of `time.monotonic`.

        Without the law, which a search for the level gives as well, it takes half of the time.
        """
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
            self._towers, self._full = (
                self._model.signatures[name] for name in ("encode", "serving_default")
            )
        except (OSError, KeyError) as error:
            raise UserError(f"{directory} must be a query model. Received: {error}.") from None

    def encode(
        self, queries: Sequence[str], deadline: float = math.inf, with_law: bool = True
    ) -> EncodedQueries:
        """Encodes texts [B]; takes milliseconds, so the deadline is ignored."""
        texts = tf.constant(list(queries), tf.string, [len(queries)])
        outputs = (self._full if with_law else self._towers)(query=texts)
        names = ENCODED_FIELDS if with_law else TOWER_FIELDS
        return EncodedQueries.of({name: outputs[name].numpy() for name in names})
