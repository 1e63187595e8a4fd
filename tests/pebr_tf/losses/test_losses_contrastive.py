"""Losses by hand, and what they are equal to."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs
from losses_oracle import BATCH, random_batch

from pebr_tf.losses.beta_nce import beta_logits, beta_nce
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.losses.similarity import positive_cosines
from pebr_tf.losses.softmax import column_cross_entropy, cross_entropy

# Cosines by hand: [[1, .6], [0, .8]]; z: [[1, .8], [.5, .9]].
HAND_QUERIES = np.array([[1.0, 0.0], [0.0, 1.0]])
HAND_ITEMS = np.array([[1.0, 0.0], [0.6, 0.8]])


@pytest.mark.parametrize(
    ("loss", "tau", "expected"),
    [
        (exp_nce, 0.5, [np.log1p(np.exp(-0.4 / 0.5)), np.log1p(np.exp(-0.8 / 0.5))]),
        (exp_nce, [0.5, 0.25], [np.log1p(np.exp(-0.4 / 0.5)), np.log1p(np.exp(-0.8 / 0.25))]),
        (beta_nce, [0.5, 0.25], [np.log(1 + 0.8**2), np.log(1 + (0.5 / 0.9) ** 4)]),
        (
            pointwise,
            1.0,
            [np.log1p(np.exp(-1)) + np.log1p(np.exp(0.6)), np.log1p(np.exp(-0.8)) + np.log(2)],
        ),
    ],
)
def test_by_hand(loss, tau, expected):
    np.testing.assert_allclose(loss(HAND_QUERIES, HAND_ITEMS, np.array(tau)), expected, rtol=1e-12)


def test_exp_nce_with_a_constant_tau_is_info_nce_is_tfrs():
    queries, items, _ = random_batch(6)
    queries, items = queries.astype(np.float32), items.astype(np.float32)
    exponential = exp_nce(queries, items, np.full(BATCH, 0.07, np.float32))
    np.testing.assert_allclose(exponential, exp_nce(queries, items, 0.07), atol=1e-6)
    task = tfrs.tasks.Retrieval(temperature=0.07)
    reference = task(tf.constant(queries), tf.constant(items))
    assert float(tf.reduce_sum(exponential)) == pytest.approx(float(reference), abs=1e-5)


def test_one_direction_does_not_see_a_query_s_level_and_the_other_does():
    queries, items, tau = random_batch(11)
    logits = beta_logits(tf.constant(queries @ items.T), tau)
    shifted = logits + tf.constant(np.linspace(-3, 3, BATCH)[:, np.newaxis])
    np.testing.assert_allclose(cross_entropy(shifted), cross_entropy(logits), rtol=1e-10)
    columns = column_cross_entropy(logits)
    np.testing.assert_allclose(columns, cross_entropy(tf.transpose(logits)), rtol=1e-10)
    assert np.abs(column_cross_entropy(shifted) - columns).max() > 1.0


def test_item_log_q_does_not_touch_the_item_to_query_term():
    queries, items, tau = random_batch(12)
    negatives = Negatives(log_q=np.linspace(-5.0, -1.0, BATCH))

    def item_to_query(negatives):
        both = beta_nce(queries, items, tau, negatives=negatives, symmetric_weight=1.0)
        return both - beta_nce(queries, items, tau, negatives=negatives)

    np.testing.assert_allclose(item_to_query(negatives), item_to_query(None), rtol=1e-10)


def test_tiny_losses_keep_their_digits_at_the_smallest_tau():
    # Cosines .9 and .88: exp(-.02 / .002) is far below float32's step at a logit of 450.
    angles = np.arccos([0.9, 0.88])
    queries = np.array([[1.0, 0.0]] * 2, np.float32)
    items = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    actual = exp_nce(queries, items, np.full(2, 0.002, np.float32))
    assert float(actual[0]) == pytest.approx(np.log1p(np.exp(-10.0)), rel=1e-3)


def test_positive_cosines_are_rowwise_and_do_not_depend_on_length():
    queries = np.array([[3.0, 0.0], [0.0, 0.5]])
    items = np.array([[6.0, 8.0], [0.0, -2.0]])
    np.testing.assert_allclose(positive_cosines(queries, items), [0.6, -1.0], atol=1e-15)


def test_positive_cosines_never_leave_their_range_by_rounding():
    vectors = tf.constant(np.random.default_rng(0).normal(size=(2000, 7)), tf.float32)
    cosines = positive_cosines(vectors, vectors)
    assert float(tf.reduce_max(cosines)) <= 1.0
    assert float(tf.reduce_min(positive_cosines(vectors, -vectors))) >= -1.0


def test_a_zero_vector_has_cosine_zero_and_a_finite_gradient():
    query = tf.Variable([[0.0, 0.0]])
    with tf.GradientTape() as tape:
        cosine = positive_cosines(query, tf.constant([[1.0, 0.0]]))
    assert cosine.numpy() == [0.0]
    assert np.isfinite(tape.gradient(cosine, query)).all()
