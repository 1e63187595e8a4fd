"""TF Serving killed, hung, slow, of another version, or with wrong answers: what callers hear."""

import contextlib
import math
import socket
import threading
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf
from faulty_server import DIMENSION, PREDICT, changed, failing, faulty_server, good
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis import predict_pb2

from serving.encoder import NAMES
from serving.errors import DeadlineExceeded, Unavailable
from serving.retry_budget import RetryBudget
from serving.tf_serving.circuit_breaker import CircuitBreaker


@pytest.fixture
def faulty():
    with faulty_server() as server:
        server.behaviours[PREDICT] = good
        yield server


def refusal(encoder, kind=Unavailable, **arguments):
    """The text of the error of an encoding."""
    with pytest.raises(kind) as caught:
        encoder.encode(["phone", "laptop"], **arguments)
    return str(caught.value)


def test_the_good_answer_is_good(faulty, encoder_of):
    encoded = encoder_of(faulty.address, dimension=DIMENSION).encode(["phone", "laptop"])
    np.testing.assert_array_equal(encoded.embedding, np.full([2, DIMENSION], 0.5))
    np.testing.assert_array_equal(encoded.stratum, [1, 1])


def test_the_request_pins_the_version_and_asks_for_no_more_than_is_used(faulty, encoder_of):
    seen = []
    faulty.behaviours[PREDICT] = lambda request, context: (
        seen.append((request, context.time_remaining())),
        good(request),
    )[1]
    encoder_of(faulty.address, milliseconds=5_000).encode(["a", "ü"])
    ((request, remaining),) = seen
    assert request.model_spec.name == "pebr_query"
    assert request.model_spec.version.value == 7
    assert request.model_spec.signature_name == "serving_default"
    assert list(request.output_filter) == list(NAMES)
    assert list(request.inputs["query"].string_val) == [b"a", "ü".encode()]
    assert 0 < remaining <= 6


def test_the_callers_deadline_travels_if_it_is_the_earlier(faulty, encoder_of):
    seen = []
    faulty.behaviours[PREDICT] = lambda request, context: (
        seen.append(context.time_remaining()),
        good(request),
    )[1]
    encoder_of(faulty.address).encode(["a"], deadline=time.monotonic() + 20)
    assert 0 < seen[0] <= 21


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (changed(tau=None), "answered with no output tau."),
        (
            changed(tau=np.zeros(3, np.float32)),
            "answered with tau of shape [3] in the place of [2].",
        ),
        (
            changed(tau=np.zeros([2, 1], np.float32)),
            "answered with tau of shape [2, 1] in the place of [2].",
        ),
        (
            changed(embedding=np.zeros([2, 5], np.float32)),
            "answered with embedding of shape [2, 5] in the place of [2, 4].",
        ),
        (
            changed(embedding=np.zeros([8], np.float32)),
            "answered with embedding of shape [8] in the place of [2, 4].",
        ),
        (changed(level=np.zeros(2)), "answered with level double in the place of float."),
        (
            changed(stratum=np.zeros(2, np.float32)),
            "answered with stratum float in the place of int64.",
        ),
        (
            changed(tau=TensorProto(dtype=99)),
            "answered with tau type 99 in the place of float.",
        ),
        (
            changed(threshold=np.array([0.1, math.nan], np.float32)),
            "answered with a number in threshold that is not finite.",
        ),
        (
            changed(embedding=np.full([2, 4], math.inf, np.float32)),
            "answered with a number in embedding that is not finite.",
        ),
        (
            lambda request, context: predict_pb2.PredictResponse(),
            "answered with version 0 in the place of 7.",
        ),
    ],
)
def test_a_wrong_answer_is_named(faulty, encoder_of, behaviour, message):
    faulty.behaviours[PREDICT] = behaviour
    encoder = encoder_of(faulty.address, dimension=DIMENSION)
    assert refusal(encoder) == f"TF Serving at {faulty.address} {message}"
    assert faulty.calls == 1


def test_another_version_is_named(faulty, encoder_of):
    def other(request, context):
        response = good(request)
        response.model_spec.version.value = 6
        return response

    faulty.behaviours[PREDICT] = other
    assert refusal(encoder_of(faulty.address)).endswith(
        "answered with version 6 in the place of 7."
    )


