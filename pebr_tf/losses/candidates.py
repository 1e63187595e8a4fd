"""Scores of every query against all its candidates, which every loss starts from."""

import functools
from typing import Any, NamedTuple

import tensorflow as tf

from pebr_tf.losses import similarity
from pebr_tf.losses.negatives import Negatives


class LossCandidates(NamedTuple):
    """A batch of B queries, with its B items as the candidates of each.

    Attributes:
      cosines: [B, B] cosines, float32 or float64; the positives are the diagonal.
      removed: [B, B] booleans, true where the candidate is masked; never on the diagonal.
      log_q: [B] log sampling probabilities of the items, or None.
      log_query_prior: [B] log query probabilities, or None.
    """

    cosines: tf.Tensor
    removed: tf.Tensor
    log_q: tf.Tensor | None
    log_query_prior: tf.Tensor | None

    def sum_negatives(self, values: tf.Tensor) -> tf.Tensor:
        """[B] sums of values [B, B] over each query's negatives: not masked, not the positive."""
        negative = _without_diagonal(~self.removed, self.cosines)
        return tf.reduce_sum(tf.where(negative, values, 0.0), axis=1)


def collect(
    query_vectors: Any, item_vectors: Any, negatives: Negatives | None = None
) -> LossCandidates:
    """Scores every query against the batch's items, and masks.

    Vectors are [B, n] of any float dtype.
    """
    query_vectors, item_vectors = map(tf.convert_to_tensor, (query_vectors, item_vectors))
    negatives = negatives or Negatives()
    dtype = similarity.compute_dtype(query_vectors)
    queries = similarity.unit_vectors(query_vectors, dtype)
    items = similarity.unit_vectors(item_vectors, dtype)
    cosines = tf.linalg.matmul(queries, items, transpose_b=True)
    return LossCandidates(
        cosines,
        _removed(negatives, cosines),
        _cast(negatives.log_q, dtype),
        _cast(negatives.log_query_prior, dtype),
    )


def _removed(negatives: Negatives, cosines: tf.Tensor) -> tf.Tensor:
    given = (negatives.query_ids, negatives.item_ids)
    masks = [_equal_pairs(ids) for ids in given if ids is not None]
    if not masks:
        return tf.zeros_like(cosines, tf.bool)
    return _without_diagonal(functools.reduce(tf.logical_or, masks), cosines)


def _equal_pairs(ids: Any) -> tf.Tensor:
    # Indices of the unique ids take half the bytes, and there are B * B of them to compare.
    _, indices = tf.unique(ids)
    return indices[tf.newaxis, :] == indices[:, tf.newaxis]


def _without_diagonal(mask: tf.Tensor, cosines: tf.Tensor) -> tf.Tensor:
    return tf.linalg.set_diag(mask, tf.zeros(tf.shape(cosines)[:1], tf.bool))


def _cast(values: Any, dtype: tf.DType) -> tf.Tensor | None:
    return None if values is None else tf.cast(values, dtype)
