"""Cosines of pairs."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.losses import positive_cosines
from pebr_tf.losses.similarity import unit_vectors


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


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_vectors_are_scaled_in_float32(dtype):
    vectors = tf.cast(np.random.default_rng(1).normal(size=(50, 64)), dtype)
    units = unit_vectors(vectors, tf.float32)
    assert units.dtype == tf.float32
    np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1.0, atol=1e-6)
