"""Coverage: whether a query's threshold keeps the nominal share of its relevant items."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pebr_tf.distributions import CosineLaw


def coverage_loss(law: CosineLaw, cosines: Any, recall: Sequence[float] = (0.9,)) -> tf.Tensor:
    """Pinball loss of the query's thresholds, which calibrates its law.

        t       = law.threshold(recall)
        loss[i] = mean over recall of (s_i - t_i) * ((1 - recall) - [s_i < t_i])

    The pinball loss is the proper score of a quantile: for every query alone, its expectation is
    least where P(s >= t) = recall. Its slope in t averages to recall - coverage: descent raises a
    threshold that keeps too much, lowers one that keeps too little, and stops when coverage is
    nominal. A squared difference of the batch's coverage and `recall` would accept broad queries
    that compensate for narrow ones, and a penalty on the tail probability itself can be met by
    making the law flat. Over all recalls at once it would be the continuous ranked probability
    score; a few recalls use the few parameters of the law where cut-offs are needed.

    The parameters of `law` are scalar or [B], `cosines` [B] are those of the positives, in [-1, 1].
    `recall` are nominal shares of relevant items at or above the threshold, in (0, 1). The losses
    [B] are in units of the cosine, 0 or more.
    """
    recalls = tf.constant(recall, tf.float32)[:, tf.newaxis]
    # No gradient reaches the towers: the law must describe them, not shape them.
    cosines = tf.stop_gradient(tf.convert_to_tensor(cosines))
    above = cosines - tf.cast(law.threshold(recalls), cosines.dtype)
    below_share = tf.cast(1.0 - recalls, cosines.dtype)
    return tf.reduce_mean(tf.maximum(below_share * above, (below_share - 1.0) * above), axis=0)


class CoverageMetric(tf.keras.metrics.Metric):
    """The share of positives at or above their query's own threshold; nominally `recall`.

    A positive is kept when the upper tail of its query's law beyond it holds at most `recall`,
    which is equivalent to s >= threshold and needs no quantile. Above `recall` the law retrieves
    too much, below it too little.
    """

    def __init__(self, recall: float) -> None:
        """Makes the metric of a share `recall` in (0, 1), named as in coverage_0.9."""
        super().__init__(name=f"coverage_{recall:g}")
        self.recall = recall
        self._kept = self.add_weight(name="kept", initializer="zeros")
        self._total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, survival: Any, sample_weight: Any = None) -> None:
        """Counts a batch: [B] values `law.survival(s)` of the positives, and [B] weights."""
        kept = tf.cast(tf.convert_to_tensor(survival) <= self.recall, self._kept.dtype)
        weights = tf.ones_like(kept) if sample_weight is None else sample_weight
        weights = tf.cast(weights, kept.dtype)
        self._kept.assign_add(tf.reduce_sum(weights * kept))
        self._total.assign_add(tf.reduce_sum(weights))

    def result(self) -> tf.Tensor:
        """The share so far; 0 before any positive."""
        return tf.math.divide_no_nan(self._kept, self._total)
