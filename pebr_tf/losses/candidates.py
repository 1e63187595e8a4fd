"""Scores of every query against all its candidates, which every loss starts from."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from pebr_tf.losses import similarity
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.shapes import Shapes


class LossCandidates(NamedTuple):
    """A batch of B queries with C = B + M candidates each.

    Attributes:
      cosines: [B, C] cosines, float32 or float64. Column j < B is the batch's item j, so that the
        positives are the diagonal; the extra items follow.
      removed: [B, C] booleans, true where the candidate is masked; never on the diagonal.
      log_q: [B, C] log sampling probabilities, or None.
      log_query_prior: [B] log query probabilities, or None.
    """

    cosines: tf.Tensor
    removed: tf.Tensor
    log_q: tf.Tensor | None
    log_query_prior: tf.Tensor | None

    @property
    def negative(self) -> tf.Tensor:
        """[B, C] booleans, true where the candidate is a negative: not masked, not the positive."""
        return ~(self.removed | _diagonal(self.cosines))

    def sum_negatives(self, values: tf.Tensor) -> tf.Tensor:
        """[B] sums of values [B, C] over each query's negatives."""
        return tf.reduce_sum(tf.where(self.negative, values, 0.0), axis=1)


def collect(
    query_vectors: Any, item_vectors: Any, negatives: Negatives | None = None, **parameters: Any
) -> LossCandidates:
    """Scores every query against the batch's items and the extra ones, and masks.

    Args:
      query_vectors: [B, n] vectors of any float dtype.
      item_vectors: [B, n] vectors; row i is the positive of query i.
      negatives: Masks, extra items and corrections.
      **parameters: The loss's own parameters, such as tau, which are held to the shape [] or [B].

    Raises:
      ValueError: Shapes disagree, or a field of `negatives` lacks another that it needs.
    """
    query_vectors, item_vectors = map(tf.convert_to_tensor, (query_vectors, item_vectors))
    shapes = Shapes()
    shapes.require("query_vectors", query_vectors, "B n")
    shapes.require("item_vectors", item_vectors, "B n")
    for name, value in parameters.items():
        shapes.require(name, tf.convert_to_tensor(value), "", "B")
    negatives = (negatives or Negatives()).validated(shapes)

    dtype = similarity.compute_dtype(query_vectors)
    queries = similarity.unit_vectors(query_vectors, dtype)
    items = similarity.unit_vectors(item_vectors, dtype)
    cosines = tf.linalg.matmul(queries, items, transpose_b=True)
    removed = _removed_in_batch(negatives, cosines)
    log_q = _like(negatives.log_q, cosines)
    extra_cosines = _extra_cosines(negatives, queries)
    if extra_cosines is not None:
        removed = tf.concat([removed, _removed_extra(negatives, extra_cosines)], axis=1)
        if log_q is not None:
            log_q = tf.concat([log_q, _like(negatives.extra_log_q, extra_cosines)], axis=1)
        cosines = tf.concat([cosines, extra_cosines], axis=1)
    prior = negatives.log_query_prior
    return LossCandidates(cosines, removed, log_q, None if prior is None else tf.cast(prior, dtype))


def _extra_cosines(negatives: Negatives, queries: tf.Tensor) -> tf.Tensor | None:
    if negatives.extra_cosines is not None:
        return tf.cast(negatives.extra_cosines, queries.dtype)
    if negatives.extra_item_vectors is None:
        return None
    extra = similarity.unit_vectors(negatives.extra_item_vectors, queries.dtype)
    if extra.shape.rank == 2:
        return tf.linalg.matmul(queries, extra, transpose_b=True)
    return tf.linalg.matvec(extra, queries)


def _removed_in_batch(negatives: Negatives, cosines: tf.Tensor) -> tf.Tensor:
    removed = None
    if negatives.query_ids is not None:
        removed = _equal_pairs(negatives.query_ids)
    if negatives.item_ids is not None:
        if negatives.known_positive_ids is None:
            relevant = _equal_pairs(negatives.item_ids)
        else:
            relevant = _is_relevant(negatives.item_ids[tf.newaxis, :], negatives)
        removed = relevant if removed is None else removed | relevant
    if removed is None:
        return tf.zeros_like(cosines, tf.bool)
    return tf.linalg.set_diag(removed, tf.zeros(tf.shape(cosines)[:1], tf.bool))


def _equal_pairs(ids: tf.Tensor) -> tf.Tensor:
    # Indices of the unique ids take half the bytes, and there are B * B of them to compare.
    _, indices = tf.unique(ids)
    return indices[tf.newaxis, :] == indices[:, tf.newaxis]


def _removed_extra(negatives: Negatives, extra_cosines: tf.Tensor) -> tf.Tensor:
    ids = negatives.extra_item_ids
    if ids is None:
        return tf.zeros_like(extra_cosines, tf.bool)
    return _is_relevant(ids[tf.newaxis, :] if ids.shape.rank == 1 else ids, negatives)


def _is_relevant(ids: tf.Tensor, negatives: Negatives) -> tf.Tensor:
    """Whether ids [B or 1, C] are the query's own item or known positives; [B, C] booleans."""
    own = negatives.item_ids[:, tf.newaxis]
    if negatives.known_positive_ids is None:
        return ids == own
    # A search in sorted rows: comparing all with all takes P times the memory, and for P = 64
    # three times as long.
    known = tf.sort(tf.concat([own, negatives.known_positive_ids], axis=1), axis=1)
    ids = tf.broadcast_to(ids, [tf.shape(known)[0], tf.shape(ids)[1]])
    index = tf.minimum(tf.searchsorted(known, ids), tf.shape(known)[1] - 1)
    return tf.gather(known, index, batch_dims=1) == ids


def _diagonal(like: tf.Tensor) -> tf.Tensor:
    shape = tf.shape(like)
    return tf.range(shape[0])[:, tf.newaxis] == tf.range(shape[1])[tf.newaxis, :]


def _like(log_q: tf.Tensor | None, cosines: tf.Tensor) -> tf.Tensor | None:
    if log_q is None:
        return None
    return tf.broadcast_to(tf.cast(log_q, cosines.dtype), tf.shape(cosines))
