"""TFX components, one folder each: `component.py` wires, `executor.py` calls `pebr_tf`."""

import importlib

import pebr_tf  # prepares the process before TensorFlow is imported


def __getattr__(name: str) -> type:
    """Artifact types by the path that TYPE_NAME states; imported on first use, with TFX."""
    artifacts = importlib.import_module("components.artifacts")
    if name not in artifacts.NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(artifacts, name)
