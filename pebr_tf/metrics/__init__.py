"""Measures of retrieval with lists of different lengths."""

from pebr_tf.metrics.equal_average import Figures, Lists, cutoff_at, evaluate
from pebr_tf.metrics.strata import STRATA, strata_of

__all__ = ["STRATA", "Figures", "Lists", "cutoff_at", "evaluate", "strata_of"]
