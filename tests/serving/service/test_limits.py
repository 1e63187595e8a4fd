"""From raw fields to a call: every bound, and the sentence for what is beyond it."""

import time

import pytest
from service_helpers import service_settings

from serving.errors import InvalidArgument
from serving.service.limits import RequestLimits, deadline_seconds

NONE = dict.fromkeys(("recall", "share", "budget", "top_k", "score"))


@pytest.fixture(scope="module")
def limits():
    return RequestLimits(
        service_settings(
            limits__queries_per_call=3, limits__query_characters=5, deadline_milliseconds=2_000
        )
    )


def test_a_call_has_what_was_given(limits):
    before = time.monotonic()
    request = limits.request(
        ["a", "bcdef"], {**NONE, "top_k": 7}, 9, ["title", "brand", "title"], 0.5
    )
    assert (request.queries, request.knob, request.value) == (("a", "bcdef"), "top_k", 7)
    assert (request.limit, request.fields) == (9, ("title", "brand"))
    assert before + 0.5 <= request.deadline <= time.monotonic() + 0.5


def test_what_was_not_given_is_left_to_the_release(limits):
    before = time.monotonic()
    request = limits.request(["a"], NONE)
    assert (request.knob, request.value, request.limit, request.fields) == (None, None, None, None)
    assert before + 2 <= request.deadline <= time.monotonic() + 2
    assert limits.request(["a"], {}, fields=[]).fields == ()
    # No caller waits longer than ten minutes.
    assert limits.request(["a"], {}, seconds=float("inf")).deadline <= time.monotonic() + 600


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        (([], {}), "queries", "queries must hold 1 to 3 texts. Received: 0."),
        ((["a"] * 4, {}), "queries", "queries must hold 1 to 3 texts. Received: 4."),
        (
            (["a", "abcdef"], {}),
            "queries[1]",
            "queries[1] must be at most 5 characters. Received: 6.",
        ),
        (
            ([" \t\u3000"], {}),
            "queries[0]",
            "queries[0] must be a text that is not blank. Received: ' \\t\\u3000'.",
        ),
        (
            (["a"], {**NONE, "recall": 0.0, "score": 0.5}),
            "score",
            "at most one of recall, share, budget, top_k, score may be given. "
            "Received: recall, score.",
        ),
        (
            (["a"], {**NONE, "top_k": 4_294_967_296}),
            "top_k",
            "top_k must be a whole number up to 4294967295. Received: 4294967296.",
        ),
        (
            (["a"], {}, -(10**400)),
            "limit",
            "limit must be a whole number up to 4294967295. "
            "Received: -10000000000000000...0000000000000000000.",
        ),
    ],
)
def test_what_is_beyond_a_bound_is_named(limits, arguments, field, message):
    with pytest.raises(InvalidArgument) as caught:
        limits.request(*arguments)
    assert (caught.value.field, str(caught.value)) == (field, message)


def test_deadlines_are_from_a_millisecond_to_ten_minutes():
    assert [deadline_seconds(value) for value in (None, 1, 600_000)] == [None, 0.001, 600]
    for value in (0, -1, 600_001):
        with pytest.raises(InvalidArgument) as caught:
            deadline_seconds(value)
        assert caught.value.field == "deadline_milliseconds"
        assert str(caught.value) == (
            f"deadline_milliseconds must be a whole number from 1 to 600000. Received: {value}."
        )
