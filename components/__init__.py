"""TFX components, a folder each: `component.py` wires, `executor.py` works by calling `pebr_tf`."""

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)
