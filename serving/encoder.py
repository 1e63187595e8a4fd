"""Query texts to all that is known of them before the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import tensorflow as tf

from pebr_tf.errors import UserError


@dataclass(frozen=True)
class Encoded:
    """What the query model says of B queries.

    Attributes:
      embedding: [B, n] float32 unit vectors.
      tau: [B] float32 temperatures.
      alpha, beta: [B] float32, the Beta laws of the queries' relevant items.
      background_alpha, background_beta: [B] float32, the Beta laws of all items.
      level: [B] float32 levels, by the head.
      threshold: [B] float32 cosines of the default knob, by the head's level.
      stratum: [B] int64 places in `pebr_tf.metrics.STRATA`.
    """

    embedding: np.ndarray
    tau: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    background_alpha: np.ndarray
    background_beta: np.ndarray
    level: np.ndarray
    threshold: np.ndarray
    stratum: np.ndarray

    def __len__(self) -> int:
        return len(self.tau)

    def take(self, rows: np.ndarray | slice) -> Encoded:
        """The same of the queries at `rows`."""
        return Encoded(**{name: getattr(self, name)[rows] for name in NAMES})


NAMES = tuple(Encoded.__dataclass_fields__)


class Encoder(Protocol):
    """What turns texts into `Encoded`; safe for concurrent callers."""

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> Encoded:
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

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> Encoded:
        """Encodes texts [B]; takes milliseconds, so that no deadline is looked at."""
        outputs = self._function(query=tf.constant(list(queries), tf.string, [len(queries)]))
        return Encoded(**{name: outputs[name].numpy() for name in NAMES})
