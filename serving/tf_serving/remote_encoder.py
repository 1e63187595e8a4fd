"""Encodes queries with a model in TF Serving."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import numpy as np
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from pebr_tf.config import TfServing
from pebr_tf.retrieval.encoded import ENCODED_FIELDS, TOWER_FIELDS, EncodedQueries
from serving.errors import DeadlineError, UnavailableError
from serving.retries import Attempts, RetryBudget
from serving.tf_serving.circuit_breaker import CircuitBreaker
from serving.tf_serving.messages import (
    InvalidResponse,
    decode,
    encode_request,
    model_spec,
)

# Status codes after which a retry may succeed. A server that stops cancels calls that wait.
RETRIED = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
)
# Seconds before the first retry, doubled for each further one.
FIRST_PAUSE = 0.005
# 65,536 vectors of 1,024 dimensions.
LARGEST_RESPONSE_BYTES = 1 << 28
# Time limit of the calls of `check`, which no user waits for.
CHECK_SECONDS = 10.0
TRIAL_QUERY = "trial"
POLL_SECONDS = 0.1


class RemoteEncoder:
    """A client of one version of a model in TF Serving; safe for concurrent callers.

    It connects on first use, in plain text: run TF Serving in the same pod or on the same host, or
    put an encrypting mesh in between.
    """

    def __init__(self, settings: TfServing, version: int, dimension: int):
        """`settings` must contain an address; responses of other versions are rejected."""
        self._settings = settings
        self._time_limit = settings.deadline_milliseconds / 1_000
        self._version = version
        self._dimension = dimension
        self.breaker, self._budget = CircuitBreaker(), RetryBudget()
        self._closed = threading.Event()
        self._channel = grpc.insecure_channel(
            settings.address,
            options=[
                ("grpc.max_receive_message_length", LARGEST_RESPONSE_BYTES),
                ("grpc.enable_http_proxy", 0),
                # Reconnects within one second; the default is up to two minutes.
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1_000),
                # Detects a machine that is gone before the deadline of each call does.
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 5_000),
            ],
        )
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def encode(
        self, queries: Sequence[str], deadline: float = math.inf, with_law: bool = True
    ) -> EncodedQueries:
        """Encodes texts [B]; see `Encoder`.

        Raises:
          DeadlineError: The caller's deadline passed.
          UnavailableError: No valid response within the configured time, retries included.
        """
        own = time.monotonic() + self._time_limit
        request = encode_request(queries, self._settings.model, self._version, with_law)
        response = self._predict(request, min(own, deadline), deadline < own)
        try:
            encoded = decode(response, self._version, len(queries), self._dimension, with_law)
        except InvalidResponse as error:
            self.breaker.failed()
            raise self._unavailable(f"returned {error}.") from None
        # A number that is not finite is no failure of the server: if it were, one query could open
        # the breaker for all.
        self.breaker.succeeded()
        for name in ENCODED_FIELDS if with_law else TOWER_FIELDS:
            if not np.isfinite(getattr(encoded, name)).all():
                raise self._unavailable(f"returned a number in {name} that is not finite.")
        return encoded

    def check(self) -> None:
        """Checks that the version is loaded, and answers by both signatures.

        A model without warm-up requests may need seconds for its first response, so this call waits
        longer than `encode` does.
        """
        self._check_status()
        try:
            for with_law in (True, False):
                trial = encode_request([TRIAL_QUERY], self._settings.model, self._version, with_law)
                response = self._call(self._prediction.Predict, trial)
                decode(response, self._version, 1, self._dimension, with_law)
        except InvalidResponse as error:
            raise self._unavailable(f"returned {error}.") from None

    def wait_ready(self, timeout: float) -> None:
        """Waits until `check` passes, up to `timeout` seconds, unless the version fails to load."""
        end = time.monotonic() + timeout
        while True:
            try:
                return self.check()
            except _LoadFailed:
                raise
            except UnavailableError:
                if time.monotonic() + POLL_SECONDS > end or self._closed.wait(POLL_SECONDS):
                    raise

    def close(self) -> None:
        """Closes the connection; calls in progress raise UnavailableError."""
        self._closed.set()
        self._channel.close()

    @property
    def _server(self) -> str:
        return f"TF Serving at {self._settings.address}"

    def _unavailable(self, text: str) -> UnavailableError:
        return UnavailableError(f"{self._server} {text}")

    @property
    def _model(self) -> str:
        return f"version {self._version} of {self._settings.model}"

    def _predict(
        self, request: predict_pb2.PredictRequest, end: float, is_caller_deadline: bool
    ) -> predict_pb2.PredictResponse:
        """Calls Predict, with retries, until it returns or `end` has passed.

        Reports all failed attempts to the breaker; the caller reports a success.
        """
        seconds = end - time.monotonic()
        attempts = Attempts(seconds, self._settings.retries, self._budget, FIRST_PAUSE)
        if not self.breaker.admit():
            failures = f"failed {self.breaker.failures} times in a row"
            raise self._unavailable(f"{failures}; calls are paused for a moment.")
        while True:
            remaining = attempts.remaining()
            try:
                return self._prediction.Predict(request, timeout=remaining)
            except (grpc.RpcError, ValueError) as error:
                code = self._code(error)
                late = code is grpc.StatusCode.DEADLINE_EXCEEDED
                if late and remaining < self._time_limit / 2:
                    # A short deadline of the caller is no failure of the server.
                    self.breaker.abandoned()
                else:
                    self.breaker.failed()
                failure = self._late(is_caller_deadline) if late else self._failure(error, code)
                pause = attempts.pause() if code in RETRIED else None
                if pause is None or self._closed.wait(pause) or not self.breaker.admit():
                    raise failure from error

    def _late(self, is_caller_deadline: bool) -> UnavailableError | DeadlineError:
        if is_caller_deadline:
            return DeadlineError("The deadline passed before the queries were encoded.")
        limit = self._settings.deadline_milliseconds
        return self._unavailable(f"did not respond within {limit} ms.")

    def _failure(self, error: Any, code: Any) -> UnavailableError:
        if self._closed.is_set():
            return UnavailableError(f"The connection to {self._server} is closed.")
        if code is grpc.StatusCode.NOT_FOUND:
            return self._unavailable(f"has no {self._model}.")
        if code in RETRIED:
            return self._unavailable("cannot be reached or is overloaded.")
        return self._unavailable(f"failed, {code.name}: {error.details()}")

    def _code(self, error: Exception) -> grpc.StatusCode | None:
        if isinstance(error, grpc.RpcError):
            return error.code()
        # A closed channel raises ValueError.
        if self._closed.is_set():
            return None
        raise error

    def _check_status(self) -> None:
        request = get_model_status_pb2.GetModelStatusRequest(
            model_spec=model_spec(self._settings.model, self._version)
        )
        response = self._call(self._models.GetModelStatus, request)
        states = {each.version: each for each in response.model_version_status}
        if self._version not in states:
            raise self._unavailable(f"has no {self._model}.")
        status = states[self._version]
        name = get_model_status_pb2.ModelVersionStatus.State.Name(status.state)
        if name == "END" and status.status.error_code:
            raise _LoadFailed(
                f"{self._server} failed to load {self._model}: {status.status.error_message}"
            )
        if name != "AVAILABLE":
            raise self._unavailable(f"has {self._model} in the state {name}.")

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return method(request, timeout=CHECK_SECONDS)
        except (grpc.RpcError, ValueError) as error:
            code = self._code(error)
            if code is grpc.StatusCode.DEADLINE_EXCEEDED:
                text = f"did not respond within {CHECK_SECONDS:g} seconds."
                raise self._unavailable(text) from error
            raise self._failure(error, code) from error


class _LoadFailed(UnavailableError):
    """The version will not become available."""
