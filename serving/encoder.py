"""Query texts to all that is known of them before the search, with the query model in-process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from pebr_tf.errors import UserError


@dataclass(frozen=True)
class Encoded:
    """What the query model says of B queries.

    Attributes:
      embedding: [B, n] float32 unit vectors.
      tau: [B] float32 temperatures.
      level: [B] float32 levels, by the head.
      threshold: [B] float32 cosines of the default knob, by the head's level.
      stratum: [B] int64 places in `pebr_tf.metrics.STRATA`.
    """

    embedding: np.ndarray
    tau: np.ndarray
    level: np.ndarray
    threshold: np.ndarray
    stratum: np.ndarray

    def __len__(self) -> int:
        return len(self.tau)


class EmbeddedEncoder:
    """A query model loaded into this process; safe for concurrent callers."""

    def __init__(self, directory: Path):
        """Loads a SavedModel with the signature `serving_default` of `serving.signatures`."""
        try:
            self._model = tf.saved_model.load(str(directory))
            self._function = self._model.signatures["serving_default"]
        except (OSError, KeyError) as error:
            raise UserError(f"{directory} must be a query model. Received: {error}.") from None

    def encode(self, queries: Sequence[str]) -> Encoded:
        """Encodes texts [B]."""
        outputs = self._function(query=tf.constant(list(queries), tf.string, [len(queries)]))
        return Encoded(**{name: outputs[name].numpy() for name in Encoded.__dataclass_fields__})
