"""The heads: what they start from, what they learn, and that they survive saving."""

import re

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.models import LevelHead, TauHead

FEATURES = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)


def with_random_weights(head, *inputs):
    """The head, built and moved away from its start, so that every query differs."""
    head(*inputs)
    generator = np.random.default_rng(1)
    head.set_weights([generator.normal(size=w.shape) * 0.3 for w in head.get_weights()])
    return head


def test_every_query_starts_at_tau_initial():
    np.testing.assert_allclose(TauHead(tau_initial=0.05)(FEATURES), np.full(6, 0.05), rtol=1e-6)


def test_tau_by_hand():
    head = TauHead(tau_initial=0.05, hidden=())
    head(FEATURES)
    kernel = np.linspace(-1, 1, 8)[:, None]
    head.set_weights([kernel, np.array([0.5])])
    expected = np.clip(0.05 * np.exp(FEATURES @ kernel[:, 0] + 0.5), 0.002, 1.0)
    np.testing.assert_allclose(head(FEATURES), expected, rtol=1e-5)


@pytest.mark.parametrize("bias", [-50.0, 50.0])
def test_tau_stays_between_its_ends_and_can_come_back(bias):
    head = TauHead(hidden=())
    head(FEATURES)
    head.set_weights([np.zeros((8, 1)), np.array([bias])])
    with tf.GradientTape() as tape:
        tau = head(FEATURES)
    np.testing.assert_allclose(tau, np.full(6, 0.002 if bias < 0 else 1.0), rtol=1e-6)
    assert tau.numpy().min() >= np.float32(0.002)
    assert tau.numpy().max() <= np.float32(1.0)
    assert tape.gradient(tau, head.trainable_weights)[1].numpy()[0] > 0


def test_the_level_head_leaves_the_towers_alone():
    vectors, tau = tf.constant(FEATURES), tf.fill([6], 0.05)
    head = with_random_weights(LevelHead(), vectors, tau)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([vectors, tau])
        levels = head(vectors, tau)
    assert tape.gradient(levels, [vectors, tau]) == [None, None]
    assert all(g is not None for g in tape.gradient(levels, head.trainable_weights))


def test_the_level_head_learns_a_level():
    generator = np.random.default_rng(0)
    queries = generator.normal(size=(2000, 4)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    tau = np.full(2000, 0.05, np.float32)
    level = (-0.3 - 0.2 * queries[:, 0]) / tau
    head, optimizer = LevelHead(hidden=(16,)), tf.keras.optimizers.legacy.Adam(0.01)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(head.squared_error(queries, tau, level))
        gradients = tape.gradient(loss, head.trainable_weights)
        optimizer.apply_gradients(zip(gradients, head.trainable_weights, strict=True))

    head(queries, tau)
    for _ in range(400):
        step()
    unexplained = np.mean((head(queries, tau) - level) ** 2) / np.var(level)
    assert unexplained < 0.02


@pytest.mark.parametrize(("family", "low", "high"), [("beta", -np.inf, 0), ("exponential", -1, 1)])
def test_levels_stay_in_the_range_of_their_family(family, low, high):
    tau = tf.fill([6], 0.1)
    head = with_random_weights(LevelHead(family), 100 * FEATURES, tau)
    scaled = head(100 * FEATURES, tau).numpy() * 0.1
    assert np.all(scaled <= high + 1e-6)
    assert np.all(scaled >= low - 1e-6)


@pytest.mark.parametrize("suffix", [".keras", ""])
@pytest.mark.slow
def test_a_model_with_heads_survives_saving(tmp_path, suffix):
    """Both as a Keras file and as a SavedModel."""
    inputs = tf.keras.Input([8])
    tau = with_random_weights(TauHead(hidden=(5,)), FEATURES)
    level = with_random_weights(LevelHead(hidden=(5,)), FEATURES, tf.ones([6]))
    outputs = {"tau": tau(inputs), "level": level(inputs, tau(inputs))}
    model = tf.keras.Model(inputs, outputs)
    model.save(tmp_path / f"model{suffix}")
    loaded = tf.keras.models.load_model(tmp_path / f"model{suffix}")
    for name, value in model(FEATURES).items():
        np.testing.assert_array_equal(loaded(FEATURES)[name], value)
        assert len(set(value.numpy())) == 6


def test_heads_work_in_float32_under_mixed_precision():
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        head = TauHead()
        assert head(tf.constant(FEATURES, tf.float16)).dtype == tf.float32
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TauHead(0.05, 0.1, 1.0),
            "TauHead requires 0 < tau_min <= tau_initial <= tau_max. Received: 0.1, 0.05 and 1.0.",
        ),
        (
            lambda: TauHead(tau_min=0.0),
            "TauHead requires 0 < tau_min <= tau_initial <= tau_max. Received: 0.0, 0.05 and 1.0.",
        ),
        (
            lambda: LevelHead(hidden=(8, 0)),
            "hidden must hold integers of at least 1. Received: (8, 0).",
        ),
        (lambda: LevelHead("gamma"), "family must be 'beta' or 'exponential'. Received: 'gamma'."),
        (
            lambda: TauHead()(np.zeros([2, 3, 4], np.float32)),
            "TauHead requires features of shape [B, n] with a known n. Received: (2, 3, 4).",
        ),
    ],
)
def test_bad_configs_are_rejected(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
