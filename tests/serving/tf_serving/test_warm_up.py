"""Warm-up requests are valid, and a model is replayed them when it is loaded."""

import shutil

import grpc
import numpy as np
import pytest
import tensorflow as tf
from stand_in.servable import Refusal, Servable
from tensorflow_serving.apis import prediction_log_pb2

from pebr_tf.errors import UserError
from serving.encoder import NAMES
from serving.tf_serving.requests import encode_request
from serving.tf_serving.warm_up import BATCH_SIZES, WARM_UP, write_warm_up

QUERIES = ["red phone", "größe 42"]


@pytest.fixture
def model(tmp_path, query_model):
    """A copy of the query model that may be written to."""
    return shutil.copytree(query_model, tmp_path / "model")


def logged(model):
    """The requests in the warm-up of a model, read by TensorFlow."""
    records = tf.data.TFRecordDataset(str(model / WARM_UP)).as_numpy_iterator()
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    assert all(log.WhichOneof("log_type") == "predict_log" for log in logs)
    return [log.predict_log.request for log in logs]


def test_every_batch_size_of_both_signatures(model):
    write_warm_up(model, QUERIES)
    requests = logged(model)
    sizes = {"serving_default": [], "query_at": []}
    for request in requests:
        assert request.model_spec.name == "pebr_query"
        assert not request.model_spec.HasField("version")
        sizes[request.model_spec.signature_name].append(len(request.inputs["query"].string_val))
    assert sizes == {"serving_default": list(BATCH_SIZES), "query_at": list(BATCH_SIZES)}


def test_it_takes_the_path_of_the_encoder(model):
    write_warm_up(model, QUERIES, batch_sizes=[3])
    request = logged(model)[0]
    assert request == encode_request([*QUERIES, QUERIES[0]], "pebr_query", None)


def test_the_records_are_valid_requests_with_equal_answers(model, prediction, embedded):
    write_warm_up(model, QUERIES, batch_sizes=[1, 4])
    for request in logged(model):
        response = prediction.Predict(request, timeout=60)
        texts = [text.decode() for text in request.inputs["query"].string_val]
        expected = embedded.encode(texts)
        for name in set(NAMES) - {"threshold"}:
            received = tf.make_ndarray(response.outputs[name])
            np.testing.assert_array_equal(received, getattr(expected, name))


def test_it_is_replayed_on_loading_and_a_bad_record_keeps_the_model_out(model):
    write_warm_up(model, QUERIES, batch_sizes=[2])
    Servable(model)
    request = encode_request(QUERIES, "pebr_query", None)
    request.model_spec.signature_name = "other"
    _write(model, request)
    with pytest.raises(Refusal, match='Serving signature key "other" not found') as caught:
        Servable(model)
    assert caught.value.code is grpc.StatusCode.FAILED_PRECONDITION


def test_as_many_records_as_tf_serving_replays(model, monkeypatch):
    request = encode_request(QUERIES, "pebr_query", None)
    monkeypatch.setattr("stand_in.servable.MOST_RECORDS", 3)
    _write(model, request, request, request)
    Servable(model)
    _write(model, request, request, request, request)
    with pytest.raises(Refusal, match=r"Number of warmup records exceeds the maximum \(3\) at "):
        Servable(model)


def test_what_is_no_warm_up_keeps_the_model_out(model):
    (model / WARM_UP).write_bytes(b"not a TFRecord, and long enough to have a header")
    with pytest.raises(Refusal) as caught:
        Servable(model)
    assert caught.value.code is grpc.StatusCode.DATA_LOSS
    with tf.io.TFRecordWriter(str(model / WARM_UP)) as writer:
        writer.write(b"\xff\xff")
    with pytest.raises(Refusal, match="Failed to parse warmup record from "):
        Servable(model)
    with tf.io.TFRecordWriter(str(model / WARM_UP)) as writer:
        log = prediction_log_pb2.PredictionLog()
        log.classify_log.request.model_spec.name = "x"
        writer.write(log.SerializeToString())
    with pytest.raises(Refusal, match="Unsupported log_type for warmup: classify_log at "):
        Servable(model)


def test_it_is_written_whole_over_the_last_one(model):
    write_warm_up(model, QUERIES, batch_sizes=[1, 2])
    write_warm_up(model, QUERIES, batch_sizes=[1])
    assert len(logged(model)) == 2
    assert sorted(each.name for each in (model / WARM_UP).parent.iterdir()) == [
        "query_model.json",
        "tf_serving_warmup_requests",
    ]


def test_the_same_queries_give_the_same_bytes(model):
    write_warm_up(model, QUERIES)
    first = (model / WARM_UP).read_bytes()
    write_warm_up(model, QUERIES)
    assert (model / WARM_UP).read_bytes() == first


def test_refusals(model, tmp_path):
    with pytest.raises(UserError, match=r"^a warm-up must have at least one query. Received: none"):
        write_warm_up(model, [])
    with pytest.raises(UserError, match=r"^a warm-up must have at most 500 batch .* Received: 501"):
        write_warm_up(model, QUERIES, batch_sizes=[1] * 501)
    with pytest.raises(UserError, match=f"^{tmp_path} must be a SavedModel to be warmed up[.]$"):
        write_warm_up(tmp_path, QUERIES)


def _write(model, *requests):
    with tf.io.TFRecordWriter(str(model / WARM_UP)) as writer:
        for request in requests:
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(request)
            writer.write(log.SerializeToString())
