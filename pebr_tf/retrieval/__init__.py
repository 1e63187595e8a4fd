"""Thresholded retrieval: every item at or above a query's own threshold, exact or with ScaNN."""

from pebr_tf.retrieval.artifact import load_index
from pebr_tf.retrieval.build import build_index
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.result import RangeResult
from pebr_tf.retrieval.scann_searcher import ScannSearcher
from pebr_tf.retrieval.searcher import Searcher
