"""Warm-up requests are valid and take the path of the encoder."""

import shutil

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2, prediction_service_pb2_grpc

from pebr_tf.retrieval.encoded import ENCODED_FIELDS
from serving.tf_serving import warm_up
from serving.tf_serving.messages import encode_request
from serving.tf_serving.warm_up import BATCH_SIZES, WARM_UP, write_warm_up

QUERIES = ["red phone", "größe 42"]


@pytest.fixture
def model(tmp_path, query_model):
    return shutil.copytree(query_model, tmp_path / "model")


def logged(model):
    """The requests in the warm-up of a model, read by TensorFlow."""
    records = tf.data.TFRecordDataset(str(model / WARM_UP)).as_numpy_iterator()
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    assert all(log.WhichOneof("log_type") == "predict_log" for log in logs)
    return [log.predict_log.request for log in logs]


def test_every_batch_size_of_every_signature(model):
    write_warm_up(model, QUERIES)
    requests = logged(model)
    sizes = {"serving_default": [], "encode": [], "query_at": []}
    for request in requests:
        assert request.model_spec.name == "pebr_query"
        assert not request.model_spec.HasField("version")
        sizes[request.model_spec.signature_name].append(len(request.inputs["query"].string_val))
    assert all(each == list(BATCH_SIZES) for each in sizes.values())


def test_the_records_are_valid_requests_with_equal_answers(model, server, embedded, monkeypatch):
    monkeypatch.setattr(warm_up, "BATCH_SIZES", (1, 4))
    write_warm_up(model, QUERIES)
    with grpc.insecure_channel(server.address) as channel:
        predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
        for request in logged(model):
            response = predict(request, timeout=60)
            texts = [text.decode() for text in request.inputs["query"].string_val]
            expected = embedded.encode(texts)
            for name in request.output_filter or ENCODED_FIELDS:
                received = tf.make_ndarray(response.outputs[name])
                np.testing.assert_array_equal(received, getattr(expected, name))


def test_it_replaces_an_existing_warm_up(model, monkeypatch):
    monkeypatch.setattr(warm_up, "BATCH_SIZES", (3,))
    write_warm_up(model, QUERIES)
    first = (model / WARM_UP).read_bytes()
    assert logged(model)[0] == encode_request([*QUERIES, QUERIES[0]], "pebr_query", None)
    write_warm_up(model, ["other"] * 3)
    write_warm_up(model, QUERIES)
    assert (model / WARM_UP).read_bytes() == first
    assert sorted(each.name for each in (model / WARM_UP).parent.iterdir()) == [
        "query_model.json",
        "tf_serving_warmup_requests",
    ]
