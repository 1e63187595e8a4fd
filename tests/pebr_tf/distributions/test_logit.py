"""The logit that losses and cut-offs share, its bounded logarithm and its inverse."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.distributions.logit import UNIT_EPSILON, cosine_of_logit, log_unit, relevance_logit


def slope_at(cosine, dtype=tf.float64):
    s = tf.constant(cosine, dtype)
    with tf.GradientTape() as tape:
        tape.watch(s)
        value = log_unit(s)
    return tape.gradient(value, s).numpy()


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("cosine", [-1.0, -1.0 - 1e-6, -1.0 + 1e-6, 1.0, 1.0 + 1e-6])
def test_log_unit_is_finite_with_a_bounded_positive_slope_at_the_poles(cosine, dtype):
    slope = slope_at(cosine, dtype)
    assert np.isfinite(log_unit(tf.constant(cosine, dtype)))
    assert 0 < slope <= 0.5 / UNIT_EPSILON * (1 + 1e-5)


def test_log_unit_is_the_logarithm_above_epsilon_and_joins_its_tangent_smoothly():
    s = np.linspace(-1 + 2 * UNIT_EPSILON, 1, 101)
    np.testing.assert_allclose(log_unit(tf.constant(s)), np.log((1 + s) / 2), atol=1e-12)
    seam = 2 * UNIT_EPSILON - 1
    below, above = log_unit(tf.constant([seam - 1e-9, seam + 1e-9], tf.float64)).numpy()
    assert above - below == pytest.approx(2e-9 * 0.5 / UNIT_EPSILON, rel=1e-3)
    assert slope_at(seam - 1e-9) == pytest.approx(slope_at(seam + 1e-9), rel=1e-4)


@pytest.mark.parametrize("family", ["beta", "exponential"])
def test_the_cosine_of_a_logit_inverts_the_logit(family):
    s = np.linspace(-0.99, 1, 50)
    tau = np.geomspace(0.002, 1, 50)
    logit = relevance_logit(tf.constant(s), tau, family)
    np.testing.assert_allclose(cosine_of_logit(logit, tau, family), s, atol=1e-12)


def test_logits_by_hand():
    s = tf.constant([1.0, 0.0, -1.0], tf.float64)
    expected = [0, 2 * np.log(0.5), 2 * (np.log(1e-4) - 1)]
    np.testing.assert_allclose(relevance_logit(s, 0.5), expected)
    np.testing.assert_allclose(relevance_logit(s, 0.5, "exponential"), [2, 0, -2])
