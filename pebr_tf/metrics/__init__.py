"""Measures of retrieval with lists of different lengths."""

from pebr_tf.metrics.comparison import at_averages, by_group, curve, groups_of, histogram
from pebr_tf.metrics.equal_average import Figures, Lists, cutoff_at, evaluate
from pebr_tf.metrics.gates import failures, gates_of
from pebr_tf.metrics.ranked import RankedLists, Ranks, summary
from pebr_tf.metrics.strata import STRATA, strata_of

__all__ = [
    "STRATA",
    "Figures",
    "Lists",
    "RankedLists",
    "Ranks",
    "at_averages",
    "by_group",
    "curve",
    "cutoff_at",
    "evaluate",
    "failures",
    "gates_of",
    "groups_of",
    "histogram",
    "strata_of",
    "summary",
]
