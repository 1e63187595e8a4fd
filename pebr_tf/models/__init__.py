"""Keras layers on top of the towers: the temperature and the level of each query."""

from pebr_tf.models.level_head import LevelHead
from pebr_tf.models.tau_head import TauHead

__all__ = ["LevelHead", "TauHead"]
