"""Builds the client's requests."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from serving.client.errors import InvalidRequest
from serving.proto import retrieval_pb2

_TEXTS, _WHOLE_NUMBER = "list of texts", "whole number of at least 0"
_KINDS = {"queries": _TEXTS, "fields": _TEXTS, "top_k": _WHOLE_NUMBER, "limit": _WHOLE_NUMBER}


def retrieve_request(
    queries: Sequence[str],
    limit: int | None,
    fields: Sequence[str] | None,
    **knobs: float | None,
) -> retrieval_pb2.RetrieveRequest:
    """Builds a request; the server checks what depends on the release.

    At most one of `knobs` is not None; `fields` of None are all columns of the payload.

    Raises:
      InvalidRequest: An argument has the wrong type; names it.
    """
    given = {name: value for name, value in knobs.items() if value is not None}
    if len(given) > 1:
        listed = f"{', '.join(knobs)} may be given. Received: {', '.join(given)}."
        raise _invalid(list(given)[1], f"at most one of {listed}")
    request = retrieval_pb2.RetrieveRequest()
    _assign("queries", queries, request.queries.extend)
    for name, value in (*given.items(), ("limit", limit)):
        if value is not None:
            _assign(name, value, partial(setattr, request, name))
    if fields is not None:
        request.fields.SetInParent()
        _assign("fields", fields, request.fields.names.extend)
    return request


def _assign(name: str, value: Any, assign: Callable[[Any], None]) -> None:
    """Assigns a value to a field of a message, which checks its type."""
    kind = _KINDS.get(name, "number")
    try:
        # protobuf takes a text for a sequence of texts, and None for an empty one.
        if value is None or isinstance(value, str | bytes | bool):
            raise TypeError
        assign(value)
    except (TypeError, ValueError):
        raise _invalid(name, f"{name} must be a {kind}. Received: {value!r}.") from None


def _invalid(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(message, "INVALID_ARGUMENT", field=field)
