"""The same share of every query's relevant items, by the law that its query model learned."""

from typing import Any

import numpy as np
import tensorflow as tf
from scipy.special import betainc

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.models.threshold import ThresholdLayer


class SharePolicy(Policy):
    """score = CDF of the query's Beta law at the cosine: 1 less the share that lies above it."""

    name = "share"
    title = "share of each query's law"

    def scores(self, candidates: Candidates) -> np.ndarray:
        alpha, beta = candidates.queries.alpha, candidates.queries.beta
        if alpha is None or beta is None:
            raise ValueError("the queries must have alpha and beta. Received: none.")
        found = candidates.cosines > -np.inf
        z = np.where(found, (1 + candidates.cosines.astype(np.float64)) / 2, 0)
        scores = betainc(alpha[:, None], beta[:, None], np.clip(z, 0, 1)).astype(np.float32)
        return np.where(found, scores, np.float32(-np.inf))

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        shares = tf.clip_by_value(1 - tf.convert_to_tensor(cutoffs), 0.0, 1.0)
        return ThresholdLayer()(encoded.alpha, encoded.beta, shares)
