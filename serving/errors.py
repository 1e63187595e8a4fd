"""Why a request was not answered, with the status codes of both APIs."""

from __future__ import annotations

import grpc

from pebr_tf.errors import UserError


class ServiceError(Exception):
    """A request that was not answered; the text is one sentence for the caller.

    Attributes:
      grpc_status: Status code of the gRPC API.
      http_status: Status code of the HTTP API.
    """

    grpc_status = grpc.StatusCode.INTERNAL
    http_status = 500


class InvalidArgument(ServiceError, UserError):
    """A field is missing, unknown, of the wrong type, or out of range.

    Commands report it like any other `UserError`.

    Attributes:
      field: Name of the field, as the caller wrote it.
    """

    grpc_status = grpc.StatusCode.INVALID_ARGUMENT
    http_status = 422

    def __init__(self, field: str, message: str):
        super().__init__(message)
        self.field = field

    @classmethod
    def must_be(cls, field: str, requirement: str, received: object) -> InvalidArgument:
        """The error of a field whose value does not meet a requirement."""
        return cls(field, f"{field} must be {requirement}. Received: {received}.")


class AuthenticationError(ServiceError):
    """The request has no token, or one that is not accepted."""

    grpc_status = grpc.StatusCode.UNAUTHENTICATED
    http_status = 401


class OverloadError(ServiceError):
    """The queue is full; the same request may succeed later."""

    grpc_status = grpc.StatusCode.RESOURCE_EXHAUSTED
    http_status = 429


class DeadlineError(ServiceError):
    """The deadline of the request passed before the response was ready."""

    grpc_status = grpc.StatusCode.DEADLINE_EXCEEDED
    http_status = 504


class UnavailableError(ServiceError):
    """No release is loaded, the server is stopping, or TF Serving does not answer."""

    grpc_status = grpc.StatusCode.UNAVAILABLE
    http_status = 503
