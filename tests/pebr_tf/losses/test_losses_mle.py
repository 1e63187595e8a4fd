"""Maximum likelihood, and the guards that keep it from collapse."""

import losses_oracle as oracle
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from losses_oracle import BATCH, DIMENSION, random_batch

from pebr_tf.distributions import Beta
from pebr_tf.losses import Negatives, mle


def log_beta(s, alpha, beta):
    """Log density of Beta(alpha, beta) stretched over cosines."""
    return scipy.stats.beta.logpdf(s, alpha, beta, loc=-1, scale=2)


def loops(queries, items, relevant, irrelevant, facts=None, negative_weight=1.0, guard="none"):
    """The laws are (alpha, beta) for each query."""
    losses = []
    for i in range(len(queries)):
        positive = oracle.cosine(queries[i], items[i])
        others = oracle.candidates_of(i, queries, items, facts or {})
        negatives = np.array([s for s, _, removed in others if not removed])
        if guard == "none":
            loss = -log_beta(positive, *relevant[i])
            loss -= negative_weight * log_beta(negatives, *irrelevant[i]).sum()
        else:
            # Bayes' rule, with the odds of one positive to the weight of all negatives.
            odds = negative_weight * len(negatives)
            f, h = (
                np.exp(log_beta(np.append(negatives, positive), *laws[i]))
                for laws in (relevant, irrelevant)
            )
            is_relevant = f / (f + odds * h)
            loss = -np.log(is_relevant[-1]) - negative_weight * np.log1p(-is_relevant[:-1]).sum()
        losses.append(loss)
    return losses


@pytest.mark.parametrize("guard", ["given_cosines", "none"])
def test_the_default_laws_are_on_the_sphere(guard):
    queries, items, tau = random_batch()
    shift = (DIMENSION - 3) / 2
    relevant = [(1 + 1 / value + shift, 1.0 + shift) for value in tau]
    irrelevant = [((DIMENSION - 1) / 2,) * 2] * BATCH
    expected = loops(queries, items, relevant, irrelevant, guard=guard)
    np.testing.assert_allclose(mle(queries, items, tau, guard=guard), expected, rtol=1e-9)


@pytest.mark.parametrize("guard", ["given_cosines", "none"])
def test_laws_of_each_query_masks_and_extras_equal_the_loops(guard):
    queries, items, tau = random_batch(1)
    generator = np.random.default_rng(2)
    relevant, irrelevant = generator.uniform(0.5, 9.0, (2, BATCH, 2))
    facts = {
        "item_ids": np.array([1, 2, 1, 3, 4]),
        "known_positive_ids": np.array([[3], [1], [-1], [9], [2]]),
        "extra_item_vectors": oracle.unit_rows(generator, BATCH, 3, DIMENSION),
        "extra_item_ids": np.array([9, 1, 20]),
    }
    actual = mle(
        queries,
        items,
        tau,
        negatives=Negatives(**facts),
        relevant=Beta(relevant[:, 0], relevant[:, 1]),
        irrelevant=Beta(irrelevant[:, 0], irrelevant[:, 1]),
        negative_weight=0.3,
        guard=guard,
    )
    expected = loops(queries, items, relevant, irrelevant, facts, 0.3, guard)
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


def laws_of(parameters):
    return {
        "relevant": Beta(parameters[0], parameters[1]),
        "irrelevant": Beta(parameters[2], parameters[3]),
    }


def gradients_of(guard, queries, items, parameters):
    variables = [tf.Variable(value) for value in (queries, items, parameters)]
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(mle(*variables[:2], 1.0, guard=guard, **laws_of(variables[2])))
    return tape.gradient(total, variables, unconnected_gradients="zero")


@pytest.mark.parametrize("guard", ["given_cosines", "none"])
def test_gradients_equal_finite_differences(guard):
    queries, items, _ = random_batch(4)
    parameters = np.random.default_rng(5).uniform(1.5, 6.0, (4, BATCH))

    def value(queries, items, parameters):
        return tf.reduce_sum(mle(queries, items, 1.0, guard=guard, **laws_of(parameters)))

    oracle.assert_gradients(value, [queries, items, parameters], atol=1e-6)


def test_stopped_towers_get_no_gradient_and_the_laws_get_theirs():
    queries, items, _ = random_batch(6)
    arguments = queries, items, np.random.default_rng(7).uniform(1.5, 6.0, (4, BATCH))
    free = gradients_of("none", *arguments)
    stopped = gradients_of("stopped_towers", *arguments)
    np.testing.assert_array_equal(stopped[0], np.zeros_like(queries))
    np.testing.assert_array_equal(stopped[1], np.zeros_like(items))
    assert (np.asarray(stopped[2]) != 0).all()
    np.testing.assert_allclose(stopped[2], free[2], rtol=1e-12)


def train_toy(guard, steps=400, size=48, dimension=8, width=6):
    """Trains free vectors and laws on a ring of queries, each with `width` relevant items.

    Neighbours share items, so that clicks connect everything with everything.

    Returns the mean cosines of relevant and irrelevant pairs and the mean |cosine|.
    """
    generator = np.random.default_rng(0)
    queries, items = (
        tf.Variable(generator.normal(size=(size, dimension)), dtype=tf.float32) for _ in range(2)
    )
    log_relevant = tf.Variable(tf.ones([size]))
    log_irrelevant = tf.Variable(tf.ones([2, size]))
    variables = [queries, items, log_relevant, log_irrelevant]
    optimizer = tf.keras.optimizers.Adam(0.03)
    offsets = (np.arange(size)[:, np.newaxis] + np.arange(width)) % size

    @tf.function
    def step(clicked):
        with tf.GradientTape() as tape:
            clicked_items = tf.gather(items, clicked)
            alpha = 1.0 + tf.exp(tf.clip_by_value(log_relevant, -3.0, 6.0))
            background = tf.exp(tf.clip_by_value(log_irrelevant, -3.0, 6.0))
            loss = mle(
                queries,
                clicked_items,
                1.0,
                negatives=Negatives(item_ids=clicked, known_positive_ids=offsets),
                relevant=Beta(alpha, 1.0),
                irrelevant=Beta(background[0], background[1]),
                guard=guard,
                negative_weight=1.0 / size,
            )
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    def mean_cosines():
        units = [tf.math.l2_normalize(value, axis=1).numpy() for value in (queries, items)]
        cosines = units[0] @ units[1].T
        relevant = np.zeros((size, size), bool)
        np.put_along_axis(relevant, offsets, True, axis=1)
        return cosines[relevant].mean(), cosines[~relevant].mean(), np.abs(cosines).mean()

    for _ in range(steps):
        step(tf.constant(offsets[np.arange(size), generator.integers(0, width, size)]))
    return mean_cosines()


@pytest.mark.slow
def test_without_a_guard_training_collapses():
    relevant, irrelevant, magnitude = train_toy("none")
    assert magnitude > 0.9, "all vectors lie on one line"
    assert relevant - irrelevant < 0.05, "and nothing tells relevant from irrelevant"


@pytest.mark.slow
def test_given_the_cosines_training_tells_relevant_from_irrelevant():
    relevant, irrelevant, _ = train_toy("given_cosines")
    assert relevant - irrelevant > 0.3


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
    message = "mle has no softmax: gamma must be 0. Received: 0.5."
    with pytest.raises(ValueError, match=oracle.exactly(message)):
        mle(*random_batch(), gamma=0.5)
