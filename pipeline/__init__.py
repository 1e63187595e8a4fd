"""The TFX pipeline and its runners."""

import pebr_tf  # prepares the process before TensorFlow is imported
