"""The stand-in rejects what TF Serving rejects, so that no test passes by its leniency."""

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_service_pb2_grpc

from serving.tf_serving.messages import encode_request

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
SECONDS = 60


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(server.address) as channel:
        yield channel


def request(version=7, model="pebr_query", signature=None, outputs=None, **inputs):
    made = encode_request(["phone", "laptop"], model, version)
    if signature is not None:
        made.model_spec.signature_name = signature
    if outputs is not None:
        made.output_filter[:] = outputs
    for name, value in inputs.items():
        made.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return made


def test_the_newest_version_answers_unless_one_is_requested(channel):
    predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
    assert predict(request(None), timeout=SECONDS).model_spec.version.value == 7
    response = predict(request(6), timeout=SECONDS)
    assert response.model_spec.version.value == 6
    assert not response.outputs["embedding"].tensor_content


@pytest.mark.parametrize(
    ("bad", "code", "details"),
    [
        (request(5), NOT_FOUND, "Servable not found for request: Specific(pebr_query, 5)"),
        (request(None, "other"), NOT_FOUND, "Servable not found for request: Latest(other)"),
        (
            request(signature="predict"),
            grpc.StatusCode.FAILED_PRECONDITION,
            'Serving signature key "predict" not found.',
        ),
        (request(cutoff=[0.5]), INVALID, "input size does not match signature"),
        (request(query=[0.5]), INVALID, "Expects query to be of type 7"),
        (request(outputs=["other"]), INVALID, "output tensor alias not found in signature"),
    ],
)
def test_bad_requests_are_rejected(channel, bad, code, details):
    with pytest.raises(grpc.RpcError) as caught:
        prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(bad, timeout=SECONDS)
    assert (caught.value.code(), caught.value.details()) == (code, details)
