"""Stops calls to a server that fails, and tries again after a pause."""

import threading
import time
from typing import Literal

# Failures in a row after which the breaker opens.
FAILURES = 5
# From opening to the call that tries again.
WAIT_SECONDS = 1.0

State = Literal["closed", "open", "half-open"]


class CircuitBreaker:
    """Closed: all calls pass. Open: none do. Half-open: one passes, and its outcome decides.

    Every call that `admit` lets pass must end with `succeeded`, `failed` or `abandoned`. Safe for
    concurrent callers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Number of failed calls in a row.
        self.failures = 0
        self._opened: float | None = None
        self._probing = False

    @property
    def state(self) -> State:
        """The state that the next call meets."""
        with self._lock:
            if self._opened is None:
                return "closed"
            return "half-open" if self._remaining() <= 0 else "open"

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
        with self._lock:
            self.failures = 0
            self._opened = None
            self._probing = False

    def failed(self) -> None:
        with self._lock:
            self.failures += 1
            if self._probing or (self._opened is None and self.failures >= FAILURES):
                self._opened = time.monotonic()
                self._probing = False

    def abandoned(self) -> None:
        """Records a call that its caller gave up too early to judge the server."""
        with self._lock:
            self._probing = False

    def _remaining(self) -> float:
        """Seconds until a call tries again; requires the lock and an open breaker."""
        assert self._opened is not None
        return self._opened + WAIT_SECONDS - time.monotonic()
