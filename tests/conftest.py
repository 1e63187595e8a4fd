"""Keras 2 is chosen before any test module imports TensorFlow."""

import pebr_tf  # noqa: F401
