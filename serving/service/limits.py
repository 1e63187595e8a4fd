"""What one call may ask for: from the raw fields of either API to a `Call`.

Here is what the service itself limits. Whether a knob is in range or a column exists is up to the
release that answers, and checked there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pebr_tf.config import Serving
from pebr_tf.config.error import shown
from serving.errors import InvalidArgument
from serving.service.call import Call
from serving.service.heads import Form

# No call waits longer, whatever its caller says; the same as the largest configured default.
LONGEST_DEADLINE_MILLISECONDS = 600_000
# The gRPC API's whole numbers are uint32; a JSON number may be larger than any float.
LARGEST_WHOLE_NUMBER = 4_294_967_295


class CallLimits:
    """Turns fields into calls, within `serving.limits`."""

    def __init__(self, settings: Serving):
        """Takes the settings of the service."""
        self._limits = settings.limits
        self._default_seconds = settings.deadline_milliseconds / 1_000

    def call(
        self,
        queries: Sequence[str],
        knobs: Mapping[str, float | None],
        limit: int | None = None,
        fields: Sequence[str] | None = None,
        seconds: float | None = None,
        form: Form = "json",
    ) -> Call:
        """A call within the limits.

        Args:
          queries: Texts.
          knobs: Name of a knob -> its value, None where it was not given; one at most.
          limit: Items of a query at most, or None.
          fields: Columns of the payload, or None; a repeated one counts once.
          seconds: Time that the caller allows, or None for the service's default.
          form: What the items are rendered for.

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
        _check_whole("top_k", given.get("top_k"))
        _check_whole("limit", limit)
        for place, name in enumerate(fields or ()):
            _check_text(f"fields[{place}]", name)
        allowed = self._default_seconds if seconds is None else seconds
        return Call(
            queries=tuple(queries),
            knob=knob,
            value=value,
            limit=limit,
            fields=None if fields is None else tuple(dict.fromkeys(fields)),
            deadline=time.monotonic() + min(allowed, LONGEST_DEADLINE_MILLISECONDS / 1_000),
            form=form,
        )

    def _check_queries(self, queries: Sequence[str]) -> None:
        most, longest = self._limits.queries_per_call, self._limits.query_characters
        if not 1 <= len(queries) <= most:
            raise InvalidArgument(
                "queries", f"queries must hold 1 to {most} texts. Received: {len(queries)}."
            )
        for place, query in enumerate(queries):
            if len(query) > longest:
                raise InvalidArgument(
                    f"queries[{place}]",
                    f"queries[{place}] must be at most {longest} characters. "
                    f"Received: {len(query)}.",
                )
            if not query or query.isspace():
                raise InvalidArgument(
                    f"queries[{place}]",
                    f"queries[{place}] must be a text that is not blank. Received: {shown(query)}.",
                )
            _check_text(f"queries[{place}]", query)


def deadline_seconds(milliseconds: int | None) -> float | None:
    """The seconds of the field `deadline_milliseconds`, or None.

    Raises:
      InvalidArgument: Out of range.
    """
    if milliseconds is None:
        return None
    if not 1 <= milliseconds <= LONGEST_DEADLINE_MILLISECONDS:
        raise InvalidArgument(
            "deadline_milliseconds",
            "deadline_milliseconds must be a whole number from 1 to "
            f"{LONGEST_DEADLINE_MILLISECONDS}. Received: {shown(milliseconds)}.",
        )
    return milliseconds / 1_000


def _check_whole(name: str, value: float | None) -> None:
    if value is not None and abs(value) > LARGEST_WHOLE_NUMBER:
        raise InvalidArgument(
            name,
            f"{name} must be a whole number up to {LARGEST_WHOLE_NUMBER}. "
            f"Received: {shown(value)}.",
        )


def _check_text(name: str, text: str) -> None:
    # A lone surrogate is no character, and no encoder takes it.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            name, f"{name} must be valid Unicode. Received: a lone surrogate at {error.start}."
        ) from None
