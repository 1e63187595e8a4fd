"""The coverage term and metric."""

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from gradients import assert_gradients

from pebr_tf.distributions import Beta, TruncatedExponential
from pebr_tf.losses.coverage import CoverageMetric, coverage_loss

TAU = np.array([0.05, 0.1, 0.4])
COSINES = np.array([0.95, 0.2, 0.9])
RECALL = (0.5, 0.9)


def power_threshold(recall, tau):
    """Beta(1 + 1 / tau, 1) has P(z < x) = x^(1 + 1 / tau)."""
    return 2 * (1 - recall) ** (tau / (1 + tau)) - 1


def pinball(cosine, threshold, recall):
    if cosine >= threshold:
        return (1 - recall) * (cosine - threshold)
    return recall * (threshold - cosine)


class TestLoss:
    def test_is_the_mean_pinball_loss_of_the_thresholds(self):
        expected = [
            np.mean([pinball(s, power_threshold(recall, tau), recall) for recall in RECALL])
            for s, tau in zip(COSINES, TAU, strict=True)
        ]
        actual = coverage_loss(Beta.from_tau(TAU), COSINES, RECALL)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)

    def test_takes_general_and_exponential_laws(self):
        alpha, beta = np.array([9.0, 3.0, 2.0]), np.array([2.0, 3.0, 0.8])
        threshold = 2 * scipy.stats.beta.ppf(0.1, alpha, beta) - 1
        expected = [pinball(s, t, 0.9) for s, t in zip(COSINES, threshold, strict=True)]
        actual = coverage_loss(Beta(alpha, beta), COSINES, [0.9])
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
        law = TruncatedExponential(TAU)
        threshold = law.threshold(np.array(0.9))
        expected = [pinball(s, t, 0.9) for s, t in zip(COSINES, threshold, strict=True)]
        np.testing.assert_allclose(coverage_loss(law, COSINES, [0.9]), expected, rtol=1e-5)

    @pytest.mark.parametrize(
        ("make", "parameters"),
        [(Beta.from_tau, [TAU]), (Beta, [np.array([9.0, 3.0, 2.0]), np.array([2.0, 3.0, 0.8])])],
    )
    def test_gradients_equal_finite_differences(self, make, parameters):
        # The quantile is a root found to 1e-9, which the step divides.
        assert_gradients(
            lambda *values: tf.reduce_sum(coverage_loss(make(*values), COSINES, RECALL)),
            parameters,
            rtol=1e-3,
            step=1e-4,
        )

    def test_has_no_gradient_into_the_towers(self):
        cosines = tf.Variable(COSINES)
        with tf.GradientTape() as tape:
            loss = coverage_loss(Beta.from_tau(TAU), cosines, [0.9])
        assert tape.gradient(loss, cosines) is None

    def test_extremes_are_finite(self):
        tau, cosine = (array.ravel() for array in np.meshgrid([0.002, 1.0], [-1.0, 1.0]))
        for make in (Beta.from_tau, TruncatedExponential):
            for recall in (0.01, 0.99):
                variable = tf.Variable(tau, dtype=tf.float32)
                with tf.GradientTape() as tape:
                    loss = coverage_loss(make(variable), cosine.astype(np.float32), [recall])
                assert np.isfinite(loss).all()
                assert np.isfinite(tape.gradient(loss, variable)).all()


class TestMetric:
    def test_counts_positives_at_or_above_the_threshold(self):
        law = Beta.from_tau(np.full(4, 0.25))
        threshold = power_threshold(0.8, 0.25)
        metric = CoverageMetric(0.8)
        metric.update_state(law.survival(threshold + np.array([-0.1, 1e-6, 0.1, 0.2])))
        assert float(metric.result()) == 0.75
        metric.update_state(law.survival(threshold + np.full(4, -0.01)))
        assert float(metric.result()) == 0.375
        metric = CoverageMetric(0.5)
        metric.update_state([0.4, 0.6], sample_weight=[3.0, 1.0])
        assert float(metric.result()) == 0.75
