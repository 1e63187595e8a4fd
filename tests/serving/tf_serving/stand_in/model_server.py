"""Stands in for TF Serving: its two gRPC services, on its published stubs, over SavedModels.

For tests and trials where TF Serving cannot run. What it has: Predict, GetModelMetadata,
GetModelStatus, and HandleReloadConfigRequest for labels and the number of versions, with the
statuses and messages of TF Serving. What it lacks: Classify, Regress and MultiInference, batching,
the REST API and its metrics, several models, and TF Serving's speed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import grpc
from stand_in.model_versions import POLL_SECONDS, VERSIONS_KEPT, ModelVersions
from stand_in.servable import Refusal
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

THREADS = 16
# 65,536 queries of 512 characters.
LARGEST_REQUEST_BYTES = 1 << 28
SIGNATURES = "signature_def"

Request = TypeVar("Request")
Response = TypeVar("Response")


class ModelServer:
    """A running server, made by `serve_models`."""

    def __init__(self, server: grpc.Server, address: str, versions: ModelVersions):
        self._server = server
        self._address = address
        self._versions = versions
        self._stopped = threading.Event()
        self._poller: threading.Thread | None = None

    @property
    def address(self) -> str:
        """HOST:PORT that clients connect to."""
        return self._address

    @property
    def versions(self) -> ModelVersions:
        """What it serves."""
        return self._versions

    def follow(self, poll_seconds: float) -> None:
        """Looks for new versions from now on, so many seconds apart."""

        def poll() -> None:
            while not self._stopped.wait(poll_seconds):
                self._versions.poll()

        self._poller = threading.Thread(target=poll, name="model-versions", daemon=True)
        self._poller.start()

    def stop(self, drain_seconds: float = 0) -> None:
        """Takes no more calls, gives those under way some seconds, and frees the port."""
        self._stopped.set()
        self._server.stop(drain_seconds).wait()
        if self._poller is not None:
            self._poller.join()

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve_models(
    directory: Path,
    name: str,
    address: str = "127.0.0.1:0",
    versions_kept: int = VERSIONS_KEPT,
    poll_seconds: float | None = POLL_SECONDS,
) -> ModelServer:
    """Loads the newest versions of a model and starts to serve them, in plain text.

    Args:
      directory: The base path: a SavedModel a version, in folders named by numbers.
      name: Of the model.
      address: HOST:PORT to listen on; port 0 takes any free one.
      versions_kept: The newest so many are served.
      poll_seconds: Between looks for new versions; None: only `versions.poll()` looks.

    Raises:
      UserError: The address is not one of this machine, or in use.
    """
    versions = ModelVersions(name, directory, versions_kept)
    versions.poll()
    server = grpc.server(
        ThreadPoolExecutor(THREADS, "model-server"),
        options=[
            ("grpc.max_receive_message_length", LARGEST_REQUEST_BYTES),
            # Two servers on one port would each get a part of the calls.
            ("grpc.so_reuseport", 0),
        ],
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        _PredictionService(versions), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelService(versions), server)
    port = server.add_insecure_port(address)
    server.start()
    running = ModelServer(server, f"{address.rpartition(':')[0]}:{port}", versions)
    if poll_seconds is not None:
        running.follow(poll_seconds)
    return running


def _answering(
    handle: Callable[[Any, Request, grpc.ServicerContext], Response],
) -> Callable[[Any, Request, grpc.ServicerContext], Response]:
    """Turns a refusal into the status of the call."""

    def answer(self: Any, request: Request, context: grpc.ServicerContext) -> Response:
        try:
            return handle(self, request, context)
        except Refusal as refusal:
            context.abort(refusal.code, str(refusal))

    return answer


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, versions: ModelVersions):
        self._versions = versions

    @_answering
    def Predict(
        self, request: predict_pb2.PredictRequest, context: grpc.ServicerContext
    ) -> predict_pb2.PredictResponse:
        _require_spec(request)
        version, servable = self._versions.find(request.model_spec)
        response = servable.predict(request, context.time_remaining())
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version
        return response

    @_answering
    def GetModelMetadata(
        self, request: get_model_metadata_pb2.GetModelMetadataRequest, context: grpc.ServicerContext
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        _require_spec(request)
        if not request.metadata_field:
            raise _invalid("GetModelMetadataRequest must specify at least one metadata_field")
        for field in request.metadata_field:
            if field != SIGNATURES:
                raise _invalid(f"Metadata field {field} is not supported")
        version, servable = self._versions.find(request.model_spec)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in servable.signatures.items():
            signatures.signature_def[name].CopyFrom(signature)
        response.metadata[SIGNATURES].Pack(signatures)
        return response


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, versions: ModelVersions):
        self._versions = versions

    @_answering
    def GetModelStatus(
        self, request: get_model_status_pb2.GetModelStatusRequest, context: grpc.ServicerContext
    ) -> get_model_status_pb2.GetModelStatusResponse:
        _require_spec(request)
        response = get_model_status_pb2.GetModelStatusResponse()
        for number, version in self._versions.statuses(request.model_spec).items():
            status = response.model_version_status.add(version=number, state=version.state)
            if version.failure is not None:
                status.status.error_code = version.failure.code.value[0]
                status.status.error_message = str(version.failure)
        return response

    @_answering
    def HandleReloadConfigRequest(
        self, request: model_management_pb2.ReloadConfigRequest, context: grpc.ServicerContext
    ) -> model_management_pb2.ReloadConfigResponse:
        if request.config.WhichOneof("config") != "model_config_list":
            raise _invalid(
                "ServerModelConfig type not supported by HandleReloadConfigRequest. "
                "Only ModelConfigList is currently supported"
            )
        configs = request.config.model_config_list.config
        policies = [each.model_version_policy.WhichOneof("policy_choice") for each in configs]
        if [each.name for each in configs] != [self._versions.name] or policies[0] not in (
            None,
            "latest",
        ):
            raise Refusal(
                grpc.StatusCode.UNIMPLEMENTED,
                f"This server has one model, {self._versions.name}, whose labels and number of "
                f"latest versions can change.",
            )
        kept = max(configs[0].model_version_policy.latest.num_versions, 1)
        self._versions.configure(kept, configs[0].version_labels)
        self._versions.poll()
        return model_management_pb2.ReloadConfigResponse()


def _require_spec(request: Any) -> None:
    if not request.HasField("model_spec"):
        raise _invalid("Missing ModelSpec")


def _invalid(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)
