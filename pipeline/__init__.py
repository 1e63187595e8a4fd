"""The TFX pipeline and its runners."""

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)
