"""When a client tries again, by a clock and a die of our own."""

from types import SimpleNamespace

import grpc
import pytest

from serving.client.retries import FIRST_PAUSE, LONGEST_PAUSE, Attempts
from serving.retry_budget import RetryBudget


class Failure(grpc.RpcError):
    def __init__(self, code):
        self._code = code

    def code(self):
        return self._code

    def details(self):
        return "no"


UNAVAILABLE = Failure(grpc.StatusCode.UNAVAILABLE)


@pytest.fixture
def clock():
    return SimpleNamespace(now=1_000.0)


def attempts(clock, timeout=1_000.0, retries=20, budget=None, draw=max):
    budget = budget or RetryBudget(capacity=1_000)
    return Attempts(timeout, retries, budget, lambda: clock.now, draw)


def test_pauses_are_drawn_between_half_and_all_of_a_bound_that_doubles(clock):
    drawn = []

    def draw(low, high):
        drawn.append((low, high))
        return low

    call = attempts(clock, draw=draw)
    pauses = [call.pause_after(UNAVAILABLE) for _ in range(10)]
    bounds = [min(FIRST_PAUSE * 2**number, LONGEST_PAUSE) for number in range(10)]
    assert drawn == [(bound / 2, bound) for bound in bounds]
    assert pauses == [bound / 2 for bound in bounds]


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
