"""The contract of all laws, checked on each of them."""

import re

import numpy as np
import pytest
import tensorflow as tf
from gradients import assert_gradients

from pebr_tf.distributions import Beta, TruncatedExponential
from pebr_tf.distributions.beta import PARAMETER_HIGH, PARAMETER_LOW

# Name -> (law of its parameters, parameters of three queries: broad, middling, specific).
LAWS = {
    "beta": (Beta, ([2.0, 21.0, 400.0], [1.5, 3.0, 2.0])),
    "beta from tau": (Beta.from_tau, ([0.5, 0.05, 0.002],)),
    "exponential": (TruncatedExponential, ([0.5, 0.05, 0.002],)),
}
COSINES = np.linspace(-1, 1, 21)
RECALLS = np.array([0.0, 1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 1e-6, 1.0])


def build(name, dtype=np.float32):
    make, parameters = LAWS[name]
    return make(*(np.array(p, dtype)[:, None] for p in parameters))


every_law = pytest.mark.parametrize("name", LAWS)


@every_law
def test_shapes_and_dtypes(name):
    for dtype in (np.float32, np.float64):
        law, cosines = build(name, dtype), COSINES.astype(dtype)
        for value in (law.log_prob(cosines), law.cdf(cosines)):
            assert (value.shape, value.dtype) == ((3, 21), dtype)
        assert law.threshold(0.5).shape == (3, 1)
    make, parameters = LAWS[name]
    law = make(*(np.zeros(0, np.float32) for _ in parameters))
    for value in (law.threshold(0.5), law.cdf(0.1), law.log_prob(0.1)):
        assert value.shape == (0,)


@every_law
def test_the_cdf_rises_from_0_to_1_and_thresholds_invert_its_complement(name):
    law, recall = build(name, np.float64), RECALLS[1:-1]
    cdf, survival = law.cdf(COSINES).numpy(), law.survival(COSINES).numpy()
    assert np.all(np.diff(cdf, axis=1) >= -1e-12)
    # TensorFlow's expm1 rounds equal values differently within one array.
    for value in (cdf, survival):
        assert np.all((value >= 0) & (value <= 1 + 1e-15))
    np.testing.assert_allclose(cdf[:, [0, -1]], [[0, 1]] * 3, atol=1e-12)
    np.testing.assert_allclose(cdf + survival, 1, atol=1e-12)
    np.testing.assert_allclose(law.survival(law.threshold(recall)), [recall] * 3, atol=2e-6)
    thresholds = build(name).threshold(RECALLS.astype(np.float32)).numpy()
    assert np.all(np.isfinite(thresholds) & (np.abs(thresholds) <= 1))
    assert np.all(np.diff(thresholds, axis=1) <= 0)
    np.testing.assert_array_equal(thresholds[:, -1], -1)


