"""The service with TF Serving as its backend: answers, an outage, and a version that is missing."""

import re

import numpy as np
import pytest
from service_helpers import service_settings
from tf_serving_stand_in import TfServingStandIn

from pebr_tf.errors import UserError
from serving.errors import UnavailableError
from serving.retrieval import RetrievalRequest
from serving.service import release_manager
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.release_manager import ReleaseManager, ReleaseSource

QUERIES = ("red phone", "laptop bag 3")


def open_engine(source, address):
    backend = {"tf_serving__address": address, "tf_serving__deadline_milliseconds": 60_000}
    settings, metrics = service_settings(backend="tf_serving", **backend), Metrics()
    return Engine(ReleaseManager(source, settings, metrics), settings, metrics)


@pytest.mark.anyio
async def test_answers_are_those_of_the_release_and_an_outage_is_named(
    tmp_path, releases, retriever
):
    release = retriever.release
    (tmp_path / str(release.version)).symlink_to(release.query_model)
    server = TfServingStandIn(tmp_path)
    engine = open_engine(ReleaseSource(releases, follow=False), server.address)

    reply = await engine.retrieve(RetrievalRequest(QUERIES))
    expected = retriever.retrieve(list(QUERIES))
    assert reply.release == retriever.release.version
    np.testing.assert_array_equal(reply.items.item_ids, expected.items.item_ids)
    np.testing.assert_array_equal(reply.items.scores, expected.items.scores)
    np.testing.assert_array_equal(reply.items.row_splits, expected.items.row_splits)
    server.stop()
    with pytest.raises(UnavailableError, match=f"^TF Serving at {server.address} "):
        await engine.retrieve(RetrievalRequest(QUERIES))
    await engine.stop()


def test_a_release_whose_version_is_missing_is_rejected(server, releases, retriever, monkeypatch):
    monkeypatch.setattr(release_manager, "START_SECONDS", 0.0)
    version = retriever.release.version
    text = re.escape(f"TF Serving at {server.address} has no version {version} of pebr_query.")
    with pytest.raises(UserError, match=f"^{text}$"):
        open_engine(ReleaseSource(releases, follow=True), server.address)
