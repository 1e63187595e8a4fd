"""Before a swap: is the version there, and is it a query model."""

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

from serving.encoder import NAMES
from serving.errors import Unavailable


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
    """What a query model says of `serving_default`, with outputs changed."""
    specs = {name: tf.TensorSpec([None], tf.float32) for name in NAMES}
    specs["embedding"] = tf.TensorSpec([None, DIMENSION], tf.float32)
    specs["stratum"] = tf.TensorSpec([None], tf.int64)
    signature = tf.compat.v1.saved_model.signature_def_utils.build_signature_def()
    name, dtype = inputs
    signature.inputs[name].dtype = dtype.as_datatype_enum
    for output, spec in {**specs, **changes}.items():
        if spec is not None:
            signature.outputs[output].dtype = spec.dtype.as_datatype_enum
            signature.outputs[output].tensor_shape.CopyFrom(spec.shape.as_proto())
    return signature


@pytest.mark.parametrize(
    ("status", "metadata", "message"),
    [
        (_status(20), None, "has version 7 of pebr_query in the state LOADING."),
        (_status(50), None, "has version 7 of pebr_query in the state END."),
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
            _status(30),
            _metadata(query=_signature()),
            "answered with a model without the signature serving_default.",
        ),
        (
            _status(30),
            _metadata(serving_default=_signature(("text", tf.string))),
            "answered with a model that takes text string in the place of query string.",
        ),
        (
            _status(30),
            _metadata(serving_default=_signature(tau=None)),
            "answered with a model without the output tau.",
        ),
        (
            _status(30),
            _metadata(serving_default=_signature(tau=tf.TensorSpec([None], tf.float64))),
            "answered with tau double in the place of float.",
        ),
        (
            _status(30),
            _metadata(serving_default=_signature(tau=tf.TensorSpec([None, 1], tf.float32))),
            "answered with a model whose output tau has shape [-1, 1].",
        ),
    ],
)
def test_a_check_says_what_is_wrong(faulty, encoder_of, status, metadata, message):
    faulty.behaviours.update({STATUS: status, METADATA: metadata})
    text = re.escape(f"TF Serving at {faulty.address} {message}")
    with pytest.raises(Unavailable, match=f"^{text}$"):
        encoder_of(faulty.address).check()


@pytest.fixture
def loaded(faulty):
    """A server that says that it has the right model."""
    faulty.behaviours.update(
        {STATUS: _status(30), METADATA: _metadata(serving_default=_signature())}
    )
    return faulty


def test_a_check_passes_what_is_right(loaded, encoder_of):
    loaded.behaviours[PREDICT] = good
    encoder_of(loaded.address, dimension=DIMENSION).check()


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (failing(grpc.StatusCode.INTERNAL, "no memory"), "failed, INTERNAL: no memory"),
        (changed(tau=None), "answered with no output tau."),
    ],
)
def test_a_check_asks_for_an_answer(loaded, encoder_of, behaviour, message):
    loaded.behaviours[PREDICT] = behaviour
    text = re.escape(f"TF Serving at {loaded.address} {message}")
    with pytest.raises(Unavailable, match=f"^{text}$"):
        encoder_of(loaded.address).check()


def test_a_first_answer_may_take_longer_than_the_others(loaded, encoder_of):
    seen = []
    loaded.behaviours[PREDICT] = lambda request, context: (
        seen.append(context.time_remaining()),
        good(request),
    )[1]
    encoder_of(loaded.address, milliseconds=1).check()
    assert seen[0] > 1
