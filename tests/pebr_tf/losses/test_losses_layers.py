"""The Keras layers and the registry."""

import math

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.config import Loss
from pebr_tf.distributions import Beta, TruncatedExponential
from pebr_tf.losses.beta_nce import beta_nce
from pebr_tf.losses.coverage import coverage_loss
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.layers import BetaNCE
from pebr_tf.losses.mle import mle
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.losses.similarity import positive_cosines
from pebr_tf.models.two_tower import loss_layer

BATCH, DIMENSION = 6, 4
FUNCTIONS = {
    "pointwise": pointwise,
    "info_nce": exp_nce,
    "exp_nce": exp_nce,
    "beta_nce": beta_nce,
    "mle": mle,
}


def layer_of(family, **settings):
    """The layer of a family in one direction, as the config makes it."""
    return loss_layer(Loss(**{"family": family, "symmetric_weight": 0.0, **settings}))


def info_nce(**settings):
    return layer_of("info_nce", **settings)


def random_batch(seed=0, dtype=np.float32):
    generator = np.random.default_rng(seed)
    queries, items = generator.normal(size=(2, BATCH, DIMENSION)).astype(dtype)
    return queries, items, generator.uniform(0.1, 0.5, BATCH).astype(np.float32)


def call(layer, batch, **options):
    queries, items, tau = batch
    return layer(queries, items, tau=tau, **options)


class TestReduction:
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_is_the_weighted_mean_of_the_function(self, name):
        queries, items, tau = random_batch()
        layer = layer_of(name)
        values = FUNCTIONS[name](queries, items, getattr(layer, "temperature", tau))
        for weights in (None, np.array([0.0, 1.0, 2.0, 0.0, 0.5, 3.0])):
            expected = np.mean(values if weights is None else weights * values)
            actual = call(layer, (queries, items, tau), sample_weight=weights)
            assert float(actual) == pytest.approx(expected, rel=1e-5)

    def test_of_replicas_adds_up_to_the_mean(self):
        strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
        queries, items, _ = random_batch()
        with strategy.scope():
            layer = info_nce()
        result = strategy.run(layer, args=(tf.constant(queries), tf.constant(items)))
        assert float(result) == pytest.approx(float(layer(queries, items)), rel=1e-6)


class TestTemperature:
    def test_learns_in_logarithms(self):
        queries, items, _ = random_batch()
        layer = info_nce(temperature=0.2, learn_temperature=True)
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
        layer = info_nce(temperature=0.05, learn_temperature=True)
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
            (
                "beta_nce",
                {"delta_beta": 0.5, "convention": "paper"},
                lambda tau: Beta(1.0 / tau, 1.5),
            ),
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
        layer(queries, items, tau=tau, sample_weight=np.arange(BATCH))
        survival = Beta.from_tau(tau).survival(positive_cosines(queries, items)).numpy()
        for metric, recall in zip(layer.metrics, (0.2, 0.9), strict=True):
            expected = np.average(survival <= recall, weights=np.arange(BATCH))
            assert float(metric.result()) == pytest.approx(expected, rel=1e-6)
            metric.reset_state()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_training_lowers_the_loss_and_finds_the_pairs(name):
    """Eight pairs of free vectors, and a temperature for each."""
    # At the paper's temperature of 1 it takes more steps than a test has time for.
    layer = layer_of(name, **({"temperature": 0.1} if name == "pointwise" else {}))
    generator = np.random.default_rng(0)
    queries, items = (
        tf.Variable(generator.uniform(-0.05, 0.05, (8, DIMENSION)), dtype=tf.float32)
        for _ in range(2)
    )
    log_tau = tf.Variable(tf.fill([8], -2.0))
    variables = [queries, items, log_tau, *layer.trainable_variables]
    optimizer = tf.keras.optimizers.Adam(0.05)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            loss = layer(queries, items, tf.clip_by_value(tf.exp(log_tau), 0.002, 1.0))
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    history = [float(step()) for _ in range(48)]
    assert history[-1] < history[0]
    cosines = tf.math.l2_normalize(queries, 1) @ tf.transpose(tf.math.l2_normalize(items, 1))
    assert np.mean(np.argmax(cosines, axis=1) == np.arange(8)) >= 0.75


def test_autograph_makes_no_difference():
    queries, items, tau = random_batch()
    layer = BetaNCE({}, coverage_weight=1.0)
    actual = tf.function(layer.call)(queries, items, tau=tau)
    assert float(actual) == pytest.approx(float(layer(queries, items, tau=tau)), rel=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_half_precision_policy_rounds_neither_vectors_nor_temperature(name):
    queries, items, tau = random_batch()
    expected = float(call(layer_of(name), (queries, items, tau)))
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        layer = layer_of(name)
        actual = call(layer, tuple(map(tf.constant, (queries, items, tau))))
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    assert float(actual) == pytest.approx(expected, rel=1e-6)
