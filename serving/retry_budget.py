"""Limits retries to a share of all requests."""

from __future__ import annotations

import threading

# An overloaded server can bear a tenth more load.
SHARE = 0.1
# Tokens saved while nothing fails: a short outage costs no request, even at low traffic.
CAPACITY = 10.0


class RetryBudget:
    """A token bucket: each request adds a part of a token, each retry takes one.

    Safe for concurrent callers.
    """

    def __init__(self, share: float = SHARE, capacity: float = CAPACITY):
        self._share = share
        self._capacity = capacity
        self._tokens = capacity
        self._lock = threading.Lock()

    def request(self) -> None:
        """Counts a request, without its retries."""
        with self._lock:
            self._tokens = min(self._tokens + self._share, self._capacity)

    def retry(self) -> bool:
        """Whether a retry is allowed; if so, takes its token."""
        with self._lock:
            # Ten times 0.1 is a little less than 1 in floating point.
            if self._tokens < 1 - 1e-9:
                return False
            self._tokens -= 1
            return True
