"""Releases, the retrieval service and its client."""

import pebr_tf  # prepares the process before TensorFlow is imported
