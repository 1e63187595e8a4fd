"""Keras layers on top of the towers: temperature and threshold of each query."""

from pebr_tf.models.tau_head import TauHead
from pebr_tf.models.threshold import ThresholdLayer

__all__ = ["TauHead", "ThresholdLayer"]
