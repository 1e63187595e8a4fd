"""The breaker opens after failures in a row, lets one trial call pass, and closes again."""

import pytest

from serving.tf_serving.circuit_breaker import CircuitBreaker


class StoppedClock:
    """A clock that a test sets."""

    now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def breaker(clock):
    return CircuitBreaker(failures=3, wait_seconds=2.0, clock=clock)


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
    breaker.succeeded()
    assert breaker.state == "closed"
    fail(breaker, 2)
    assert breaker.state == "closed"


def test_a_failed_trial_opens_it_for_as_long_again(breaker, clock):
    fail(breaker, 3)
    clock.now += 2
    fail(breaker, 1)
    assert breaker.state == "open"
    clock.now += 1.5
    assert not breaker.admit()
    clock.now += 0.5
    assert breaker.admit()


def test_an_abandoned_trial_is_followed_by_another(breaker, clock):
    fail(breaker, 3)
    clock.now += 2
    assert breaker.admit()
    breaker.abandoned()
    assert breaker.state == "half-open"
    assert breaker.admit()


def test_calls_that_were_under_way_do_not_prolong_it(breaker, clock):
    for _ in range(5):
        assert breaker.admit()
    for _ in range(3):
        breaker.failed()
    clock.now += 1
    breaker.failed()
    clock.now += 1
    assert breaker.admit()
