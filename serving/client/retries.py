"""Decides whether a failed call is tried again, and after what pause."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import grpc

from serving.client.errors import is_invalid
from serving.retry_budget import RetryBudget

# Seconds before the first retry, doubled for each further one up to the longest.
FIRST_PAUSE = 0.025
LONGEST_PAUSE = 1.0
# Retries of a call that an overloaded server rejected; each one adds to its load.
OVERLOADED_RETRIES = 1


class Attempts:
    """The attempts of one call, which share its timeout.

    Two statuses are worth another attempt: UNAVAILABLE, because another connection or server may
    respond, and RESOURCE_EXHAUSTED, once. Retrieval writes nothing, so it can safely be repeated.
    Pauses are random, so that clients that failed together do not retry together.
    """

    def __init__(
        self,
        timeout: float,
        retries: int,
        budget: RetryBudget,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[float, float], float] = random.uniform,
    ):
        self._deadline = clock() + timeout
        self._left, self._overloaded_left = retries, OVERLOADED_RETRIES
        self._budget, self._clock, self._draw = budget, clock, draw
        self._bound = FIRST_PAUSE
        budget.request()

    def remaining(self) -> float:
        """Returns the seconds that the next attempt may take."""
        return max(self._deadline - self._clock(), 0.0)

    def pause_after(self, error: grpc.RpcError) -> float | None:
        """Returns the seconds to wait before the next attempt, or None for no more attempts."""
        if self._left <= 0 or not self._may_succeed(error):
            return None
        pause = self._draw(self._bound / 2, self._bound)
        if pause >= self.remaining() or not self._budget.retry():
            return None
        self._left -= 1
        self._bound = min(2 * self._bound, LONGEST_PAUSE)
        return pause

    def _may_succeed(self, error: grpc.RpcError) -> bool:
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and not is_invalid(error):
            self._overloaded_left -= 1
            return self._overloaded_left >= 0
        return error.code() is grpc.StatusCode.UNAVAILABLE
