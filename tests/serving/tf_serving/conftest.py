"""Versions of the tiny release's query model, served by the stand-in for TF Serving."""

import pytest
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
    """The model in this process."""
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
    """Creates clients of an address, and closes them at the end."""
    made = []

    def make(address, version=7, milliseconds=PLENTY, retries=2):
        settings = TfServing(address=address, deadline_milliseconds=milliseconds, retries=retries)
        made.append(RemoteEncoder(settings, version, DIMENSION))
        return made[-1]

    yield make
    for each in made:
        each.close()
