"""The service with TF Serving as its backend: a version that is missing."""

import re

import pytest

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from serving.service import release_manager
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.release_manager import ReleaseSource


def test_a_release_whose_version_is_missing_is_rejected(server, releases, retriever, monkeypatch):
    monkeypatch.setattr(release_manager, "START_SECONDS", 0.0)
    changes = {"serving.backend": "tf_serving", "serving.tf_serving.address": server.address}
    settings = Config().replace_all(changes).serving
    version = retriever.release.version
    text = re.escape(f"TF Serving at {server.address} has no version {version} of pebr_query.")
    with pytest.raises(UserError, match=f"^{text}$"):
        Engine.open(ReleaseSource(releases, follow=True), settings, Metrics())
