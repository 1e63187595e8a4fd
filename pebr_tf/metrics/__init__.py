"""Measures of retrieval with lists of different lengths."""

from pebr_tf.metrics.comparison import at_averages, by_group, count_histogram, curve, groups_of
from pebr_tf.metrics.ranked import Figures, RankedLists, Ranks
from pebr_tf.metrics.results import GROUPS
from pebr_tf.metrics.strata import STRATA, strata_of

__all__ = [
    "GROUPS",
    "STRATA",
    "Figures",
    "RankedLists",
    "Ranks",
    "at_averages",
    "by_group",
    "count_histogram",
    "curve",
    "groups_of",
    "strata_of",
]
