"""The files that configure TF Serving parse as its own messages, and agree with the project."""

import re
from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2
from tf_serving_stand_in import VERSIONS_KEPT

import serving.tf_serving
from pebr_tf.config import Serving, TfServing
from serving.tf_serving.warm_up import BATCH_SIZES

FOLDER = Path(serving.tf_serving.__file__).parent


# tensorflow-serving-api contains the message of models.config; that of batching parameters is in
# the server only. These published fields of it are wrapped numbers; allowed_batch_sizes repeats.
NUMBERS = {"max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads"}


def test_batching():
    text = (FOLDER / "batching_parameters.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    numbers = dict(re.findall(r"^(\w+) { value: (\d+) }$", text, re.MULTILINE))
    sizes = [int(size) for size in re.findall(r"^allowed_batch_sizes: (\d+)$", text, re.MULTILINE)]
    assert numbers.keys() == NUMBERS
    assert len(lines) == len(numbers) + len(sizes)
    settings = Serving()
    largest = max(settings.batching.max_size, settings.limits.queries_per_call)
    assert int(numbers["max_batch_size"]) == sizes[-1] >= largest
    # All allowed sizes are warmed up.
    assert tuple(sizes) == BATCH_SIZES
    assert numbers["batch_timeout_micros"] == "0"


def test_models():
    config = text_format.Parse(
        (FOLDER / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    assert model.name == TfServing().model
    assert model.base_path == "/releases/query_model"
    assert model.model_platform == "tensorflow"
    assert model.model_version_policy.latest.num_versions == VERSIONS_KEPT == 2
