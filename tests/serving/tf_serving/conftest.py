"""Versions of the tiny release's query model, served by the stand-in for TF Serving."""

import grpc
import pytest
from stand_in.model_server import serve_models
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

from pebr_tf.config import TfServing
from serving.encoder import EmbeddedEncoder
from serving.tf_serving.remote_encoder import RemoteEncoder

# Enough for a machine with much else to do: no test waits for it but those that say so.
PLENTY = 60_000


@pytest.fixture(scope="session")
def query_model(parts):
    """The folder of the query model; do not write to it."""
    return parts.cutoff / "query_model"


@pytest.fixture(scope="session")
def embedded(query_model):
    """The model in this process."""
    return EmbeddedEncoder(query_model)


@pytest.fixture(scope="module")
def models(tmp_path_factory, query_model):
    """A base path with versions 6 and 7 of the same model."""
    folder = tmp_path_factory.mktemp("models")
    for version in (6, 7):
        (folder / str(version)).symlink_to(query_model)
    return folder


@pytest.fixture(scope="module")
def server(models):
    """What serves them; it looks for new versions only when it is told to."""
    with serve_models(models, "pebr_query", poll_seconds=None) as running:
        yield running


@pytest.fixture(scope="module")
def prediction(server):
    """The stub of its PredictionService."""
    with grpc.insecure_channel(server.address) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def model_service(server):
    """The stub of its ModelService."""
    with grpc.insecure_channel(server.address) as channel:
        yield model_service_pb2_grpc.ModelServiceStub(channel)


@pytest.fixture
def encoder_of():
    """Makes clients of an address, and closes them at the end."""
    made = []

    def make(address, version=7, milliseconds=PLENTY, retries=2, **options):
        settings = TfServing(address=address, deadline_milliseconds=milliseconds, retries=retries)
        made.append(RemoteEncoder(settings, version, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
