"""Losses of two-tower retrieval: pure functions with one value per example, and Keras layers.

beta_nce(query_vectors, item_vectors, tau, negatives=...)     -> [B]
BetaNCE({"symmetric_weight": 1.0})                            -> a Keras layer
"""

from pebr_tf.losses.beta_nce import beta_logits, beta_nce
from pebr_tf.losses.coverage import CoverageMetric, coverage_loss
from pebr_tf.losses.exp_nce import exp_logits, exp_nce
from pebr_tf.losses.layers import BetaNCE, GlobalTemperature, QueryTemperature, RetrievalLoss
from pebr_tf.losses.mle import mle
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.losses.similarity import positive_cosines

__all__ = [
    "BetaNCE",
    "CoverageMetric",
    "GlobalTemperature",
    "Negatives",
    "QueryTemperature",
    "RetrievalLoss",
    "beta_logits",
    "beta_nce",
    "coverage_loss",
    "exp_logits",
    "exp_nce",
    "mle",
    "pointwise",
    "positive_cosines",
]
