"""How many tries may follow failed ones, as a share of all requests."""

from __future__ import annotations

import threading

# A tenth more load is what a server that struggles can bear.
SHARE = 0.1
# Saved up while nothing fails, so that a short failure costs even a quiet client no request.
CAPACITY = 10.0


class RetryBudget:
    """A bucket of tokens: a request adds a share of one, a retry takes one; safe for threads."""

    def __init__(self, share: float = SHARE, capacity: float = CAPACITY):
        """Makes a full bucket.

        Args:
          share: Retries a request, in the long run.
          capacity: Tokens that can be saved up.
        """
        self._share = share
        self._capacity = capacity
        self._tokens = capacity
        self._lock = threading.Lock()

    def request(self) -> None:
        """Counts a request, not its retries."""
        with self._lock:
            self._tokens = min(self._tokens + self._share, self._capacity)

    def retry(self) -> bool:
        """Whether a try may follow a failed one; if so, it is paid for."""
        with self._lock:
            # Ten tenths are a little less than one.
            if self._tokens < 1 - 1e-9:
                return False
            self._tokens -= 1
            return True
