"""The threshold layer against SciPy, in a Keras model and in a graph."""

import numpy as np
import tensorflow as tf
from scipy import stats

from pebr_tf.models.threshold import ThresholdLayer

ALPHA, BETA = np.float32([2, 30, 0.5, 300]), np.float32([3, 1, 0.5, 40])
SHARES = np.float32([0.9, 0.5, 0.2, 0.75])


def test_thresholds_in_a_model_that_was_saved(tmp_path):
    wanted = 2 * stats.beta.isf(SHARES, ALPHA, BETA) - 1
    np.testing.assert_allclose(ThresholdLayer()(ALPHA, BETA, SHARES), wanted, atol=1e-6)
    inputs = [tf.keras.Input([], name=name) for name in ("alpha", "beta", "share")]
    model = tf.keras.Model(inputs, ThresholdLayer()(*inputs))
    model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again([ALPHA, BETA, SHARES]), wanted, atol=1e-6)


def test_outside_the_domain_a_graph_gives_nan():
    layer = ThresholdLayer()
    graph = tf.function(lambda alpha, share: layer(alpha, tf.ones([3]), share), autograph=False)
    found = graph(tf.constant([2.0, -1.0, 2.0]), tf.constant([0.5, 0.5, 1.5]))
    np.testing.assert_array_equal(np.isnan(found), [False, True, True])
