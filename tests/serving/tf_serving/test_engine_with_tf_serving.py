"""The service with TF Serving as its backend: answers, an outage, and a version that is missing."""

import re
from pathlib import Path

import numpy as np
import pytest
from service_helpers import service_settings
from tf_serving_stand_in import TfServingStandIn

from serving.errors import UnavailableError
from serving.retrieval import RetrievalRequest
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.worker import Job, executor_of, load

QUERIES = ("red phone", "laptop bag 3")


def open_engine(directory, address):
    backend = {"tf_serving__address": address, "tf_serving__deadline_milliseconds": 60_000}
    settings = service_settings(backend="tf_serving", **backend)
    retriever = load(Job(directory, settings, Path(), "0", verify=True))
    return Engine(retriever, settings, Metrics(), executor_of(settings))


@pytest.mark.anyio
async def test_answers_are_those_of_the_release_and_an_outage_is_named(tmp_path, retriever):
    release = retriever.release
    (tmp_path / str(release.version)).symlink_to(release.query_model)
    server = TfServingStandIn(tmp_path)
    engine = open_engine(release.directory, server.address)

    reply = await engine.retrieve(RetrievalRequest(QUERIES))
    expected = retriever.retrieve(list(QUERIES))
    assert reply.release == retriever.release.version
    np.testing.assert_array_equal(reply.items.item_ids, expected.items.item_ids)
    np.testing.assert_array_equal(reply.items.scores, expected.items.scores)
    np.testing.assert_array_equal(reply.items.row_splits, expected.items.row_splits)
    server.stop()
    with pytest.raises(UnavailableError, match=f"^TF Serving at {server.address} "):
        await engine.retrieve(RetrievalRequest(("another",)))
    # What has been answered before needs no encoding.
    assert (await engine.retrieve(RetrievalRequest(QUERIES))).items is reply.items
    await engine.stop()


def test_a_release_whose_version_is_missing_is_rejected(server, retriever):
    version = retriever.release.version
    text = re.escape(f"TF Serving at {server.address} has no version {version} of pebr_query.")
    with pytest.raises(UnavailableError, match=f"^{text}$"):
        open_engine(retriever.release.directory, server.address)
