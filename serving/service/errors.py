"""Why a call got no answer, in the words and codes of both APIs."""

from __future__ import annotations

import grpc


class ServiceError(Exception):
    """A call that is refused; the text is one sentence for the caller.

    Attributes:
      grpc_status: The code of the gRPC API.
      http_status: The code of the HTTP API.
    """

    grpc_status = grpc.StatusCode.INTERNAL
    http_status = 500


class InvalidArgument(ServiceError):
    """The caller's mistake, in the field `field`."""

    grpc_status = grpc.StatusCode.INVALID_ARGUMENT
    http_status = 422

    def __init__(self, field: str, message: str):
        """Takes the name of the field, as the caller wrote it, and the sentence."""
        super().__init__(message)
        self.field = field


class Unauthenticated(ServiceError):
    """No token, or one that is not accepted."""

    grpc_status = grpc.StatusCode.UNAUTHENTICATED
    http_status = 401


class Overloaded(ServiceError):
    """The queue is full; the same call may succeed later."""

    grpc_status = grpc.StatusCode.RESOURCE_EXHAUSTED
    http_status = 429


class DeadlineExceeded(ServiceError):
    """The time of the call was over before the answer was there."""

    grpc_status = grpc.StatusCode.DEADLINE_EXCEEDED
    http_status = 504


class Unavailable(ServiceError):
    """No release is loaded, the server is stopping, or TF Serving does not answer."""

    grpc_status = grpc.StatusCode.UNAVAILABLE
    http_status = 503
