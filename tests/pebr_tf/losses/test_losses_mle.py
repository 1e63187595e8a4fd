"""Maximum likelihood of which items are relevant, given the cosines."""

import losses_oracle as oracle
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from losses_oracle import DIMENSION, random_batch

from pebr_tf.losses import Negatives, mle


def density(s, alpha, beta):
    """Of Beta(alpha, beta) stretched over cosines."""
    return scipy.stats.beta.pdf(s, alpha, beta, loc=-1, scale=2)


def loops(queries, items, tau, facts=None):
    """By Bayes' rule, with the odds of one positive to all negatives."""
    shift = (DIMENSION - 3) / 2
    losses = []
    for i in range(len(queries)):
        others = oracle.candidates_of(i, queries, items, facts or {})
        negatives = [s for s, _, removed in others if not removed]
        cosines = np.array([*negatives, oracle.cosine(queries[i], items[i])])
        f = density(cosines, 1 + 1 / tau[i] + shift, 1 + shift)
        h = density(cosines, 1 + shift, 1 + shift)
        is_relevant = f / (f + len(negatives) * h)
        loss = -np.log(is_relevant[-1]) - np.log1p(-is_relevant[:-1]).sum()
        losses.append(loss)
    return losses


def test_masks_equal_the_loops():
    queries, items, tau = random_batch(1)
    np.testing.assert_allclose(mle(queries, items, tau), loops(queries, items, tau), rtol=1e-9)
    facts = {
        "item_ids": np.array([1, 2, 1, 3, 4]),
        "known_positive_ids": np.array([[3], [1], [-1], [9], [2]]),
    }
    actual = mle(queries, items, tau, negatives=Negatives(**facts))
    np.testing.assert_allclose(actual, loops(queries, items, tau, facts), rtol=1e-9)


def test_gradients_equal_finite_differences():
    def value(*arguments):
        return tf.reduce_sum(mle(*arguments))

    oracle.assert_gradients(value, list(random_batch(4)), atol=1e-6)


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


@pytest.mark.parametrize("tau", [0.002, 1.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32])
def test_extremes_are_finite(dtype, sign, tau):
    queries = tf.Variable(tf.cast([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], dtype))
    temperature = tf.Variable([tau, tau])
    with tf.GradientTape() as tape:
        values = mle(queries, sign * queries, temperature)
    assert values.dtype == tf.float32
    assert np.isfinite(values).all()
    for gradient in tape.gradient(values, [queries, temperature]):
        assert np.isfinite(tf.cast(gradient, tf.float32)).all()


def test_a_masked_negative_at_the_pole_costs_nothing():
    vectors = np.eye(2, 3)[[0, 0]]
    values = mle(vectors, vectors, 0.5, negatives=Negatives(item_ids=[1, 1]))
    # In three dimensions, Beta(3, 1) over the uniform law: densities of 3 / 2 and 1 / 2.
    np.testing.assert_allclose(values, [-np.log(3 / 4)] * 2, rtol=1e-6)


def test_graphs_agree_with_eager():
    arguments = [tf.constant(value, tf.float32) for value in random_batch(8)]
    compiled = tf.function(mle, jit_compile=True)
    np.testing.assert_allclose(compiled(*arguments), mle(*arguments), rtol=1e-5)


def test_softmax_terms_are_rejected():
    message = "mle has no softmax: log_q must be None. Received: a log_q of shape (5,)."
    with pytest.raises(ValueError, match=oracle.exactly(message)):
        mle(*random_batch(), negatives=Negatives(log_q=[0.1] * 5))
