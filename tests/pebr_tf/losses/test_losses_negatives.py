"""Candidates, masks and corrections against loops over the same facts."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs
from losses_oracle import DIMENSION, random_batch

from pebr_tf.losses.candidates import collect
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.negatives import Negatives

BATCH = 7


def test_integer_ids_of_different_widths_meet():
    queries, items, _ = random_batch(3, BATCH)
    negatives = Negatives(
        item_ids=tf.range(BATCH, dtype=tf.int32),
        known_positive_ids=tf.constant([[BATCH - 1]] * BATCH, tf.int64),
    )
    removed = collect(queries, items, negatives).removed.numpy()
    assert removed[:, -1].tolist() == [True] * (BATCH - 1) + [False]
    assert not removed[:, :-1].any()


def test_the_positive_is_never_removed():
    queries, items, _ = random_batch(3, BATCH)
    negatives = Negatives(
        item_ids=[5] * BATCH, query_ids=[1] * BATCH, known_positive_ids=[[5, 5]] * BATCH
    )
    candidates = collect(queries, items, negatives)
    np.testing.assert_array_equal(candidates.removed, ~np.eye(BATCH, dtype=bool))
    assert not candidates.sum_negatives(candidates.cosines).numpy().any()


def test_lists_of_known_positives_may_be_empty():
    queries, items, _ = random_batch(3, BATCH)
    negatives = Negatives(
        item_ids=[1, 1, 2, 3, 4, 5, 6], known_positive_ids=np.zeros((BATCH, 0), np.int64)
    )
    removed = collect(queries, items, negatives).removed.numpy()
    assert np.argwhere(removed).tolist() == [[0, 1], [1, 0]]


def test_corrections_equal_those_of_tfrs():
    """log_q the candidate sampling probability, item_ids the accidental hits."""
    queries, items, _ = random_batch(5, BATCH)
    queries, items = queries.astype(np.float32), items.astype(np.float32)
    probability = np.random.default_rng(5).uniform(0.001, 0.5, BATCH).astype(np.float32)
    ids = tf.constant([1, 2, 1, 3, 3, 3, 4])
    expected = tfrs.tasks.Retrieval(temperature=0.2, remove_accidental_hits=True)(
        tf.constant(queries),
        tf.constant(items),
        candidate_sampling_probability=probability,
        candidate_ids=ids,
    )
    negatives = Negatives(item_ids=ids, log_q=np.log(probability))
    actual = exp_nce(queries, items, 0.2, negatives=negatives)
    assert float(tf.reduce_sum(actual)) == pytest.approx(float(expected), abs=1e-5)


def test_a_removed_candidate_gets_no_gradient():
    queries, items, _ = random_batch(7, BATCH)
    items = tf.Variable(items)
    negatives = Negatives(item_ids=np.arange(BATCH), known_positive_ids=[[0]] * BATCH)
    with tf.GradientTape() as tape:
        # Without the query whose positive the removed item is.
        loss = tf.reduce_sum(exp_nce(queries, items, 0.2, negatives=negatives)[1:])
    gradient = tf.convert_to_tensor(tape.gradient(loss, items)).numpy()
    assert (gradient[0] == 0).all()
    assert (np.abs(gradient[1:]).sum(axis=1) > 0).all()


def test_negatives_cross_a_graph_boundary_without_retracing():
    queries, items, _ = random_batch(9, BATCH)
    traces = []

    @tf.function
    def loss(negatives):
        traces.append(1)
        return exp_nce(queries, items, 0.2, negatives=negatives)

    for ids in ([1, 2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1, 1]):
        negatives = Negatives(item_ids=tf.constant(ids))
        np.testing.assert_allclose(
            loss(negatives), exp_nce(queries, items, 0.2, negatives=negatives), rtol=1e-10
        )
    assert len(traces) == 1


def test_unknown_batch_sizes_trace():
    queries, items, _ = random_batch(9, BATCH)
    vectors = tf.TensorSpec([None, DIMENSION], tf.float64)

    @tf.function(input_signature=[vectors, vectors, tf.TensorSpec([None], tf.int64)])
    def loss(queries, items, ids):
        negatives = Negatives(item_ids=ids)
        return exp_nce(queries, items, 0.2, negatives=negatives, symmetric_weight=1.0)

    ids = np.array([1, 1, 2, 3, 4, 5, 6])
    expected = exp_nce(queries, items, 0.2, negatives=Negatives(item_ids=ids), symmetric_weight=1.0)
    np.testing.assert_allclose(loss(queries, items, ids), expected, rtol=1e-10)
