"""Losses by the names that the config uses."""

from collections.abc import Callable

import tensorflow as tf

from pebr_tf.losses import layers
from pebr_tf.losses.beta_nce import beta_nce
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.info_nce import info_nce
from pebr_tf.losses.layer_base import RetrievalLoss
from pebr_tf.losses.mle import mle
from pebr_tf.losses.pointwise import pointwise

_LOSSES: dict[str, tuple[Callable[..., tf.Tensor], type[RetrievalLoss]]] = {
    "pointwise": (pointwise, layers.Pointwise),
    "info_nce": (info_nce, layers.InfoNCE),
    "exp_nce": (exp_nce, layers.ExpNCE),
    "beta_nce": (beta_nce, layers.BetaNCE),
    "mle": (mle, layers.MLE),
}

NAMES = tuple(_LOSSES)


def get(name: str) -> Callable[..., tf.Tensor]:
    """The function of a loss: (query_vectors, item_vectors, tau, *, negatives, ...) -> [B]."""
    return _entry(name)[0]


def get_layer(name: str) -> type[RetrievalLoss]:
    """The Keras layer class of a loss."""
    return _entry(name)[1]


def _entry(name: str) -> tuple[Callable[..., tf.Tensor], type[RetrievalLoss]]:
    if name not in _LOSSES:
        raise ValueError(f"The loss must be one of {', '.join(NAMES)}. Received: {name!r}.")
    return _LOSSES[name]
