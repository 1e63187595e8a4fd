"""Before a swap: checks that the version is served and is a query model."""

import re

import grpc
import pytest
import tensorflow as tf
from faulty_server import (
    DIMENSION,
    METADATA,
    PREDICT,
    STATUS,
    changed,
    failing,
    faulty_server,
    good,
)
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from pebr_tf.retrieval.encoded import ENCODED_FIELDS
from serving.errors import UnavailableError


@pytest.fixture(scope="module")
def faulty():
    with faulty_server() as server:
        yield server


def _status(state, error_code=0, message=""):
    response = get_model_status_pb2.GetModelStatusResponse()
    each = response.model_version_status.add(version=7, state=state)
    each.status.error_code, each.status.error_message = error_code, message
    return lambda request, context: response


def _metadata(**signatures):
    def answer(request, context):
        response = get_model_metadata_pb2.GetModelMetadataResponse(model_spec=request.model_spec)
        packed = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in signatures.items():
            packed.signature_def[name].CopyFrom(signature)
        response.metadata["signature_def"].Pack(packed)
        return response

    return answer


def _signature(inputs=("query", tf.string), **changes):
    """`serving_default` of a query model, with outputs changed."""
    specs = {name: tf.TensorSpec([None], tf.float32) for name in ENCODED_FIELDS}
    specs["embedding"] = tf.TensorSpec([None, DIMENSION], tf.float32)
    specs["stratum"] = tf.TensorSpec([None], tf.int64)
    specs["unfamiliar"] = tf.TensorSpec([None], tf.bool)
    signature = tf.compat.v1.saved_model.signature_def_utils.build_signature_def()
    name, dtype = inputs
    signature.inputs[name].dtype = dtype.as_datatype_enum
    for output, spec in {**specs, **changes}.items():
        if spec is not None:
            signature.outputs[output].dtype = spec.dtype.as_datatype_enum
            signature.outputs[output].tensor_shape.CopyFrom(spec.shape.as_proto())
    return signature


AVAILABLE = _status(30)


@pytest.mark.parametrize(
    ("status", "signatures", "message"),
    [
        (_status(20), None, "has version 7 of pebr_query in the state LOADING."),
        (
            _status(50, 5, "Op type not registered"),
            None,
            "failed to load version 7 of pebr_query: Op type not registered",
        ),
        (
            lambda request, context: get_model_status_pb2.GetModelStatusResponse(),
            None,
            "has no version 7 of pebr_query.",
        ),
        (failing(grpc.StatusCode.UNIMPLEMENTED, "no"), None, "failed, UNIMPLEMENTED: no"),
        (
            AVAILABLE,
            {"query": _signature()},
            "returned a model without the signature serving_default.",
        ),
        (
            AVAILABLE,
            _signature(("text", tf.string)),
            "returned a model with the input text string instead of query string.",
        ),
        (AVAILABLE, _signature(tau=None), "returned a model without the output tau."),
        (
            AVAILABLE,
            _signature(tau=tf.TensorSpec([None], tf.float64)),
            "returned tau of type double instead of float.",
        ),
    ],
)
def test_a_failed_check_is_explained(faulty, encoder_of, status, signatures, message):
    if not isinstance(signatures, dict):
        signatures = {"serving_default": signatures}
    faulty.behaviours.update({STATUS: status, METADATA: _metadata(**signatures)})
    text = re.escape(f"TF Serving at {faulty.address} {message}")
    with pytest.raises(UnavailableError, match=f"^{text}$"):
        encoder_of(faulty.address).check()


@pytest.fixture
def loaded(faulty):
    faulty.behaviours.update({STATUS: AVAILABLE, METADATA: _metadata(serving_default=_signature())})
    return faulty


def test_a_check_includes_a_prediction(loaded, encoder_of):
    loaded.behaviours[PREDICT] = changed(tau=None)
    text = re.escape(f"TF Serving at {loaded.address} returned no output tau.")
    with pytest.raises(UnavailableError, match=f"^{text}$"):
        encoder_of(loaded.address).check()


def test_a_valid_model_passes_and_its_first_response_may_take_longer(loaded, encoder_of):
    seen = []
    loaded.behaviours[PREDICT] = lambda request, context: (
        seen.append(context.time_remaining()),
        good(request),
    )[1]
    encoder_of(loaded.address, milliseconds=1).check()
    assert seen[0] > 1
