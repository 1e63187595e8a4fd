"""Maximum likelihood of which items are relevant, given the cosines."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.losses.mle import mle
from pebr_tf.losses.negatives import Negatives


@pytest.mark.slow
def test_training_tells_relevant_from_irrelevant():
    """Free vectors on a ring of queries, whose neighbours share items: clicks connect them all.

    The likelihood of the cosines would gather all of them in one place.
    """
    size, dimension, width = 48, 8, 6
    generator = np.random.default_rng(0)
    queries, items = (
        tf.Variable(generator.normal(size=(size, dimension)), dtype=tf.float32) for _ in range(2)
    )
    log_tau = tf.Variable(tf.fill([size], -2.0))
    variables = [queries, items, log_tau]
    optimizer = tf.keras.optimizers.Adam(0.03)
    offsets = (np.arange(size)[:, np.newaxis] + np.arange(width)) % size

    @tf.function
    def step(clicked):
        negatives = Negatives(item_ids=clicked, known_positive_ids=offsets)
        with tf.GradientTape() as tape:
            tau = tf.exp(tf.clip_by_value(log_tau, -5.0, 0.0))
            loss = mle(queries, tf.gather(items, clicked), tau, negatives=negatives)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    for _ in range(400):
        step(tf.constant(offsets[np.arange(size), generator.integers(0, width, size)]))
    units = [tf.math.l2_normalize(value, axis=1).numpy() for value in (queries, items)]
    cosines = units[0] @ units[1].T
    relevant = np.zeros((size, size), bool)
    np.put_along_axis(relevant, offsets, True, axis=1)
    assert cosines[relevant].mean() - cosines[~relevant].mean() > 0.5


def test_a_masked_negative_at_the_pole_costs_nothing():
    vectors = np.eye(2, 3)[[0, 0]]
    values = mle(vectors, vectors, 0.5, negatives=Negatives(item_ids=[1, 1]))
    # In three dimensions, Beta(3, 1) over the uniform law: densities of 3 / 2 and 1 / 2.
    np.testing.assert_allclose(values, [-np.log(3 / 4)] * 2, rtol=1e-6)
