"""Encoded queries: the outputs of the query model that a search needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

# Outputs of the towers alone; the others take a product with the query model's own items.
TOWER_FIELDS = ("embedding", "tau", "frequency", "unfamiliar", "stratum")
ENCODED_FIELDS = (*TOWER_FIELDS, "level", "alpha", "beta", "background_alpha", "background_beta")
# From tau, level and frequency [B] to alpha, beta and noise share [B].
Laws = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class EncodedQueries:
    """Outputs of the query model for B queries.

    Attributes:
      embedding: [B, n] float32 unit vectors.
      tau: [B] float32 temperatures.
      frequency: [B] float32 clicks of each query in the training split.
      unfamiliar: [B] bool, true for queries that the model knows nothing of.
      stratum: [B] int64 indices into `pebr_tf.metrics.strata.STRATA`.
      level: [B] float32 levels, from the items that the query model holds or from a search; this
        and the law are NaN where nothing asked for them.
      alpha, beta: [B] float32, the Beta law of each query's relevant items, with that level.
      background_alpha, background_beta: [B] float32, the Beta law of all items.
    """

    embedding: np.ndarray
    tau: np.ndarray
    frequency: np.ndarray
    unfamiliar: np.ndarray
    stratum: np.ndarray
    level: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    background_alpha: np.ndarray
    background_beta: np.ndarray

    def __len__(self) -> int:
        return len(self.tau)

    def take(self, rows: np.ndarray | slice) -> EncodedQueries:
        return EncodedQueries(**{name: getattr(self, name)[rows] for name in ENCODED_FIELDS})

    def with_law(self, level: np.ndarray, laws: Laws) -> EncodedQueries:
        """The queries with levels [B] and the laws that `laws` gives them."""
        inputs = (each.astype(np.float64) for each in (self.tau, level, self.frequency))
        alpha, beta, _ = (each.astype(np.float32) for each in laws(*inputs))
        return replace(self, level=level, alpha=alpha, beta=beta)

    @classmethod
    def of(cls, outputs: dict[str, np.ndarray]) -> EncodedQueries:
        """The queries with outputs by name; NaN for those of the law that are left out."""
        unknown = np.full(len(outputs["tau"]), np.nan, np.float32)
        return cls(**{name: outputs.get(name, unknown) for name in ENCODED_FIELDS})