@pytest.mark.parametrize(
    ("content", "values", "message"),
    [
        (b"\0" * 7, [], "answered with tau of 7 bytes."),
        (b"\0" * 12, [], "answered with tau of shape [2] with 3 values."),
        (b"", [1.0], "answered with tau of shape [2] with 1 values."),
    ],
)
def test_a_shape_is_not_believed(faulty, encoder_of, content, values, message):
    tensor = TensorProto(
        dtype=tf.float32.as_datatype_enum, tensor_content=content, float_val=values
    )
    tensor.tensor_shape.dim.add(size=2)
    faulty.behaviours[PREDICT] = changed(tau=tensor)
    assert refusal(encoder_of(faulty.address)).endswith(message)


def test_a_huge_shape_asks_for_no_memory(faulty, encoder_of):
    tensor = TensorProto(dtype=tf.float32.as_datatype_enum, float_val=[1.0])
    for size in (2, 2**62):
        tensor.tensor_shape.dim.add(size=size)
    faulty.behaviours[PREDICT] = changed(embedding=tensor)
    assert refusal(encoder_of(faulty.address)).endswith(f"[2, {2**62}] with 1 values.")


def test_garbage_is_not_an_answer(faulty, encoder_of):
    faulty.behaviours[PREDICT] = lambda request, context: b"\xff\xff\xff garbage"
    assert "failed, INTERNAL: " in refusal(encoder_of(faulty.address))


def test_what_does_not_speak_grpc_cannot_be_reached(encoder_of):
    with _silent_listener() as address:
        encoder = encoder_of(address, milliseconds=300, retries=0)
        assert refusal(encoder) in (
            f"TF Serving at {address} cannot be reached or is overloaded.",
            f"TF Serving at {address} gave no answer within 300 ms.",
        )


def test_nobody_listens(faulty, encoder_of):
    faulty.kill()
    assert refusal(encoder_of(faulty.address)) == (
        f"TF Serving at {faulty.address} cannot be reached or is overloaded."
    )


def test_killed_in_the_middle_of_a_call_then_back(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address, retries=0)
    told = []
    caller = threading.Thread(target=lambda: told.append(refusal(encoder)))
    caller.start()
    assert faulty.arrived.wait(60)
    faulty.kill()
    caller.join(60)
    assert told == [f"TF Serving at {faulty.address} cannot be reached or is overloaded."]
    faulty.behaviours[PREDICT] = good
    faulty.start()
    _until(lambda: len(encoder.encode(["phone"])) == 1)


def test_hung_ends_with_the_time_of_the_settings(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address, milliseconds=500)
    assert refusal(encoder) == f"TF Serving at {faulty.address} gave no answer within 500 ms."
    # A try that used up the time is not repeated.
    assert faulty.calls == 1
    assert encoder.breaker.failures == 1


def test_too_slow_for_a_caller_is_held_against_nobody(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address)
    message = refusal(encoder, DeadlineExceeded, deadline=time.monotonic() + 0.15)
    assert message == "The deadline passed before the queries were encoded."
    assert encoder.breaker.failures == 0


def test_half_the_time_is_enough_to_judge(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address, milliseconds=1_000)
    refusal(encoder, DeadlineExceeded, deadline=time.monotonic() + 0.8)
    assert encoder.breaker.failures == 1


@pytest.mark.parametrize(
    ("code", "details", "message"),
    [
        (grpc.StatusCode.NOT_FOUND, "Servable not found", "has no version 7 of pebr_query."),
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            "Task size 300 is larger than maximum input batch size 256",
            "failed, INVALID_ARGUMENT: Task size 300 is larger than maximum input batch size 256",
        ),
        (grpc.StatusCode.INTERNAL, "broken", "failed, INTERNAL: broken"),
    ],
)
def test_what_another_try_cannot_mend_is_not_tried_again(
    faulty, encoder_of, code, details, message
):
    faulty.behaviours[PREDICT] = failing(code, details)
    assert refusal(encoder_of(faulty.address)) == f"TF Serving at {faulty.address} {message}"
    assert faulty.calls == 1


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.CANCELLED]
)
def test_what_another_try_may_mend_is_tried_again(faulty, encoder_of, code):
    def fail_twice(request, context):
        if faulty.calls <= 2:
            context.abort(code, "the queue is full")
        return good(request)

    faulty.behaviours[PREDICT] = fail_twice
    assert len(encoder_of(faulty.address, retries=2).encode(["phone"])) == 1
    assert faulty.calls == 3
    faulty.calls = 0
    assert "cannot be reached" in refusal(encoder_of(faulty.address, retries=1))
    assert faulty.calls == 2


