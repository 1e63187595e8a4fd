"""The files that configure TF Serving parse as its own messages, and agree with the project."""

import re
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


def _message(name, *fields):
    """A message class of (name, number, type, repeated) fields, as published with TF Serving.

    tensorflow-serving-api brings the message of models.config; those of the other two files are
    part of the server alone.
    """
    kinds = {
        "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
        "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
        "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    }
    file = descriptor_pb2.FileDescriptorProto(
        name=f"test/{name}.proto", package="test_tf_serving", syntax="proto3"
    )
    file.dependency.append("google/protobuf/wrappers.proto")
    message = file.message_type.add(name=name)
    for field, number, kind, repeated in fields:
        added = message.field.add(name=field, number=number, label=3 if repeated else 1)
        if kind in kinds:
            added.type = kinds[kind]
        else:
            added.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
            added.type_name = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    if name == "MonitoringConfig":
        nested = file.message_type.add(name="PrometheusConfig")
        nested.field.add(name="enable", number=1, label=1, type=kinds["bool"])
        nested.field.add(name="path", number=2, label=1, type=kinds["string"])
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(f"test_tf_serving.{name}")
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


BatchingParameters = _message(
    "BatchingParameters",
    ("max_batch_size", 1, ".google.protobuf.Int64Value", False),
    ("batch_timeout_micros", 2, ".google.protobuf.Int64Value", False),
    ("max_enqueued_batches", 3, ".google.protobuf.Int64Value", False),
    ("num_batch_threads", 4, ".google.protobuf.Int64Value", False),
    ("thread_pool_name", 5, ".google.protobuf.StringValue", False),
    ("allowed_batch_sizes", 6, "int64", True),
    ("pad_variable_length_inputs", 7, "bool", False),
)
MonitoringConfig = _message(
    "MonitoringConfig", ("prometheus_config", 1, ".test_tf_serving.PrometheusConfig", False)
)


@pytest.fixture(scope="module")
def batching():
    return text_format.Parse((FOLDER / "batching_parameters.txt").read_text(), BatchingParameters())


def test_models():
    config = text_format.Parse(
        (FOLDER / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    assert model.name == TfServing().model
    assert model.base_path == "/releases/query_model"
    assert model.model_platform == "tensorflow"
    assert model.model_version_policy.latest.num_versions == VERSIONS_KEPT == 2


def test_batches_hold_what_the_service_sends(batching):
    settings = Serving()
    largest = max(settings.batching.max_size, settings.limits.queries_per_call)
    assert batching.max_batch_size.value >= largest


def test_allowed_sizes_rise_to_the_largest_and_are_warmed_up(batching):
    sizes = list(batching.allowed_batch_sizes)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == batching.max_batch_size.value
    assert tuple(sizes) == BATCH_SIZES


def test_the_rest_of_the_batching(batching):
    assert batching.batch_timeout_micros.value == 0
    assert batching.num_batch_threads.value >= 1
    assert batching.max_enqueued_batches.value >= 1
    assert not batching.pad_variable_length_inputs


def test_monitoring():
    config = text_format.Parse((FOLDER / "monitoring.config").read_text(), MonitoringConfig())
    assert config.prometheus_config.enable
    assert config.prometheus_config.path == "/monitoring/prometheus/metrics"


@pytest.mark.parametrize("name", ["BatchingParameters", "MonitoringConfig"])
def test_the_messages_refuse_what_they_do_not_know(name):
    with pytest.raises(text_format.ParseError, match="no field named"):
        text_format.Parse("batch_size { value: 1 }", globals()[name]())


def test_the_readme_names_every_file():
    text = (FOLDER / "README.md").read_text()
    for path in FOLDER.iterdir():
        if path.is_file() and path.name not in ("README.md", "__init__.py"):
            assert re.search(rf"`{re.escape(path.name)}`", text), path.name
