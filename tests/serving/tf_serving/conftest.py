"""Versions of the tiny release's query model, served by the stand-in for TF Serving."""

import pytest
from faulty_server import FaultyServer
from tf_serving_stand_in import TfServingStandIn
from tiny_release import DIMENSION

from pebr_tf.config import TfServing
from serving.encoder import EmbeddedEncoder
from serving.tf_serving.remote_encoder import RemoteEncoder

# Longer than any response takes on a busy machine.
PLENTY = 60_000


@pytest.fixture(scope="session")
def query_model(parts):
    """The folder of the query model; do not write to it."""
    return parts.cutoff / "query_model"


@pytest.fixture(scope="session")
def embedded(query_model):
    return EmbeddedEncoder(query_model)


@pytest.fixture(scope="session")
def server(tmp_path_factory, query_model):
    """Serves the model as versions 6 and 7."""
    folder = tmp_path_factory.mktemp("models")
    for version in (6, 7):
        (folder / str(version)).symlink_to(query_model)
    with TfServingStandIn(folder) as running:
        yield running


@pytest.fixture
def encoder_of():
    made = []

    def make(address, version=7, milliseconds=PLENTY, retries=2):
        settings = TfServing(address=address, deadline_milliseconds=milliseconds, retries=retries)
        made.append(RemoteEncoder(settings, version, DIMENSION))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def faulty():
    """A server that answers as it should until a test tells it otherwise."""
    server = FaultyServer()
    server.start()
    yield server
    server.release.set()
    server.kill()
