"""Plain releases, which need no TensorFlow model."""

import pytest
from plain_release import write_sources

from pebr_tf.release.release import write_release


@pytest.fixture
def sources(tmp_path):
    """What a release is made from; may be damaged."""
    return write_sources(tmp_path / "sources")


@pytest.fixture
def release(tmp_path, sources):
    return write_release(tmp_path / "releases", sources)