@every_law
def test_values_and_gradients_stay_finite_at_the_ends(name):
    make, parameters = LAWS[name]
    parameters = [tf.constant(p, tf.float32) for p in parameters]
    ends = [tf.fill([3], end) for end in (-1.0, 1.0)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([*parameters, *ends])
        law = make(*parameters)
        values = [law.log_prob(s) for s in ends] + [law.cdf(s) for s in ends]
        values += [law.threshold(recall) for recall in (0.0, 0.5, 1.0)]
    for value in values:
        assert np.all(np.isfinite(value))
        for gradient in tape.gradient(value, parameters):
            assert gradient is None or np.all(np.isfinite(gradient))


@every_law
@pytest.mark.slow
def test_gradients_match_finite_differences(name):
    make, parameters = LAWS[name]
    # The broad and the middling query: a float64 step resolves these well.
    parameters, recall = [np.array(p[:2]) for p in parameters], np.array([0.6, 0.3])
    arguments = [make(*parameters).threshold(recall).numpy(), *parameters]
    of_cosines = (lambda s, law: law.cdf(s), lambda s, law: law.log_prob(s))
    for answer in (*of_cosines, lambda s, law: law.threshold(recall)):
        assert_gradients(
            lambda s, *values, answer=answer: tf.reduce_sum(answer(s, make(*values))),
            arguments,
            rtol=2e-3,
            atol=2e-3,
            step=1e-5,
        )


@every_law
def test_arguments_outside_are_rejected(name):
    law = build(name)
    for s in (-1.01, 1.5, np.nan, np.inf):
        message = re.escape(f"cosine must be in [-1, 1]. Received: {s:g}.")
        with pytest.raises(ValueError, match=message):
            law.cdf(s)
    for recall in (-0.1, 1.1, np.nan):
        message = re.escape(f"recall must be in [0, 1]. Received: {recall:g}.")
        with pytest.raises(ValueError, match=message):
            law.threshold(recall)


ALPHA = "alpha must be in [0.001, 1e+06]."
CONVENTION = "convention must be 'pdf' or 'paper'."
DIMENSION = "dimension must be an integer of at least 3."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beta(0.0, 1.0), f"{ALPHA} Received: 0."),
        (lambda: Beta([1.0, -2.0], 1.0), f"{ALPHA} Received: -2 (1 of 2 values are outside)."),
        (lambda: Beta(1.0, np.nan), "beta must be in [0.001, 1e+06]. Received: nan."),
        (lambda: Beta.from_tau(0.0), "tau must be in (0, 1000]. Received: 0."),
        (lambda: Beta.from_tau(0.1, "pfd"), f"{CONVENTION} Received: 'pfd'."),
        (lambda: TruncatedExponential(-1.0), "tau must be in [1e-06, 1000]. Received: -1."),
        (lambda: Beta(1, 1).on_sphere(2), f"{DIMENSION} Received: 2."),
    ],
)
def test_bad_parameters_are_rejected(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


@every_law
def test_what_is_outside_is_nan_in_graphs_and_leaves_its_neighbours_alone(name):
    """And what is inside gives what it gives eagerly."""
    make, parameters = LAWS[name]
    parameters = [np.array(p, np.float32)[[0, 1, 2, 0, 1]] for p in parameters]

    def answers(s, recall, *parameters):
        law = make(*parameters)
        return law.threshold(recall), law.cdf(s), law.log_prob(s)

    specification = [tf.TensorSpec([None])] * (2 + len(parameters))
    graph = tf.function(answers, input_signature=specification, autograph=False)
    s, recall = np.full(5, -0.5, np.float32), np.full(5, 0.5, np.float32)
    eager = answers(s, recall, *parameters)
    for value, expected in zip(graph(s, recall, *parameters), eager, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)

    bad = parameters[0].copy()
    bad[1] = -1.0
    for value, expected in zip(graph(s, recall, bad, *parameters[1:]), eager, strict=True):
        assert np.isnan(value[1])
        np.testing.assert_allclose(value[0], expected[0], rtol=1e-6)

    s[:4], recall[:3] = [-1.01, 1.5, np.nan, np.inf], [-0.1, 1.1, np.nan]
    threshold, cdf, _ = graph(s, recall, *parameters)
    np.testing.assert_array_equal(np.isnan(threshold), [True, True, True, False, False])
    np.testing.assert_array_equal(np.isnan(cdf), [True, True, True, True, False])


def test_nothing_breaks_at_the_corners_of_the_domain():
    corners = np.array([PARAMETER_LOW, 1.0, PARAMETER_HIGH], np.float32)
    alpha, beta, recall = np.meshgrid(corners, corners, RECALLS.astype(np.float32))
    law = Beta(alpha, beta)
    for value in (law.threshold(recall), law.cdf(recall), law.log_prob(2 * recall - 1)):
        assert np.all(np.isfinite(value))
    tau = np.array([1e-3, 1.0, 1e3], np.float32)[:, None]
    law = TruncatedExponential(tau)
    for value in (law.threshold(RECALLS.astype(np.float32)), law.cdf([-1.0, 1.0])):
        assert np.all(np.isfinite(value))


def test_a_cosine_beyond_1_by_rounding_counts_as_1():
    law = Beta(5.0, 2.0)
    beyond = np.array([-1.000001, 1.000001], np.float32)
    np.testing.assert_array_equal(law.cdf(beyond), [0, 1])
    np.testing.assert_array_equal(tf.function(law.cdf)(beyond), [0, 1])


def test_conventions_differ_by_one_in_alpha():
    np.testing.assert_allclose(Beta.from_tau(0.05).alpha, 21.0)
    np.testing.assert_allclose(Beta.from_tau(0.05, "paper").alpha, 20.0)
    np.testing.assert_allclose(Beta(3.0, 4.0).tilted(0.05).alpha, 23.0)
    np.testing.assert_allclose(Beta(3.0, 4.0).tilted(0.05, "paper").alpha, 22.0)


def test_the_closed_form_equals_the_search():
    alpha = np.array([0.05, 1.0, 21.0, 501.0], np.float32)[:, None]
    recall = RECALLS.astype(np.float32)
    general = Beta(alpha, np.ones_like(alpha)).threshold(recall)
    np.testing.assert_allclose(Beta(alpha, 1).threshold(recall), general, atol=1e-7)
