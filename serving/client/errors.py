"""The errors of the client."""

from __future__ import annotations

import grpc

FIELD = "pebr-field"
REQUEST_ID = "x-request-id"
# gRPC itself rejects a message above the server's limit, and its text is the only sign of it.
_TOO_LARGE = "larger than max"


class RetrievalError(Exception):
    """A call that failed; the text is the server's message.

    Attributes:
      status: Name of the gRPC status, such as "INTERNAL".
      request_id: Id of the request in the server's log, or None.
    """

    def __init__(self, message: str, status: str = "UNKNOWN", request_id: str | None = None):
        super().__init__(message)
        self.status, self.request_id = status, request_id


class InvalidRequest(RetrievalError):
    """The request is invalid; another attempt would fail as well.

    Attributes:
      field: The invalid field, such as "recall", or None.
    """

    def __init__(
        self,
        message: str,
        status: str = "INVALID_ARGUMENT",
        request_id: str | None = None,
        field: str | None = None,
    ):
        super().__init__(message, status, request_id)
        self.field = field


class Overloaded(RetrievalError):
    """The server is overloaded; the same call may succeed later."""


class DeadlineExceeded(RetrievalError):
    """The deadline passed before the response arrived."""


class Unavailable(RetrievalError):
    """No server responds at the address, or it is not ready."""


class Unauthenticated(RetrievalError):
    """The server requires a token, or does not accept this one."""


_KINDS = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: Overloaded,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
}


def retrieval_error(error: grpc.RpcError) -> RetrievalError:
    """Converts an error of gRPC."""
    code, message = error.code(), error.details() or "The server gave no reason."
    # By way of a tuple, because the metadata of grpc.aio has `keys` but is not a mapping.
    metadata = dict(tuple(error.trailing_metadata() or ()))
    request_id = metadata.get(REQUEST_ID)
    if is_invalid(error):
        return InvalidRequest(message, code.name, request_id, metadata.get(FIELD))
    return _KINDS.get(code, RetrievalError)(message, code.name, request_id)


def is_invalid(error: grpc.RpcError) -> bool:
    """Returns whether the request itself is invalid."""
    too_large = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in (
        error.details() or ""
    )
    return too_large or error.code() is grpc.StatusCode.INVALID_ARGUMENT
