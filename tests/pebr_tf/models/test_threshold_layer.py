"""The threshold layer against SciPy, in Keras models and in a SavedModel."""

import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from scipy import optimize, stats

from pebr_tf.models import ThresholdLayer

TAU = np.array([0.5, 0.05, 0.01], np.float32)
RECALL = np.array([0.9, 0.5, 0.2], np.float32)


@pytest.mark.parametrize(("convention", "shift"), [("pdf", 1), ("paper", 0)])
@pytest.mark.parametrize(("dimension", "area"), [(None, 0), (3, 0), (64, 30.5)])
def test_beta_nce_thresholds(convention, shift, dimension, area):
    layer = ThresholdLayer("beta_nce", convention, dimension)
    z = stats.beta.isf(RECALL, 1 / TAU + shift + area, 1 + area)
    np.testing.assert_allclose(layer({"tau": TAU}, RECALL), 2 * z - 1, atol=1e-6)


def test_beta_thresholds():
    layer = ThresholdLayer("beta")
    alpha, beta = np.array([2.0, 30.0, 0.5], np.float32), np.array([3.0, 1.0, 0.5], np.float32)
    thresholds = layer({"alpha": alpha, "beta": beta}, RECALL)
    np.testing.assert_allclose(thresholds, 2 * stats.beta.isf(RECALL, alpha, beta) - 1, atol=1e-6)


def test_exp_nce_thresholds():
    """SciPy's truncated exponential, mirrored: 1 - s is exponential with scale tau, cut at 2."""
    expected = 1 - stats.truncexpon.ppf(RECALL, 2 / TAU, scale=TAU)
    np.testing.assert_allclose(ThresholdLayer("exp_nce")({"tau": TAU}, RECALL), expected, atol=1e-6)


def test_level_thresholds():
    """A share (t_z / z_hi)^(1 / tau + 1) of the law lies below t, solved by SciPy."""
    level = np.array([-0.1, -2.0, -30.0], np.float32)
    thresholds = ThresholdLayer("level")({"tau": TAU, "level": level}, RECALL).numpy()
    for i in range(3):
        top = np.exp(float(TAU[i]) * float(level[i]))
        power = 1 / float(TAU[i]) + 1
        below = 1 - float(RECALL[i])
        z = optimize.brentq(lambda z, t=top, p=power, b=below: (z / t) ** p - b, 0, top)
        np.testing.assert_allclose(thresholds[i], 2 * z - 1, atol=1e-6)


def test_one_share_serves_all_queries():
    one, each = (ThresholdLayer("beta_nce")({"tau": TAU}, k) for k in (0.5, np.full(3, 0.5, "f4")))
    np.testing.assert_array_equal(one, each)


def test_it_survives_its_config():
    layer = ThresholdLayer("exp_nce", "paper", 16, name="cut")
    assert ThresholdLayer.from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.slow
def test_it_works_in_a_model_and_in_a_fresh_process_with_tensorflow_only(tmp_path):
    inputs = {name: tf.keras.Input([], name=name) for name in ("alpha", "beta", "recall")}
    layer = ThresholdLayer("beta")
    outputs = layer({"alpha": inputs["alpha"], "beta": inputs["beta"]}, inputs["recall"])
    model = tf.keras.Model(inputs, outputs)
    alpha, beta = np.float32([2, 30, 0.5]), np.float32([3, 1, 0.5])
    expected = model({"alpha": alpha, "beta": beta, "recall": RECALL}).numpy()
    np.testing.assert_allclose(expected, 2 * stats.beta.isf(RECALL, alpha, beta) - 1, atol=1e-6)

    model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again({"alpha": alpha, "beta": beta, "recall": RECALL}), expected)

    signature = tf.function(
        lambda alpha, beta, recall: {
            "threshold": layer.law_of({"alpha": alpha, "beta": beta}).threshold(recall)
        }
    )
    specification = [tf.TensorSpec([None], name=name) for name in ("alpha", "beta", "recall")]
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(
        model, str(tmp_path / "saved"), signature.get_concrete_function(*specification), options
    )
    code = (
        "import sys, tensorflow as tf; f = tf.saved_model.load(sys.argv[1]).signatures; "
        "print(*f['serving_default'](alpha=tf.constant([2., 30., .5]), "
        "beta=tf.constant([3., 1., .5]), recall=tf.constant([.9, .5, .2]))['threshold'].numpy())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "saved")],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    np.testing.assert_allclose([float(v) for v in printed.split()], expected, atol=1e-6)


def test_outside_the_domain_a_graph_gives_nan():
    graph = tf.function(lambda tau: ThresholdLayer("beta_nce")({"tau": tau}, 0.5))
    np.testing.assert_array_equal(np.isnan(graph(tf.constant([0.1, -1.0]))), [False, True])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ThresholdLayer("gamma"),
            "law must be one of beta, beta_nce, exp_nce, level. Received: 'gamma'.",
        ),
        (
            lambda: ThresholdLayer(convention="cdf"),
            "convention must be 'pdf' or 'paper'. Received: 'cdf'.",
        ),
        (
            lambda: ThresholdLayer(dimension=1),
            "dimension must be an integer of at least 3. Received: 1.",
        ),
        (
            lambda: ThresholdLayer("level", dimension=64),
            "dimension must be None for the level law, whose corpus already knows the sphere. "
            "Received: 64.",
        ),
        (
            lambda: ThresholdLayer("level").law_of({"tau": TAU}),
            "the level law requires tau and level. Received: tau.",
        ),
    ],
)
def test_bad_configs_are_rejected(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
