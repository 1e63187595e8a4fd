"""Why a call got no answer, as a caller sees it."""

from __future__ import annotations

import grpc

FIELD = "pebr-field"
REQUEST_ID = "x-request-id"
# What gRPC itself says of a request that is larger than the server takes.
_TOO_LARGE = "larger than max"


class RetrievalError(Exception):
    """A call without an answer; the text is the server's sentence.

    Attributes:
      status: Name of the gRPC status, such as "INTERNAL".
      request_id: What the server's logs know the call by, or None.
    """

    def __init__(self, message: str, status: str = "UNKNOWN", request_id: str | None = None):
        """Takes the sentence, the status and the request id."""
        super().__init__(message)
        self.status, self.request_id = status, request_id


class InvalidRequest(RetrievalError):
    """The call is wrong and stays so.

    Attributes:
      field: Which part of it, such as "recall", or None.
    """

    def __init__(
        self,
        message: str,
        status: str = "INVALID_ARGUMENT",
        request_id: str | None = None,
        field: str | None = None,
    ):
        """Takes the sentence, the status, the request id and the field."""
        super().__init__(message, status, request_id)
        self.field = field


class Overloaded(RetrievalError):
    """The server has more to do than it can; the same call may succeed later."""


class DeadlineExceeded(RetrievalError):
    """The time of the call was over before the answer was there."""


class Unavailable(RetrievalError):
    """Nothing answers at the address, or it is not ready."""


class Unauthenticated(RetrievalError):
    """The server asks for a token, or does not accept this one."""


_KINDS = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: Overloaded,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
}


def error_of(error: grpc.RpcError) -> RetrievalError:
    """The same as one of ours."""
    code, message = error.code(), error.details() or "The server gave no reason."
    # Over a tuple, for the metadata of grpc.aio has keys without being a mapping.
    metadata = dict(tuple(error.trailing_metadata() or ()))
    request_id = metadata.get(REQUEST_ID)
    if is_mistake(error):
        return InvalidRequest(message, code.name, request_id, metadata.get(FIELD))
    return _KINDS.get(code, RetrievalError)(message, code.name, request_id)


def is_mistake(error: grpc.RpcError) -> bool:
    """Whether the call itself is at fault."""
    too_large = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in (
        error.details() or ""
    )
    return too_large or error.code() is grpc.StatusCode.INVALID_ARGUMENT
