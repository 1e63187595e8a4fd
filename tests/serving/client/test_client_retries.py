"""When a client tries again, by a clock and a die of our own."""

import grpc
import pytest

from serving.client.retries import FIRST_PAUSE, LONGEST_PAUSE, Attempts
from serving.retry_budget import RetryBudget


class Failure(grpc.RpcError):
    def __init__(self, code, details="no"):
        self._code, self._details = code, details

    def code(self):
        return self._code

    def details(self):
        return self._details


UNAVAILABLE = Failure(grpc.StatusCode.UNAVAILABLE)
OVERLOADED = Failure(grpc.StatusCode.RESOURCE_EXHAUSTED)


class Clock:
    now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def attempts(clock, timeout=1_000.0, retries=20, budget=None, draw=max):
    return Attempts(timeout, retries, budget or RetryBudget(capacity=1_000), clock, draw)


def test_pauses_double_up_to_the_longest(clock):
    call = attempts(clock)
    pauses = [call.pause_after(UNAVAILABLE) for _ in range(10)]
    assert pauses == [min(FIRST_PAUSE * 2**number, LONGEST_PAUSE) for number in range(10)]


def test_pauses_are_drawn_between_half_and_all_of_their_bound(clock):
    drawn = []

    def draw(low, high):
        drawn.append((low, high))
        return low

    call = attempts(clock, draw=draw)
    pauses = [call.pause_after(UNAVAILABLE) for _ in range(3)]
    assert pauses == [FIRST_PAUSE / 2, FIRST_PAUSE, 2 * FIRST_PAUSE]
    assert drawn == [(pause, 2 * pause) for pause in pauses]


def test_no_pause_outlasts_the_call(clock):
    call = attempts(clock, timeout=1.0)
    assert call.remaining() == 1.0
    clock.now += 1.0 - FIRST_PAUSE - 0.001
    assert call.pause_after(UNAVAILABLE) == FIRST_PAUSE
    clock.now += FIRST_PAUSE
    assert call.pause_after(UNAVAILABLE) is None
    assert call.remaining() == pytest.approx(0.001)
    clock.now += 1
    assert call.remaining() == 0


def test_an_overloaded_server_gets_one_more_try(clock):
    call = attempts(clock)
    assert call.pause_after(OVERLOADED) is not None
    assert call.pause_after(UNAVAILABLE) is not None
    assert call.pause_after(OVERLOADED) is None


def test_a_request_that_is_too_large_is_not_sent_again(clock):
    details = "SERVER: Received message larger than max (2000 vs. 1000)"
    error = Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, details)
    assert attempts(clock).pause_after(error) is None


@pytest.mark.parametrize(
    "code",
    [code for code in grpc.StatusCode if code.name not in ("UNAVAILABLE", "RESOURCE_EXHAUSTED")],
)
def test_no_other_failure_is_tried_again(clock, code):
    budget = RetryBudget(capacity=1)
    assert attempts(clock, budget=budget).pause_after(Failure(code)) is None
    assert budget.retry(), "nor does it cost anything"


def test_calls_share_a_budget(clock):
    budget = RetryBudget(share=0.5, capacity=2)
    first, second = attempts(clock, budget=budget), attempts(clock, budget=budget)
    assert first.pause_after(UNAVAILABLE) is not None
    assert second.pause_after(UNAVAILABLE) is not None
    assert first.pause_after(UNAVAILABLE) is None
    third = attempts(clock, budget=budget)
    assert third.pause_after(UNAVAILABLE) is None
    fourth = attempts(clock, budget=budget)
    assert fourth.pause_after(UNAVAILABLE) is not None
