"""Builds the client's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serving.client.errors import InvalidRequest
from serving.proto import retrieval_pb2


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
        raise InvalidRequest(
            f"at most one of {', '.join(knobs)} may be given. Received: {', '.join(given)}.",
            field=list(given)[1],
        )
    request = retrieval_pb2.RetrieveRequest()
    _extend(request.queries, "queries", queries)
    for name, value in (*given.items(), ("limit", limit)):
        if value is not None:
            _set(request, name, value)
    if fields is not None:
        request.fields.SetInParent()
        _extend(request.fields.names, "fields", fields)
    return request


def _extend(target: Any, name: str, values: Sequence[str]) -> None:
    # A string is a sequence of strings as well.
    if isinstance(values, str | bytes):
        raise InvalidRequest(f"{name} must be a list of texts. Received: {values!r}.", field=name)
    try:
        # `list` because protobuf takes None for an empty list.
        target.extend(list(values))
    except (TypeError, ValueError):
        raise InvalidRequest(
            f"{name} must be a list of texts. Received: {values!r}.", field=name
        ) from None


def _set(request: retrieval_pb2.RetrieveRequest, name: str, value: float) -> None:
    whole = name in ("top_k", "limit")
    try:
        if isinstance(value, bool):
            raise TypeError
        setattr(request, name, value)
    except (TypeError, ValueError):
        kind = "whole number of at least 0" if whole else "number"
        raise InvalidRequest(f"{name} must be a {kind}. Received: {value!r}.", field=name) from None
