"""What the service itself limits: from the raw fields of either API to a `RetrievalRequest`.

Whether a knob is in range or a column exists depends on the release, which checks it.
"""

import time
from collections.abc import Mapping, Sequence

from pebr_tf.config import Serving
from pebr_tf.config.error import shown
from pebr_tf.config.serving import LONGEST_DEADLINE_MILLISECONDS
from serving.errors import InvalidArgument
from serving.retrieval import RetrievalRequest

# The gRPC API's whole numbers are uint32; a JSON number may be larger than any float.
LARGEST_WHOLE_NUMBER = 4_294_967_295


class RequestLimits:
    def __init__(self, settings: Serving):
        self._limits = settings.limits
        self._default_seconds = settings.deadline_milliseconds / 1_000

    def request(
        self,
        queries: Sequence[str],
        knobs: Mapping[str, float | None],
        limit: int | None = None,
        fields: Sequence[str] | None = None,
        seconds: float | None = None,
    ) -> RetrievalRequest:
        """Returns a request within the limits.

        At most one of `knobs` is not None. Duplicate `fields` are dropped. `seconds` is the time
        that the caller allows; None for the service's default.

        Raises:
          InvalidArgument: Names the first field that is out of bounds.
        """
        self._check_queries(queries)
        given = {name: value for name, value in knobs.items() if value is not None}
        if len(given) > 1:
            raise InvalidArgument(
                list(given)[1],
                f"at most one of {', '.join(knobs)} may be given. Received: {', '.join(given)}.",
            )
        knob, value = next(iter(given.items()), (None, None))
        _check_whole_number("top_k", given.get("top_k"))
        _check_whole_number("limit", limit)
        allowed = self._default_seconds if seconds is None else seconds
        return RetrievalRequest(
            queries=tuple(queries),
            knob=knob,
            value=value,
            limit=limit,
            fields=None if fields is None else tuple(dict.fromkeys(fields)),
            deadline=time.monotonic() + min(allowed, LONGEST_DEADLINE_MILLISECONDS / 1_000),
        )

    def _check_queries(self, queries: Sequence[str]) -> None:
        most, longest = self._limits.queries_per_call, self._limits.query_characters
        if not 1 <= len(queries) <= most:
            raise InvalidArgument(
                "queries", f"queries must hold 1 to {most} texts. Received: {len(queries)}."
            )
        for index, query in enumerate(queries):
            name, size = f"queries[{index}]", len(query)
            if size > longest:
                raise InvalidArgument.must_be(name, f"at most {longest} characters", size)
            if not query or query.isspace():
                raise InvalidArgument.must_be(name, "a text that is not blank", shown(query))


def deadline_seconds(milliseconds: int | None) -> float | None:
    """Returns the field `deadline_milliseconds` in seconds, or None."""
    if milliseconds is None:
        return None
    if not 1 <= milliseconds <= LONGEST_DEADLINE_MILLISECONDS:
        requirement = f"a whole number from 1 to {LONGEST_DEADLINE_MILLISECONDS}"
        raise InvalidArgument.must_be("deadline_milliseconds", requirement, shown(milliseconds))
    return milliseconds / 1_000


def _check_whole_number(name: str, value: float | None) -> None:
    if value is not None and abs(value) > LARGEST_WHOLE_NUMBER:
        requirement = f"a whole number up to {LARGEST_WHOLE_NUMBER}"
        raise InvalidArgument.must_be(name, requirement, shown(value))
