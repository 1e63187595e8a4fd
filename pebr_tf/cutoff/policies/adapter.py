"""The Cosine Adapter (Walmart, arXiv 2408.04887): a learned map of the cosine for each query.

The relevance of an item is sigmoid(a_q * cosine + b_q) with a_q > 0, both from a small perceptron
on the frozen query vector, fitted by cross-entropy. It is a baseline of the evaluation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.fitting import fit
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.models.query_head import QueryHead

# Per query: most relevant items, and items drawn to represent all others.
POSITIVES, SAMPLES = 16, 64
# Before training, every query has even odds at a cosine of .6.
SLOPE, MIDDLE = 20.0, 0.6


@tf.keras.utils.register_keras_serializable("pebr_tf")
class CosineAdapter(QueryHead):
    """a_q = 20 * exp(perceptron), b_q = -12 + 4 * perceptron, of the frozen query vector."""

    def __init__(self, hidden: Sequence[int] = (32,), **kwargs: Any):
        super().__init__(2, hidden, **kwargs)

    def call(self, query_vectors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Slopes [B], above 0, and offsets [B] of query vectors [B, n]."""
        raw = self.raw(tf.stop_gradient(query_vectors))
        # Clipped so that every slope is within the range of float32.
        slope = SLOPE * tf.exp(tf.clip_by_value(raw[:, 0], -6.0, 6.0))
        return slope, 4.0 * raw[:, 1] - SLOPE * MIDDLE


@dataclass(frozen=True, kw_only=True)
class AdapterPolicy(Policy):
    """score = a_q * cosine + b_q."""

    name = "adapter"
    title = "cosine adapter"

    adapter: CosineAdapter

    def scores(self, candidates: Candidates) -> np.ndarray:
        slope, offset = self.adapter(tf.constant(candidates.queries.vectors))
        scores: np.ndarray = candidates.cosines * slope.numpy()[:, None]
        scores += offset.numpy()[:, None]
        return scores


def fit_adapter(candidates: Candidates, seed: int = 0) -> AdapterPolicy:
    """Fits the adapter to held-out clicks of calibrate queries, against sampled items.

    Ranks are drawn log-uniformly and weighted back: the cross-entropy is that over all
    candidates while most of what is drawn lies near the top, where lists end.
    """
    tf.keras.utils.set_random_seed(seed)
    adapter = CosineAdapter()
    adapter(tf.constant(candidates.queries.vectors[:1]))
    cosines, labels, weights = _examples(candidates, np.random.default_rng(seed))

    def losses(
        vectors: tf.Tensor, cosines: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
    ) -> tf.Tensor:
        slope, offset = adapter(vectors)
        logits = slope[:, None] * cosines + offset[:, None]
        entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
        return tf.reduce_sum(weights * entropy, axis=1)

    fit(adapter, losses, (candidates.queries.vectors, cosines, labels, weights), seed)
    return AdapterPolicy(adapter=adapter)


def _examples(
    candidates: Candidates, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cosines, labels and weights, [Q, POSITIVES + SAMPLES] each; a weight of 0 is no example."""
    count, depth = candidates.cosines.shape
    shape = (count, POSITIVES + SAMPLES)
    ranks = np.zeros(shape, np.int64)
    labels, weights = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    relevant = candidates.relevant
    inside = np.flatnonzero(relevant.ranks < depth)
    inside = generator.permutation(inside)
    inside = inside[np.argsort(relevant.rows[inside], kind="stable")]
    rows = relevant.rows[inside]
    found = np.bincount(rows, minlength=count)
    position = np.arange(len(rows)) - (np.cumsum(found) - found)[rows]
    used = position < POSITIVES
    at = (rows[used], position[used])
    ranks[at] = relevant.ranks[inside][used]
    labels[at] = 1
    weights[at] = np.maximum(found / POSITIVES, 1)[rows[used]]

    # A rank r is drawn with a chance of log((r + 2) / (r + 1)) / log(M + 1).
    drawn = np.exp(generator.uniform(0, np.log(depth + 1), (count, SAMPLES)))
    drawn = np.minimum(drawn.astype(np.int64), depth) - 1
    chance = np.log((drawn + 2) / (drawn + 1)) / np.log(depth + 1)
    ranks[:, POSITIVES:] = drawn
    weights[:, POSITIVES:] = 1 / (SAMPLES * chance)
    clicked = np.isin(
        np.arange(count)[:, None] * depth + drawn, rows * depth + relevant.ranks[inside]
    )
    cosines = np.take_along_axis(candidates.cosines, ranks, axis=1)
    weights[:, POSITIVES:][clicked] = 0
    weights[cosines == -np.inf] = 0
    return np.where(cosines == -np.inf, np.float32(0), cosines), labels, weights
