"""TF Serving is killed, hangs, is slow or sends invalid responses: the errors of callers."""

import math
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
import tensorflow as tf
from faulty_server import PREDICT, changed, failing, good
from tensorflow.core.framework.tensor_pb2 import TensorProto

from pebr_tf.retrieval.encoded import ENCODED_FIELDS, TOWER_FIELDS
from serving.errors import DeadlineError, UnavailableError
from serving.tf_serving import circuit_breaker


def error_of(encoder, kind=UnavailableError, **arguments):
    with pytest.raises(kind) as caught:
        encoder.encode(["phone", "laptop"], **arguments)
    return str(caught.value)


def error_while(faulty, encoder, act):
    """The error of a call during which, once it has arrived, something happens."""
    with ThreadPoolExecutor(1) as threads:
        error = threads.submit(error_of, encoder)
        assert faulty.arrived.wait(60)
        act()
        return error.result(60)


def test_the_request_pins_the_version_and_carries_the_earlier_deadline(faulty, encoder_of):
    seen = []
    faulty.behaviours[PREDICT] = lambda request, context: (
        seen.append((request, context.time_remaining())),
        good(request),
    )[1]
    encoder_of(faulty.address, milliseconds=5_000).encode(["a", "ü"])
    encoder = encoder_of(faulty.address)
    encoder.encode(["a"], deadline=time.monotonic() + 20, with_law=False)
    (request, remaining), (other, remaining_of_caller) = seen
    assert request.model_spec.name == "pebr_query"
    assert request.model_spec.version.value == 7
    assert request.model_spec.signature_name == "serving_default"
    assert list(request.output_filter) == list(ENCODED_FIELDS)
    assert other.model_spec.signature_name == "encode"
    assert list(other.output_filter) == list(TOWER_FIELDS)
    assert list(request.inputs["query"].string_val) == [b"a", "ü".encode()]
    assert 0 < remaining <= 6
    assert 0 < remaining_of_caller <= 21


def _raw(*sizes, **values):
    tensor = TensorProto(dtype=tf.float32.as_datatype_enum, **values)
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    return tensor


def _of_version_6(request, context):
    request.model_spec.version.value = 6
    return good(request)


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (_of_version_6, "version 6 instead of 7"),
        (changed(tau=None), "no output tau"),
        (changed(tau=np.zeros([2, 1], np.float32)), "tau of shape [2, 1] instead of [2]"),
        (changed(level=np.zeros(2)), "level of type double instead of float"),
        (changed(tau=TensorProto(dtype=99)), "tau of type 99 instead of float"),
        (
            changed(embedding=np.full([2, 8], math.inf, np.float32)),
            "a number in embedding that is not finite",
        ),
        # The values need not fit the shape.
        (changed(tau=_raw(2, tensor_content=b"\0" * 7)), "tau of 7 bytes"),
        (changed(tau=_raw(2, float_val=[1.0])), "tau of shape [2] with 1 values"),
        (
            changed(embedding=_raw(2, 2**62, float_val=[1.0])),
            f"embedding of shape [2, {2**62}] instead of [2, 8]",
        ),
    ],
)
def test_an_invalid_response_is_named(faulty, encoder_of, behaviour, message):
    faulty.behaviours[PREDICT] = behaviour
    message = f"TF Serving at {faulty.address} returned {message}."
    encoder = encoder_of(faulty.address)
    assert error_of(encoder) == message
    assert faulty.calls == 1
    # A number that is not finite may be the fault of one query.
    assert encoder.breaker.failures == ("not finite" not in message)


def test_a_response_that_cannot_be_parsed(faulty, encoder_of):
    faulty.behaviours[PREDICT] = lambda request, context: b"\xff\xff\xff garbage"
    assert "failed, INTERNAL: " in error_of(encoder_of(faulty.address))


def test_a_server_that_does_not_speak_grpc(encoder_of):
    # Accepts connections and sends nothing.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        encoder = encoder_of(address, milliseconds=300, retries=0)
        assert error_of(encoder) in (
            f"TF Serving at {address} cannot be reached or is overloaded.",
            f"TF Serving at {address} did not respond within 300 ms.",
        )


