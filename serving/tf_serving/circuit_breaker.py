"""Stops asking a server that fails, and asks again after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

FAILURES = 5
WAIT_SECONDS = 1.0

State = Literal["closed", "open", "half-open"]


class CircuitBreaker:
    """Closed: all calls pass. Open: none do. Half-open: one does, and its end decides.

    Every call that `admit` lets pass must end with `succeeded`, `failed` or `undecided`. Safe for
    threads.
    """

    def __init__(
        self,
        failures: int = FAILURES,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Makes a closed one.

        Args:
          failures: In a row, that open it.
          wait_seconds: From opening to the call that tries again.
          clock: Seconds that never go backwards.
        """
        self._limit = failures
        self._wait = wait_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened: float | None = None
        self._probing = False

    @property
    def state(self) -> State:
        """What happens to the next call."""
        with self._lock:
            if self._opened is None:
                return "closed"
            return "half-open" if self._remaining() <= 0 else "open"

    @property
    def failures(self) -> int:
        """Failed calls in a row until now."""
        with self._lock:
            return self._failures

    def admit(self) -> bool:
        """Whether a call may be made now."""
        with self._lock:
            if self._opened is None:
                return True
            if self._probing or self._remaining() > 0:
                return False
            self._probing = True
            return True

    def succeeded(self) -> None:
        """The call was answered."""
        with self._lock:
            self._failures = 0
            self._opened = None
            self._probing = False

    def failed(self) -> None:
        """The call was not answered, or not as it should be."""
        with self._lock:
            self._failures += 1
            if self._probing or (self._opened is None and self._failures >= self._limit):
                self._opened = self._clock()
                self._probing = False

    def undecided(self) -> None:
        """The call says nothing about the server: its caller gave up early, say."""
        with self._lock:
            self._probing = False

    def _remaining(self) -> float:
        """Seconds until a call tries again; needs the lock and an open breaker."""
        return self._opened + self._wait - self._clock()
