"""The breaker opens after failures in a row, lets one trial call pass, and closes again."""

from types import SimpleNamespace

import pytest

from serving.tf_serving import circuit_breaker
from serving.tf_serving.circuit_breaker import CircuitBreaker


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=1_000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(circuit_breaker, "time", clock)
    return clock


@pytest.fixture
def breaker(monkeypatch):
    monkeypatch.setattr(circuit_breaker, "FAILURES", 3)
    monkeypatch.setattr(circuit_breaker, "WAIT_SECONDS", 2.0)
    return CircuitBreaker()


def fail(breaker, times):
    for _ in range(times):
        assert breaker.admit()
        breaker.failed()


def test_opens_after_failures_in_a_row(breaker):
    fail(breaker, 2)
    assert breaker.admit()
    breaker.succeeded()
    fail(breaker, 2)
    assert breaker.state == "closed"
    fail(breaker, 1)
    assert breaker.state == "open"
    assert not breaker.admit()
    assert breaker.failures == 3


def test_one_call_tries_after_a_while(breaker, clock):
    fail(breaker, 3)
    clock.now += 1.999
    assert not breaker.admit()
    clock.now += 0.001
    assert breaker.state == "half-open"
    assert breaker.admit()
    assert not breaker.admit()
    # An abandoned trial is followed by another; a failed one opens it for as long again.
    breaker.abandoned()
    assert breaker.state == "half-open"
    fail(breaker, 1)
    clock.now += 1.5
    assert not breaker.admit()
    clock.now += 0.5
    assert breaker.admit()
    breaker.succeeded()
    fail(breaker, 2)
    assert breaker.state == "closed"


def test_calls_that_were_under_way_do_not_prolong_it(breaker, clock):
    for _ in range(5):
        assert breaker.admit()
    for _ in range(3):
        breaker.failed()
    clock.now += 1
    breaker.failed()
    clock.now += 1
    assert breaker.admit()