def test_killed_in_the_middle_of_a_call_then_back(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address, retries=0)
    errors = [error_while(faulty, encoder, faulty.kill), error_of(encoder)]
    assert errors == [f"TF Serving at {faulty.address} cannot be reached or is overloaded."] * 2
    faulty.behaviours[PREDICT] = good
    faulty.start()
    end = time.monotonic() + 60
    while True:
        try:
            assert len(encoder.encode(["phone"])) == 1
            break
        except UnavailableError:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_hanging_call_ends_at_the_time_limit(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address, milliseconds=500)
    assert error_of(encoder) == f"TF Serving at {faulty.address} did not respond within 500 ms."
    # No time is left for a retry.
    assert faulty.calls == 1
    assert encoder.breaker.failures == 1


def test_a_deadline_short_of_half_the_time_limit_is_no_failure_of_the_server(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address)
    message = error_of(encoder, DeadlineError, deadline=time.monotonic() + 0.15)
    assert message == "The deadline passed before the queries were encoded."
    assert encoder.breaker.failures == 0
    encoder = encoder_of(faulty.address, milliseconds=1_000)
    error_of(encoder, DeadlineError, deadline=time.monotonic() + 0.8)
    assert encoder.breaker.failures == 1


@pytest.mark.parametrize(
    ("code", "details", "message"),
    [
        (grpc.StatusCode.NOT_FOUND, "Servable not found", "has no version 7 of pebr_query."),
        (grpc.StatusCode.INTERNAL, "broken", "failed, INTERNAL: broken"),
    ],
)
def test_permanent_errors_are_not_retried(faulty, encoder_of, code, details, message):
    faulty.behaviours[PREDICT] = failing(code, details)
    assert error_of(encoder_of(faulty.address)) == f"TF Serving at {faulty.address} {message}"
    assert faulty.calls == 1


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.CANCELLED]
)
def test_transient_errors_are_retried(faulty, encoder_of, code):
    def fail_twice(request, context):
        if faulty.calls <= 2:
            context.abort(code, "the queue is full")
        return good(request)

    faulty.behaviours[PREDICT] = fail_twice
    assert len(encoder_of(faulty.address, retries=2).encode(["phone"])) == 1
    assert faulty.calls == 3
    faulty.calls = 0
    assert "cannot be reached" in error_of(encoder_of(faulty.address, retries=1))
    assert faulty.calls == 2


def test_the_retry_budget_limits_retries(faulty, encoder_of, monkeypatch):
    monkeypatch.setattr(circuit_breaker, "FAILURES", 10**9)
    faulty.behaviours[PREDICT] = failing(grpc.StatusCode.UNAVAILABLE)
    encoder = encoder_of(faulty.address, retries=3)
    for _ in range(100):
        error_of(encoder)
    # One attempt per request, ten saved retries, and a tenth of the requests.
    assert 100 + 10 + 9 <= faulty.calls <= 100 + 10 + 10


def test_the_breaker_counts_attempts_and_pauses_calls(faulty, encoder_of, monkeypatch):
    monkeypatch.setattr(circuit_breaker, "FAILURES", 4)
    now = [0.0]
    monkeypatch.setattr(circuit_breaker, "time", SimpleNamespace(monotonic=lambda: now[0]))
    encoder = encoder_of(faulty.address, retries=1)
    unreachable = f"TF Serving at {faulty.address} cannot be reached or is overloaded."
    paused = (
        f"TF Serving at {faulty.address} failed 4 times in a row; calls are paused for a moment."
    )
    faulty.behaviours[PREDICT] = failing(grpc.StatusCode.UNAVAILABLE)
    assert [error_of(encoder) for _ in range(3)] == [unreachable, unreachable, paused]
    assert faulty.calls == 4
    now[0] = 1
    # The trial call is not retried: it opened the breaker again.
    assert error_of(encoder) == unreachable
    assert (faulty.calls, encoder.breaker.state) == (5, "open")
    now[0] = 2
    faulty.behaviours[PREDICT] = good
    assert len(encoder.encode(["phone"])) == 1
    assert encoder.breaker.state == "closed"


def test_closing_ends_a_call_that_hangs(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address)
    error = error_while(faulty, encoder, encoder.close)
    assert error == f"The connection to TF Serving at {faulty.address} is closed."
