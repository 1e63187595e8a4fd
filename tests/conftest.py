"""Keras 2 is chosen before any test module imports TensorFlow."""

import gc

import pebr_tf  # noqa: F401

SLOW_AS_A_WHOLE = "\npytestmark = pytest.mark.slow\n"


def pytest_configure():
    # Imports make objects that stay; looking for garbage among them takes a tenth of the time.
    gc.disable()


def pytest_ignore_collect(collection_path, config):
    """A file that is slow as a whole is not imported only to be deselected."""
    if config.option.markexpr.startswith("not slow") and collection_path.suffix == ".py":
        return SLOW_AS_A_WHOLE in collection_path.read_text("utf-8") or None
    return None


def pytest_collection_finish():
    # Arrow 10 looks through all objects for each CSV block; those of the libraries are left out.
    gc.freeze()
    gc.enable()
