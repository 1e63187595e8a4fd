"""One cosine for all queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy


class ScorePolicy(Policy):
    """score = cosine."""

    name = "score"
    short_title = "one cosine"
    title = "one cosine for all"

    def scores(self, candidates: Candidates) -> np.ndarray:
        return candidates.cosines

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        return cutoffs
