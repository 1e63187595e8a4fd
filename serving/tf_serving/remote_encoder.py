"""Query texts to all that is known of them, by a TF Serving elsewhere."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from pebr_tf.config import TfServing
from serving.encoder import Encoded
from serving.errors import DeadlineExceeded, Unavailable
from serving.retry_budget import RetryBudget
from serving.tf_serving.answers import BadAnswer, check_signature, unfit, unpack
from serving.tf_serving.circuit_breaker import CircuitBreaker
from serving.tf_serving.requests import encode_request, model_spec

# What another try may mend. A server that stops cancels what it has not begun.
RETRIED = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
)
# The longest pause before the first retry; it doubles with each.
PAUSE_SECONDS = 0.005
# 65,536 vectors of 1,024 dimensions.
LARGEST_ANSWER_BYTES = 1 << 28
# For questions about the model, which no caller waits for.
QUESTION_SECONDS = 10.0
TRIAL = "trial"
POLL_SECONDS = 0.1


class RemoteEncoder:
    """The client of one version of a model; safe for concurrent callers.

    It connects when it is first used, in plain text: TF Serving is to be in the same pod or host,
    or behind a mesh that encrypts.
    """

    def __init__(
        self,
        settings: TfServing,
        version: int,
        dimension: int | None = None,
        breaker: CircuitBreaker | None = None,
        budget: RetryBudget | None = None,
    ):
        """Makes the client.

        Args:
          settings: With an address.
          version: Of the model; an answer by another is refused.
          dimension: n of the embeddings [B, n]; None: any.
          breaker: When to stop asking.
          budget: How many retries there may be.
        """
        if settings.address is None:
            raise ValueError("settings.address must be host:port. Received: None.")
        self._settings = settings
        self._allowed = settings.deadline_milliseconds / 1_000
        self._version = version
        self._dimension = dimension
        self._breaker = breaker or CircuitBreaker()
        self._budget = budget or RetryBudget()
        self._closed = threading.Event()
        self._channel = grpc.insecure_channel(
            settings.address,
            options=[
                ("grpc.max_receive_message_length", LARGEST_ANSWER_BYTES),
                ("grpc.enable_http_proxy", 0),
                # A server that comes back is found within a second, not within two minutes.
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1_000),
                # A machine that has gone is noticed, not only each call's deadline.
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 5_000),
            ],
        )
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    @property
    def version(self) -> int:
        """The version that answers."""
        return self._version

    @property
    def breaker(self) -> CircuitBreaker:
        """What stops calls to a server that fails."""
        return self._breaker

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> Encoded:
        """Encodes texts [B], by `deadline` on the clock of `time.monotonic`.

        Raises:
          DeadlineExceeded: `deadline` came first.
          Unavailable: No usable answer within the time that the settings allow, all tries together.
        """
        own = time.monotonic() + self._allowed
        request = encode_request(queries, self._settings.model, self._version)
        response = self._predict(request, min(own, deadline), deadline < own)
        try:
            encoded = self._unpack(response, len(queries))
        except BadAnswer as error:
            self._breaker.failed()
            raise Unavailable(f"{self._server} answered with {error}.") from None
        # Not held against the server: if one query could open the breaker, it would stop all.
        self._breaker.succeeded()
        if (name := unfit(encoded)) is not None:
            raise Unavailable(
                f"{self._server} answered with a number in {name} that is not finite."
            )
        return encoded

    def check(self) -> None:
        """Makes sure that the version is loaded, has the right signature, and answers.

        A model without a warm-up may take seconds over its first answer, which no caller would wait
        for: it is given them here.

        Raises:
          Unavailable: It is not, or cannot be asked.
        """
        self._check_status()
        request = get_model_metadata_pb2.GetModelMetadataRequest(
            model_spec=model_spec(self._settings.model, self._version),
            metadata_field=["signature_def"],
        )
        response = self._ask(self._prediction.GetModelMetadata, request)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        try:
            check_signature(signatures.signature_def, self._dimension)
            trial = encode_request([TRIAL], self._settings.model, self._version)
            self._unpack(self._ask(self._prediction.Predict, trial), 1)
        except BadAnswer as error:
            raise Unavailable(f"{self._server} answered with {error}.") from None

    def wait_ready(self, timeout: float) -> None:
        """Waits until `check` passes: TF Serving finds and loads a new version by itself.

        Args:
          timeout: Seconds.

        Raises:
          Unavailable: It does not pass in time, or the version failed to load.
        """
        end = time.monotonic() + timeout
        while True:
            try:
                return self.check()
            except _LoadFailed:
                raise
            except Unavailable:
                if time.monotonic() + POLL_SECONDS > end or self._closed.wait(POLL_SECONDS):
                    raise

    def close(self) -> None:
        """Ends the connection; calls under way end with Unavailable."""
        self._closed.set()
        self._channel.close()

    def _unpack(self, response: predict_pb2.PredictResponse, size: int) -> Encoded:
        return unpack(response, self._version, size, self._dimension)

    @property
    def _server(self) -> str:
        return f"TF Serving at {self._settings.address}"

    @property
    def _model(self) -> str:
        return f"version {self._version} of {self._settings.model}"

    def _predict(
        self, request: predict_pb2.PredictRequest, end: float, is_callers: bool
    ) -> predict_pb2.PredictResponse:
        """Asks until there is an answer, `end`, or no reason to ask again.

        The breaker hears of all tries but one that was answered.
        """
        self._budget.request()
        failure: Unavailable | DeadlineExceeded | None = None
        for number in range(self._settings.retries + 1):
            if number and not self._pause(number, end):
                break
            remaining = end - time.monotonic()
            if remaining <= 0:
                failure = failure or self._late(is_callers)
                break
            if not self._breaker.admit():
                failure = failure or Unavailable(
                    f"{self._server} failed {self._breaker.failures} times in a row and is not "
                    f"asked for a moment."
                )
                break
            try:
                return self._prediction.Predict(request, timeout=remaining)
            except (grpc.RpcError, ValueError) as error:
                code = self._code(error)
                late = code is grpc.StatusCode.DEADLINE_EXCEEDED
                if late and remaining < self._allowed / 2:
                    # A caller in a hurry says nothing about the server.
                    self._breaker.undecided()
                else:
                    self._breaker.failed()
                failure = self._late(is_callers) if late else self._failure(error, code)
                failure.__cause__ = error
                if code not in RETRIED or self._closed.is_set():
                    break
        raise failure

    def _pause(self, number: int, end: float) -> bool:
        """Waits before a retry; False if there is no time, no budget, or nobody to wait for."""
        # Jitter keeps clients that failed together from coming back together.
        seconds = random.uniform(0, PAUSE_SECONDS * 2 ** (number - 1))
        if time.monotonic() + seconds >= end or not self._budget.retry():
            return False
        return not self._closed.wait(seconds)

    def _late(self, is_callers: bool) -> Unavailable | DeadlineExceeded:
        if is_callers:
            return DeadlineExceeded("The deadline passed before the queries were encoded.")
        return Unavailable(
            f"{self._server} gave no answer within {self._settings.deadline_milliseconds} ms."
        )

    def _failure(self, error: Exception, code: grpc.StatusCode | None) -> Unavailable:
        if self._closed.is_set():
            return Unavailable(f"The connection to {self._server} is closed.")
        if code is grpc.StatusCode.NOT_FOUND:
            return Unavailable(f"{self._server} has no {self._model}.")
        if code in RETRIED:
            return Unavailable(f"{self._server} cannot be reached or is overloaded.")
        return Unavailable(f"{self._server} failed, {code.name}: {error.details()}")

    def _code(self, error: Exception) -> grpc.StatusCode | None:
        if isinstance(error, grpc.RpcError):
            return error.code()
        # A channel that was closed meanwhile raises ValueError.
        if self._closed.is_set():
            return None
        raise error

    def _check_status(self) -> None:
        request = get_model_status_pb2.GetModelStatusRequest(
            model_spec=model_spec(self._settings.model, self._version)
        )
        response = self._ask(self._models.GetModelStatus, request)
        states = {each.version: each for each in response.model_version_status}
        if self._version not in states:
            raise Unavailable(f"{self._server} has no {self._model}.")
        status = states[self._version]
        name = get_model_status_pb2.ModelVersionStatus.State.Name(status.state)
        if name == "END" and status.status.error_code:
            raise _LoadFailed(
                f"{self._server} failed to load {self._model}: {status.status.error_message}"
            )
        if name != "AVAILABLE":
            raise Unavailable(f"{self._server} has {self._model} in the state {name}.")

    def _ask(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return method(request, timeout=QUESTION_SECONDS)
        except (grpc.RpcError, ValueError) as error:
            code = self._code(error)
            if code is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise Unavailable(
                    f"{self._server} gave no answer within {QUESTION_SECONDS:g} seconds."
                ) from error
            raise self._failure(error, code) from error


class _LoadFailed(Unavailable):
    """The version will not become available."""
