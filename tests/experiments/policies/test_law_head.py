"""The law head finds laws by likelihood, and leaves the towers alone."""

import numpy as np
import tensorflow as tf
from scipy import stats

from experiments.policies.law_head import VectorLawHead


def test_the_head_finds_the_law_of_two_kinds_of_queries():
    """Cosines drawn from Beta(40, 8) for one kind, Beta(6, 6) for the other."""
    generator = np.random.default_rng(0)
    kind = generator.integers(2, size=2000)
    queries = np.eye(2, dtype=np.float32)[kind]
    z = np.where(kind == 0, generator.beta(40, 8, 2000), generator.beta(6, 6, 2000))
    cosines = (2 * z - 1).astype(np.float32)
    head, optimizer = VectorLawHead(hidden=()), tf.keras.optimizers.legacy.Adam(0.1)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(head.negative_log_likelihood(queries, cosines))
        gradients = tape.gradient(loss, head.trainable_weights)
        optimizer.apply_gradients(zip(gradients, head.trainable_weights, strict=True))

    head(queries)
    for _ in range(200):
        step()
    alpha, beta = head(np.eye(2, dtype=np.float32))
    for row in range(2):
        # The maximum-likelihood law, which the sample alone decides.
        a, b, _, _ = stats.beta.fit(z[kind == row], floc=0, fscale=1)
        np.testing.assert_allclose([alpha[row], beta[row]], [a, b], rtol=0.02)


def test_the_head_leaves_the_towers_alone_and_survives_its_config():
    features = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    vectors, cosines = tf.constant(features), tf.constant(np.linspace(-0.5, 0.9, 6), tf.float32)
    head = VectorLawHead(hidden=(5, 3))
    head(vectors)
    generator = np.random.default_rng(1)
    head.set_weights([generator.normal(size=w.shape) * 0.3 for w in head.get_weights()])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([vectors, cosines])
        likelihood = head.negative_log_likelihood(vectors, cosines)
    assert tape.gradient(likelihood, [vectors, cosines]) == [None, None]
    assert all(g is not None for g in tape.gradient(likelihood, head.trainable_weights))
    copy = VectorLawHead.from_config(head.get_config())
    assert copy.get_config() == head.get_config()
    copy(vectors)
    copy.set_weights(head.get_weights())
    np.testing.assert_array_equal(np.stack(copy(vectors)), np.stack(head(vectors)))
