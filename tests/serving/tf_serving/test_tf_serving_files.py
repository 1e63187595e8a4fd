"""The files that configure TF Serving parse as its own messages, and agree with the project."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
    wrappers_pb2,
)
from tensorflow_serving.config import model_server_config_pb2
from tf_serving_stand_in import VERSIONS_KEPT

import serving.tf_serving
from pebr_tf.config import Serving, TfServing
from serving.tf_serving.warm_up import BATCH_SIZES

FOLDER = Path(serving.tf_serving.__file__).parent


# tensorflow-serving-api contains the message of models.config; those of the other two files are in
# the server only. These are their published fields.
PROTO = """
syntax = "proto3";
import "google/protobuf/wrappers.proto";
message BatchingParameters {
  google.protobuf.Int64Value max_batch_size = 1;
  google.protobuf.Int64Value batch_timeout_micros = 2;
  google.protobuf.Int64Value max_enqueued_batches = 3;
  google.protobuf.Int64Value num_batch_threads = 4;
  google.protobuf.StringValue thread_pool_name = 5;
  repeated int64 allowed_batch_sizes = 6;
  bool pad_variable_length_inputs = 7;
}
message PrometheusConfig {
  bool enable = 1;
  string path = 2;
}
message MonitoringConfig {
  PrometheusConfig prometheus_config = 1;
}
"""


@pytest.fixture(scope="module")
def parse(tmp_path_factory):
    """Parses a file, or a text, as one of these messages."""
    folder = tmp_path_factory.mktemp("proto")
    (folder / "files.proto").write_text(PROTO)
    out = folder / "files.bin"
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", f"-I{folder}"]
    subprocess.run([*command, f"--descriptor_set_out={out}", "files.proto"], check=True)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0])

    def parse_as(name, content):
        text = content if isinstance(content, str) else content.read_text()
        descriptor = pool.FindMessageTypeByName(name)
        message = message_factory.MessageFactory(pool).GetPrototype(descriptor)
        return text_format.Parse(text, message())

    return parse_as


@pytest.fixture(scope="module")
def batching(parse):
    return parse("BatchingParameters", FOLDER / "batching_parameters.txt")


def test_models():
    config = text_format.Parse(
        (FOLDER / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    assert model.name == TfServing().model
    assert model.base_path == "/releases/query_model"
    assert model.model_platform == "tensorflow"
    assert model.model_version_policy.latest.num_versions == VERSIONS_KEPT == 2


def test_batching(batching):
    settings = Serving()
    largest = max(settings.batching.max_size, settings.limits.queries_per_call)
    assert batching.max_batch_size.value >= largest
    sizes = list(batching.allowed_batch_sizes)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == batching.max_batch_size.value
    # All allowed sizes are warmed up.
    assert tuple(sizes) == BATCH_SIZES
    assert batching.batch_timeout_micros.value == 0
    assert batching.num_batch_threads.value >= 1
    assert batching.max_enqueued_batches.value >= 1
    assert not batching.pad_variable_length_inputs


def test_monitoring(parse):
    config = parse("MonitoringConfig", FOLDER / "monitoring.config")
    assert config.prometheus_config.enable
    assert config.prometheus_config.path == "/monitoring/prometheus/metrics"
    for name in ("BatchingParameters", "MonitoringConfig"):
        with pytest.raises(text_format.ParseError, match="no field named"):
            parse(name, "batch_size { value: 1 }")


def test_the_readme_names_every_file():
    text = (FOLDER / "README.md").read_text()
    for path in FOLDER.iterdir():
        if path.is_file() and path.name not in ("README.md", "__init__.py"):
            assert re.search(rf"`{re.escape(path.name)}`", text), path.name
