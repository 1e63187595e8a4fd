"""The pointwise loss."""

import losses_oracle as oracle
import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.losses import Negatives, pointwise

QUERIES = np.array([[1.0, 0.0], [0.0, 1.0]])
ITEMS = np.array([[1.0, 0.0], [0.6, 0.8]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loops(queries, items, tau, facts):
    losses = []
    for i in range(len(queries)):
        loss = -np.log(sigmoid(oracle.cosine(queries[i], items[i]) / tau))
        for s, _, removed in oracle.candidates_of(i, queries, items, facts):
            if not removed:
                loss -= np.log(sigmoid(-s / tau))
        losses.append(loss)
    return losses


def test_by_hand_with_the_sign_corrected():
    # Cosines [[1, .6], [0, .8]].
    expected = [-np.log(sigmoid(1.0)) - np.log(sigmoid(-0.6)), -np.log(sigmoid(0.8)) + np.log(2.0)]
    np.testing.assert_allclose(pointwise(QUERIES, ITEMS), expected, rtol=1e-12)


def test_masks_equal_the_loops():
    generator = np.random.default_rng(0)
    queries, items = oracle.unit_rows(generator, 6, 4), oracle.unit_rows(generator, 6, 4)
    facts = {
        "item_ids": np.array([1, 2, 1, 3, 4, 5]),
        "known_positive_ids": np.array([[3], [1], [-1], [-1], [9], [2]]),
        "query_ids": np.array([1, 2, 3, 4, 5, 5]),
    }
    actual = pointwise(queries, items, 0.5, negatives=Negatives(**facts))
    expected = loops(queries, items, 0.5, facts)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_gradients_equal_finite_differences():
    generator = np.random.default_rng(1)
    queries, items = (oracle.unit_rows(generator, 4, 3) for _ in range(2))
    oracle.assert_gradients(
        lambda *arguments: tf.reduce_sum(pointwise(*arguments)), [queries, items, np.array(0.3)]
    )


def test_graphs_agree_with_eager():
    compiled = tf.function(pointwise, jit_compile=True)
    arguments = [tf.constant(value, tf.float32) for value in (QUERIES, ITEMS, 0.1)]
    np.testing.assert_allclose(compiled(*arguments), pointwise(*arguments), rtol=1e-5)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32])
def test_extremes_are_finite(dtype):
    for sign, tau in ((1.0, 0.002), (-1.0, 0.002), (1.0, 1.0), (-1.0, 1.0)):
        queries = tf.Variable(tf.cast([[1.0, 0.0], [-1.0, 0.0]], dtype))
        temperature = tf.Variable(tau)
        with tf.GradientTape() as tape:
            values = pointwise(queries, sign * queries, temperature)
        assert values.dtype == tf.float32
        assert np.isfinite(values).all()
        for gradient in tape.gradient(values, [queries, temperature]):
            assert np.isfinite(tf.cast(gradient, tf.float32)).all()


def test_what_only_a_softmax_has_is_rejected():
    message = "pointwise has no softmax: log_q must be None. Received: a log_q of shape (2,)."
    with pytest.raises(ValueError, match=oracle.exactly(message)):
        pointwise(QUERIES, ITEMS, negatives=Negatives(log_q=[0.1, 0.2]))
