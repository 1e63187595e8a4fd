"""The errors of the client."""

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
      field: The invalid field of an `InvalidRequest`, such as "recall", or None.
    """

    def __init__(
        self,
        message: str,
        status: str = "UNKNOWN",
        request_id: str | None = None,
        field: str | None = None,
    ):
        super().__init__(message)
        self.status, self.request_id, self.field = status, request_id, field


class InvalidRequest(RetrievalError):
    """The request is invalid; another attempt would fail as well."""


class Overloaded(RetrievalError):
    """The server is overloaded; the same call may succeed later."""


class DeadlineExceeded(RetrievalError):
    """The deadline passed before the response arrived."""


class Unavailable(RetrievalError):
    """No server responds at the address, or it is not ready."""


class Unauthenticated(RetrievalError):
    """The server requires a token, or does not accept this one."""


_KINDS = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Overloaded,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
}


def retrieval_error(error: grpc.RpcError) -> RetrievalError:
    code, message = error.code(), error.details() or "The server gave no reason."
    # By way of a tuple, because the metadata of grpc.aio has `keys` but is not a mapping.
    metadata = dict(tuple(error.trailing_metadata() or ()))
    kind = _KINDS.get(code, RetrievalError)
    if kind is Overloaded and _TOO_LARGE in message:
        kind = InvalidRequest
    return kind(message, code.name, metadata.get(REQUEST_ID), metadata.get(FIELD))
