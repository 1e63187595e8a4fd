"""When a failed call is tried again; used by the client and by `serving.tf_serving`."""

import random
import threading
import time

# Retries add at most a tenth to the load.
SHARE = 0.1
# Tokens saved while nothing fails: a short outage costs no request, even at low traffic.
CAPACITY = 10.0
# Seconds that the first pauses double up to.
LONGEST_PAUSE = 1.0


class RetryBudget:
    """A token bucket: each request adds a part of a token, each retry takes one.

    Safe for concurrent callers.
    """

    def __init__(self) -> None:
        self._tokens = CAPACITY
        self._lock = threading.Lock()

    def request(self) -> None:
        with self._lock:
            self._tokens = min(self._tokens + SHARE, CAPACITY)

    def retry(self) -> bool:
        """Whether a retry is allowed; if so, takes its token."""
        with self._lock:
            # Ten times 0.1 is a little less than 1 in floating point.
            if self._tokens < 1 - 1e-9:
                return False
            self._tokens -= 1
            return True


class Attempts:
    """The attempts of one call, which share its timeout.

    Pauses are random, so that clients that failed together do not retry together.
    """

    def __init__(self, timeout: float, retries: int, budget: RetryBudget, first_pause: float):
        self._deadline = time.monotonic() + timeout
        self._left, self._budget, self._bound = retries, budget, first_pause
        budget.request()

    def remaining(self) -> float:
        """Returns the seconds that the next attempt may take."""
        return max(self._deadline - time.monotonic(), 0.0)

    def pause(self) -> float | None:
        """Returns the seconds to wait before the next attempt, or None for no more attempts."""
        pause = random.uniform(self._bound / 2, self._bound)
        if self._left <= 0 or pause >= self.remaining() or not self._budget.retry():
            return None
        self._left -= 1
        self._bound = min(2 * self._bound, LONGEST_PAUSE)
        return pause
