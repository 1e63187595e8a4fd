"""Gradients of TensorFlow against central differences."""

import numpy as np
import tensorflow as tf


def finite_difference(function, argument, step):
    """Central differences of a scalar function of one float64 array."""
    gradient = np.zeros_like(argument)
    for index in np.ndindex(*argument.shape):
        up, down = argument.copy(), argument.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


def assert_gradients(function, arguments, rtol=1e-5, atol=1e-8, step=1e-6):
    """Compares TensorFlow's gradients of a scalar function of float64 arrays with differences."""
    function = tf.function(function, autograph=False)
    variables = [tf.Variable(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        total = function(*variables)
    gradients = tape.gradient(total, variables, unconnected_gradients="zero")
    for index, gradient in enumerate(gradients):

        def alone(argument, index=index):
            replaced = [*arguments[:index], argument, *arguments[index + 1 :]]
            return float(function(*map(tf.constant, replaced)))

        expected = finite_difference(alone, arguments[index], step)
        np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=atol)
