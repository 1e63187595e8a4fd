"""Releases, the retrieval service and its client."""

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)
