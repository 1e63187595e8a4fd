"""Before a swap: checks that the version is served and answers as a query model."""

import re

import grpc
import pytest
from faulty_server import PREDICT, STATUS, changed, failing, good
from tensorflow_serving.apis import get_model_status_pb2

from serving.errors import UnavailableError


def _status(state, error_code=0, message=""):
    response = get_model_status_pb2.GetModelStatusResponse()
    each = response.model_version_status.add(version=7, state=state)
    each.status.error_code, each.status.error_message = error_code, message
    return lambda request, context: response


def _only_the_default_signature(request, context):
    if request.model_spec.signature_name != "serving_default":
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Signature name is not found")
    return good(request)


AVAILABLE = _status(30)


@pytest.mark.parametrize(
    ("status", "predict", "message"),
    [
        (_status(20), good, "has version 7 of pebr_query in the state LOADING."),
        (
            _status(50, 5, "Op type not registered"),
            good,
            "failed to load version 7 of pebr_query: Op type not registered",
        ),
        (
            lambda request, context: get_model_status_pb2.GetModelStatusResponse(),
            good,
            "has no version 7 of pebr_query.",
        ),
        (failing(grpc.StatusCode.UNIMPLEMENTED, "no"), good, "failed, UNIMPLEMENTED: no"),
        (AVAILABLE, changed(tau=None), "returned no output tau."),
        (
            AVAILABLE,
            _only_the_default_signature,
            "failed, INVALID_ARGUMENT: Signature name is not found",
        ),
    ],
)
def test_a_failed_check_is_explained(faulty, encoder_of, status, predict, message):
    faulty.behaviours.update({STATUS: status, PREDICT: predict})
    text = re.escape(f"TF Serving at {faulty.address} {message}")
    with pytest.raises(UnavailableError, match=f"^{text}$"):
        encoder_of(faulty.address).check()


def test_a_valid_model_passes_and_its_first_response_may_take_longer(faulty, encoder_of):
    seen = []

    def remember(request, context):
        seen.append((request.model_spec.signature_name, context.time_remaining()))
        return good(request)

    faulty.behaviours.update({STATUS: AVAILABLE, PREDICT: remember})
    encoder_of(faulty.address, milliseconds=1).check()
    assert [name for name, _ in seen] == ["serving_default", "encode"]
    assert all(remaining > 1 for _, remaining in seen)
