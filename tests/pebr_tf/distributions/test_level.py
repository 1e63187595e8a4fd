"""The level of the whole corpus, and the cosine that it gives."""

import math

import numpy as np
import pytest
import tensorflow as tf
from level_oracle import level_of

from pebr_tf.distributions import exact_level
from pebr_tf.distributions.level import level_of_cosines
from pebr_tf.distributions.logit import relevance_logit

LEVEL_TEMPERATURES = [0.0, 0.3, 0.6, 1.0, 1.5, math.inf]


@pytest.fixture(scope="module")
def corpus_logits():
    """Logits of 3 queries with 5,000 items, from broad to specific, best first."""
    generator = np.random.default_rng(0)
    z = np.sort(generator.beta(12, 8, size=(3, 5000)), axis=1)[:, ::-1]
    return np.log(z) / np.array([[0.3], [0.05], [0.01]])


@pytest.mark.parametrize("level_temperature", LEVEL_TEMPERATURES)
def test_the_exact_level(corpus_logits, level_temperature):
    expected = level_of(corpus_logits, level_temperature)
    np.testing.assert_allclose(exact_level(tf.constant(corpus_logits), level_temperature), expected)
    single = exact_level(tf.constant(corpus_logits, tf.float32), level_temperature)
    assert single.dtype == tf.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5)


@pytest.mark.parametrize("level_temperature", LEVEL_TEMPERATURES)
@pytest.mark.parametrize("family", ["beta", "exponential"])
def test_the_level_of_cosines_is_that_of_their_logits(level_temperature, family):
    cosines = np.random.default_rng(0).uniform(-1, 0.95, (3, 500))
    tau = np.array([0.3, 0.05, 0.01])
    logits = relevance_logit(tf.constant(cosines), tau[:, None], family)
    received = level_of_cosines(tf.constant(cosines), tf.constant(tau), family, level_temperature)
    # The mean alone has a weight for items next to the antipode.
    np.testing.assert_allclose(received, exact_level(logits, level_temperature), rtol=1e-6)
