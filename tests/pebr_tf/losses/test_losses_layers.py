"""The Keras layers and the registry."""

import math

import losses_oracle
import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.config import Loss
from pebr_tf.distributions import Beta, TruncatedExponential
from pebr_tf.losses.coverage import coverage_loss
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.layers import BetaNCE
from pebr_tf.losses.similarity import positive_cosines
from pebr_tf.models.two_tower import loss_layer


def layer_of(family, **settings):
    """The layer of a family in one direction, as the config makes it."""
    return loss_layer(Loss(**{"family": family, "symmetric_weight": 0.0, **settings}))


def random_batch():
    return [tf.constant(values, tf.float32) for values in losses_oracle.random_batch()]


class TestTemperature:
    def test_learns_in_logarithms(self):
        queries, items, _ = random_batch()
        layer = layer_of("info_nce", temperature=0.2, learn_temperature=True)
        with tf.GradientTape() as tape:
            loss = layer(queries, queries + 0.1 * items)
        (gradient,) = tape.gradient(loss, layer.trainable_variables)
        tau = tf.Variable(0.2)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(exp_nce(queries, queries + 0.1 * items, tau))
        assert float(gradient) == pytest.approx(0.2 * float(tape.gradient(loss, tau)), rel=1e-4)

    @pytest.mark.parametrize(("push", "bound"), [(1.0, 0.002), (-1.0, 1.0)])
    def test_stays_in_its_range_and_can_come_back(self, push, bound):
        queries, items, _ = random_batch()
        layer = layer_of("info_nce", temperature=0.05, learn_temperature=True)
        optimizer = tf.keras.optimizers.SGD(1.0)
        optimizer.apply_gradients([(tf.constant(100.0 * push), layer.log_temperature)])
        assert float(layer.temperature) == pytest.approx(bound, rel=1e-5)
        with tf.GradientTape() as tape:
            loss = layer(queries, items)
        assert float(tape.gradient(loss, layer.log_temperature)) != 0.0
        optimizer.apply_gradients([(tf.constant(-0.5 * push), layer.log_temperature)])
        assert float(layer.temperature) == pytest.approx(bound * math.exp(0.5 * push), rel=1e-5)


class TestCoverage:
    @pytest.mark.parametrize(
        ("family", "settings", "law"),
        [
            ("exp_nce", {}, TruncatedExponential),
            ("beta_nce", {}, Beta.from_tau),
            ("beta_nce", {"delta_beta": 0.5}, lambda tau: Beta(1.0 + 1.0 / tau, 1.5)),
            ("beta_nce", {"convention": "paper"}, lambda tau: Beta(1.0 / tau, 1.0)),
            ("beta_nce", {"delta_beta": 0.5, "convention": "paper"}, lambda t: Beta(1 / t, 1.5)),
            ("mle", {}, Beta.from_tau),
        ],
    )
    def test_law_is_the_loss_s_own(self, family, settings, law):
        tau = np.array([0.1, 0.5])
        s = np.array([0.3, 0.8])
        received = layer_of(family, **settings).law(tau)
        np.testing.assert_allclose(received.cdf(s), law(tau).cdf(s), rtol=1e-6)

    def test_term_is_added_with_its_weight(self):
        queries, items, tau = random_batch()
        plain = BetaNCE({})(queries, items, tau=tau)
        with_term = BetaNCE({}, coverage_weight=2.0, recall=(0.8,))(queries, items, tau=tau)
        cosines = positive_cosines(queries, items)
        term = tf.reduce_mean(coverage_loss(Beta.from_tau(tau), cosines, (0.8,)))
        assert float(with_term - plain) == pytest.approx(2.0 * float(term), rel=1e-4)

    def test_metrics_follow_the_batches_and_reset(self):
        queries, items, tau = random_batch()
        layer = BetaNCE({}, recall=(0.2, 0.9))
        layer(queries, items, tau=tau, sample_weight=np.arange(losses_oracle.BATCH))
        survival = Beta.from_tau(tau).survival(positive_cosines(queries, items)).numpy()
        for metric, recall in zip(layer.metrics, (0.2, 0.9), strict=True):
            expected = np.average(survival <= recall, weights=np.arange(losses_oracle.BATCH))
            assert float(metric.result()) == pytest.approx(expected, rel=1e-6)
            metric.reset_state()


@pytest.mark.parametrize("name", ["pointwise", "info_nce", "mle", "exp_nce", "beta_nce"])
def test_a_half_precision_policy_rounds_neither_vectors_nor_temperature(name):
    batch = random_batch()
    expected = float(layer_of(name)(*batch))
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        actual = layer_of(name)(*batch)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    assert float(actual) == pytest.approx(expected, rel=1e-6)
