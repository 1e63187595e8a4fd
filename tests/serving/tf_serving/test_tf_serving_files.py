"""The files that configure TF Serving parse as its own messages, and agree with the project."""

import subprocess
import sys
from pathlib import Path

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


# tensorflow-serving-api contains the message of models.config; that of batching parameters is in
# the server only. These are its published fields.
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
"""


def test_batching(tmp_path):
    (tmp_path / "files.proto").write_text(PROTO)
    out = tmp_path / "files.bin"
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", f"-I{tmp_path}"]
    subprocess.run([*command, f"--descriptor_set_out={out}", "files.proto"], check=True)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0])
    descriptor = pool.FindMessageTypeByName("BatchingParameters")
    message = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    batching = text_format.Parse((FOLDER / "batching_parameters.txt").read_text(), message())
    settings = Serving()
    largest = max(settings.batching.max_size, settings.limits.queries_per_call)
    assert batching.max_batch_size.value >= largest
    sizes = list(batching.allowed_batch_sizes)
    assert sizes[-1] == batching.max_batch_size.value
    # All allowed sizes are warmed up.
    assert tuple(sizes) == BATCH_SIZES
    assert batching.batch_timeout_micros.value == 0


def test_models():
    config = text_format.Parse(
        (FOLDER / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    assert model.name == TfServing().model
    assert model.base_path == "/releases/query_model"
    assert model.model_platform == "tensorflow"
    assert model.model_version_policy.latest.num_versions == VERSIONS_KEPT == 2
