"""Encoded queries: the outputs of the query model that a search needs."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class EncodedQueries:
    """Outputs of the query model for B queries.

    Attributes:
      embedding: [B, n] float32 unit vectors.
      tau: [B] float32 temperatures.
      alpha, beta: [B] float32, the Beta law of each query's relevant items.
      background_alpha, background_beta: [B] float32, the Beta law of all items.
      level: [B] float32 levels from the items that the query model holds.
      threshold: [B] float32 cosines for the default knob, with that level.
      unfamiliar: [B] bool, true for queries that the model knows nothing of.
      stratum: [B] int64 indices into `pebr_tf.metrics.STRATA`.
    """

    embedding: np.ndarray
    tau: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    background_alpha: np.ndarray
    background_beta: np.ndarray
    level: np.ndarray
    threshold: np.ndarray
    unfamiliar: np.ndarray
    stratum: np.ndarray

    def __len__(self) -> int:
        return len(self.tau)

    def take(self, rows: np.ndarray | slice) -> EncodedQueries:
        """The queries at `rows`."""
        return EncodedQueries(**{name: getattr(self, name)[rows] for name in ENCODED_FIELDS})


ENCODED_FIELDS = tuple(field.name for field in fields(EncodedQueries))