def test_the_retry_budget_holds(faulty, encoder_of):
    faulty.behaviours[PREDICT] = failing(grpc.StatusCode.UNAVAILABLE)
    encoder = encoder_of(
        faulty.address,
        retries=10,
        breaker=CircuitBreaker(failures=10**9),
        budget=RetryBudget(share=0.1, capacity=5),
    )
    for _ in range(100):
        refusal(encoder)
    # One try a request, five retries that were saved up, and a tenth of the requests.
    assert 100 + 5 + 9 <= faulty.calls <= 100 + 5 + 10


def test_the_breaker_opens_half_opens_and_closes(faulty, encoder_of):
    now = [0.0]
    breaker = CircuitBreaker(failures=4, wait_seconds=30, clock=lambda: now[0])
    encoder = encoder_of(faulty.address, retries=1, breaker=breaker)
    faulty.behaviours[PREDICT] = failing(grpc.StatusCode.UNAVAILABLE)
    refusal(encoder)
    assert breaker.state == "closed"
    refusal(encoder)
    assert breaker.state == "open"
    assert faulty.calls == 4
    assert refusal(encoder) == (
        f"TF Serving at {faulty.address} failed 4 times in a row and is not asked for a moment."
    )
    assert faulty.calls == 4

    now[0] = 30
    assert breaker.state == "half-open"
    # The one call that tries is not repeated: it opened the breaker again.
    assert refusal(encoder) == f"TF Serving at {faulty.address} cannot be reached or is overloaded."
    assert faulty.calls == 5
    assert breaker.state == "open"

    now[0] = 60
    faulty.behaviours[PREDICT] = good
    assert len(encoder.encode(["phone"])) == 1
    assert breaker.state == "closed"


def test_while_one_call_tries_the_others_fail_at_once(faulty, encoder_of):
    now = [0.0]
    breaker = CircuitBreaker(failures=1, wait_seconds=30, clock=lambda: now[0])
    encoder = encoder_of(faulty.address, retries=0, breaker=breaker)
    faulty.behaviours[PREDICT] = failing(grpc.StatusCode.INTERNAL)
    refusal(encoder)
    now[0] = 30

    def wait(request, context):
        faulty.release.wait(60)
        return good(request)

    faulty.behaviours[PREDICT] = wait
    faulty.arrived.clear()
    answers = []
    caller = threading.Thread(target=lambda: answers.append(encoder.encode(["phone"])))
    caller.start()
    assert faulty.arrived.wait(60)
    assert "failed 1 times in a row" in refusal(encoder)
    faulty.release.set()
    caller.join(60)
    assert len(answers) == 1
    assert breaker.state == "closed"


def test_a_query_without_a_finite_number_does_not_open_the_breaker(faulty, encoder_of):
    breaker = CircuitBreaker(failures=1)
    encoder = encoder_of(faulty.address, breaker=breaker)
    faulty.behaviours[PREDICT] = changed(tau=np.array([1, math.nan], np.float32))
    refusal(encoder)
    assert breaker.state == "closed"
    faulty.behaviours[PREDICT] = changed(tau=None)
    refusal(encoder)
    assert breaker.state == "open"


def test_closing_ends_a_call_that_hangs(faulty, encoder_of):
    faulty.behaviours[PREDICT] = faulty.hang
    encoder = encoder_of(faulty.address)
    told = []
    caller = threading.Thread(target=lambda: told.append(refusal(encoder)))
    caller.start()
    assert faulty.arrived.wait(60)
    encoder.close()
    caller.join(60)
    assert told == [f"The connection to TF Serving at {faulty.address} is closed."]


def _until(holds):
    """Tries until it holds, for a minute at most."""
    end = time.monotonic() + 60
    while True:
        try:
            assert holds()
            return
        except Unavailable:
            assert time.monotonic() < end
            time.sleep(0.02)


@contextlib.contextmanager
def _silent_listener():
    """Yields the address of a port that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
