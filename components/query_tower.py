"""The query side of the towers' SavedModel: texts to vectors and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import QueryVectors
from pebr_tf.errors import UserError

BATCH = 1_024
OUTPUTS = ("embedding", "tau", "stratum", "frequency", "known_share")


class QueryTower:
    """Embeds queries, a batch at a time."""

    def __init__(self, directory: Path):
        """Loads the SavedModel.

        Raises:
          UserError: No SavedModel, or one without the signature `query`.
        """
        try:
            # The signature alone does not keep its variables alive.
            self._model = tf.saved_model.load(str(directory))
        except OSError as error:
            raise UserError(f"{directory} must be a SavedModel. Received: {error}.") from None
        if "query" not in self._model.signatures:
            received = ", ".join(sorted(self._model.signatures)) or "none"
            raise UserError(f"{directory} must have the signature query. Received: {received}.")

    def embed(self, texts: Sequence[str]) -> QueryVectors:
        """Vectors, temperatures, strata and frequencies of one text or more."""
        signature = self._model.signatures["query"]
        batches = [
            signature(query=tf.constant(list(texts[begin : begin + BATCH])))
            for begin in range(0, len(texts), BATCH)
        ]
        vectors, tau, strata, frequency, known = (
            np.concatenate([batch[name].numpy() for batch in batches]) for name in OUTPUTS
        )
        return QueryVectors(vectors, tau, strata, frequency=frequency, known_share=known)
