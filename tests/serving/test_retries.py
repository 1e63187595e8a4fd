"""When a call is tried again, by a clock and a die of our own.

The tests of the client and of the remote encoder count how often in the long run.
"""

from types import SimpleNamespace

import pytest

from serving import retries
from serving.retries import LONGEST_PAUSE, Attempts, RetryBudget

FIRST = 0.025


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=1_000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(retries, "time", clock)
    return clock


def attempts_of(monkeypatch, draw, timeout=1_000.0):
    monkeypatch.setattr(retries, "random", SimpleNamespace(uniform=draw))
    return Attempts(timeout, 20, RetryBudget(), FIRST)


def test_pauses_are_drawn_between_half_and_all_of_a_bound_that_doubles(monkeypatch):
    drawn = []

    def draw(low, high):
        drawn.append((low, high))
        return low

    call = attempts_of(monkeypatch, draw)
    pauses = [call.pause() for _ in range(10)]
    bounds = [min(FIRST * 2**number, LONGEST_PAUSE) for number in range(10)]
    assert drawn == [(bound / 2, bound) for bound in bounds]
    assert pauses == [bound / 2 for bound in bounds]


def test_no_pause_outlasts_the_call(clock, monkeypatch):
    call = attempts_of(monkeypatch, max, timeout=1.0)
    assert call.remaining() == 1.0
    clock.now += 1.0 - FIRST - 0.001
    assert call.pause() == FIRST
    clock.now += FIRST
    assert call.pause() is None
    assert call.remaining() == pytest.approx(0.001)
    clock.now += 1
    assert call.remaining() == 0
