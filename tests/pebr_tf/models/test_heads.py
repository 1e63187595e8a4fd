"""The temperature head: what it starts from, and its ends."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.models.tau_head import TauHead

FEATURES = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)


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


def test_the_head_works_in_float32_under_mixed_precision():
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        head = TauHead()
        assert head(tf.constant(FEATURES, tf.float16)).dtype == tf.float32
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
