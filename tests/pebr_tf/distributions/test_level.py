"""The level: from the whole corpus, from a probe and a sample, and as a law."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from pebr_tf.distributions import Beta, LevelLaw, exact_level, probe_level
from pebr_tf.distributions.level import level_threshold

LEVEL_TEMPERATURES = [0.0, 0.3, 0.6, 1.0, 1.5, math.inf]


@pytest.fixture(scope="module")
def corpus_logits():
    """Logits of 3 queries with 5,000 items, from broad to specific, best first."""
    generator = np.random.default_rng(0)
    z = np.sort(generator.beta(12, 8, size=(3, 5000)), axis=1)[:, ::-1]
    return np.log(z) / np.array([[0.3], [0.05], [0.01]])


def expected_level(logits, level_temperature):
    if level_temperature == 0:
        return logits.max(axis=1)
    if math.isinf(level_temperature):
        return logits.mean(axis=1)
    return level_temperature * (
        special.logsumexp(logits / level_temperature, axis=1) - math.log(logits.shape[1])
    )


@pytest.mark.parametrize("level_temperature", LEVEL_TEMPERATURES)
def test_the_exact_level(corpus_logits, level_temperature):
    expected = expected_level(corpus_logits, level_temperature)
    np.testing.assert_allclose(exact_level(tf.constant(corpus_logits), level_temperature), expected)
    single = exact_level(tf.constant(corpus_logits, tf.float32), level_temperature)
    assert single.dtype == tf.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5)


@pytest.mark.parametrize("level_temperature", LEVEL_TEMPERATURES)
def test_a_probe_and_the_whole_corpus_as_sample_give_the_exact_level(
    corpus_logits, level_temperature
):
    logits = tf.constant(corpus_logits)
    level = probe_level(
        logits[:, :100], logits, corpus_size=5000, level_temperature=level_temperature
    )
    np.testing.assert_allclose(level, exact_level(logits, level_temperature), rtol=1e-12)


def test_a_probe_that_is_the_corpus_needs_no_sample(corpus_logits):
    logits = tf.constant(corpus_logits)
    level = probe_level(logits, logits[:, ::10], corpus_size=5000)
    np.testing.assert_allclose(level, exact_level(logits), rtol=1e-12)


@pytest.mark.parametrize("level_temperature", [0.6, 1.0, 1.5])
def test_a_probe_and_a_random_sample_come_close(corpus_logits, level_temperature):
    generator = np.random.default_rng(3)
    sample = tf.constant(corpus_logits[:, generator.choice(5000, 2000, replace=False)])
    probe = tf.constant(corpus_logits[:, :100])
    level = probe_level(probe, sample, corpus_size=5000, level_temperature=level_temperature)
    np.testing.assert_allclose(level, expected_level(corpus_logits, level_temperature), atol=0.05)


def test_retrieval_at_a_cut_off_is_the_same_in_logits_and_in_cosines(corpus_logits):
    tau = tf.constant([0.3, 0.05, 0.01], tf.float64)
    level, cutoff = exact_level(tf.constant(corpus_logits), 0.6), -0.7
    by_logit = corpus_logits - level.numpy()[:, None] >= cutoff
    cosines = 2 * np.exp(corpus_logits * tau.numpy()[:, None]) - 1
    by_cosine = cosines >= level_threshold(cutoff, level, tau).numpy()[:, None]
    np.testing.assert_array_equal(by_logit, by_cosine)


def test_the_law_ends_at_the_level_and_agrees_with_the_cut_off():
    """Convention "paper": keeping a share of the law is the cut-off log(1 - share)."""
    tau, level = np.array([0.3, 0.05, 0.01]), np.array([-0.1, -2.0, -30.0])
    law = LevelLaw(tau, level, "paper")
    np.testing.assert_allclose(law.threshold(0.0), 2 * tf.exp(tau * level) - 1)
    for recall in (0.1, 0.5, 0.99):
        expected = level_threshold(math.log1p(-recall), level, tau)
        np.testing.assert_allclose(law.threshold(recall), expected, atol=1e-12)
    assert np.all(law.survival(np.minimum(2 * tf.exp(tau * level) - 1 + 1e-9, 1)) == 0)


def test_a_level_of_zero_is_the_plain_beta_law():
    tau, s = np.array([[0.3], [0.01]]), np.linspace(-1, 1, 9)
    for convention in ("pdf", "paper"):
        level, beta = LevelLaw(tau, 0.0, convention), Beta.from_tau(tau, convention)
        np.testing.assert_allclose(level.cdf(s), beta.cdf(s), atol=1e-12)
        np.testing.assert_allclose(level.threshold(0.3), beta.threshold(0.3), atol=1e-12)
        np.testing.assert_allclose(level.mean(), beta.mean(), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: exact_level(tf.zeros([1, 3]), -0.5),
            "level_temperature must be a number from 0 to infinity. Received: -0.5.",
        ),
        (
            lambda: probe_level(tf.zeros([1, 3]), tf.zeros([1, 3]), corpus_size=2),
            "corpus_size must be at least the probe's size. Received: 2 and a probe of 3.",
        ),
    ],
)
def test_bad_input_is_rejected(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_a_probe_of_unknown_size_is_rejected():
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def graph(probe):
        return probe_level(probe, tf.zeros([1, 3]), corpus_size=10)

    with pytest.raises(ValueError, match="probe_logits must have a static last dimension"):
        graph(tf.zeros([1, 3]))
