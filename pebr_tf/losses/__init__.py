"""Losses of two-tower retrieval: pure functions with one value per example, and Keras layers.

losses.get("beta_nce")(query_vectors, item_vectors, tau, negatives=...)     -> [B]
losses.get_layer("beta_nce")(symmetric_weight=1.0)                          -> a Keras layer
"""

from pebr_tf.losses.beta_nce import beta_logits, beta_nce
from pebr_tf.losses.coverage import CoverageMetric, coverage_loss
from pebr_tf.losses.exp_nce import exp_logits, exp_nce, info_nce
from pebr_tf.losses.layer_base import RetrievalLoss
from pebr_tf.losses.layers import (
    MLE,
    NAMES,
    BetaNCE,
    ExpNCE,
    InfoNCE,
    Pointwise,
    get,
    get_layer,
)
from pebr_tf.losses.mle import mle
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.losses.similarity import positive_cosines

__all__ = [
    "MLE",
    "NAMES",
    "BetaNCE",
    "CoverageMetric",
    "ExpNCE",
    "InfoNCE",
    "Negatives",
    "Pointwise",
    "RetrievalLoss",
    "beta_logits",
    "beta_nce",
    "coverage_loss",
    "exp_logits",
    "exp_nce",
    "get",
    "get_layer",
    "info_nce",
    "mle",
    "pointwise",
    "positive_cosines",
]
