"""One loaded version of a model: requests checked and answered as TF Serving does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from serving.tf_serving.answers import type_name
from serving.tf_serving.warm_up import MOST_RECORDS, WARM_UP

DEFAULT_SIGNATURE = "serving_default"
# Of an input.
MOST_VALUES = 1 << 22
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Refusal(Exception):
    """A request that is answered with a status; the text is its message."""

    def __init__(self, code: grpc.StatusCode, message: str):
        """Takes the status and its message."""
        super().__init__(message)
        self.code = code


class Servable:
    """A SavedModel in a session of its own, as in TF Serving; safe for concurrent callers.

    The session goes when the last caller lets go of the servable.
    """

    def __init__(self, directory: Path):
        """Loads a SavedModel and replays its warm-up requests.

        Raises:
          Refusal: It cannot be loaded, or a warm-up request fails.
        """
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        _register_ops(directory)
        try:
            with self._session.graph.as_default():
                loaded = tf.compat.v1.saved_model.loader.load(
                    self._session, [tf.saved_model.SERVING], str(directory)
                )
        except tf.errors.OpError as error:
            raise _refusal(error) from None
        except (OSError, RuntimeError, DecodeError) as error:
            raise Refusal(grpc.StatusCode.NOT_FOUND, str(error)) from None
        # Those that begin with two underscores are how TensorFlow loads a model.
        self.signatures = {
            name: each for name, each in loaded.signature_def.items() if not name.startswith("__")
        }
        self._warm_up(directory / WARM_UP)

    def predict(
        self, request: predict_pb2.PredictRequest, seconds: float | None = None
    ) -> predict_pb2.PredictResponse:
        """Answers a request, without the name and version of its model.

        Args:
          request: Whose model is this one.
          seconds: Time that is left, or None.

        Raises:
          Refusal: As TF Serving refuses it.
        """
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.'
            )
        signature = self.signatures[name]
        feeds = _feeds(signature, request.inputs)
        fetches = _fetches(signature, list(request.output_filter))
        options = tf.compat.v1.RunOptions()
        if seconds is not None:
            if seconds <= 0:
                raise Refusal(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline exceeded.")
            options.timeout_in_ms = max(int(1_000 * seconds), 1)
        try:
            outputs = self._session.run(fetches, feeds, options=options)
        except tf.errors.OpError as error:
            raise _refusal(error) from None
        response = predict_pb2.PredictResponse()
        response.model_spec.signature_name = name
        for alias, value in outputs.items():
            response.outputs[alias].CopyFrom(_tensor(value))
        return response

    def _warm_up(self, path: Path) -> None:
        if not path.exists():
            return
        try:
            for number, record in enumerate(_records(path), start=1):
                if number > MOST_RECORDS:
                    raise _invalid(
                        f"Number of warmup records exceeds the maximum ({MOST_RECORDS}) at {path}"
                    )
                self.predict(_logged_request(record, path))
        except tf.errors.OpError as error:
            raise _refusal(error) from None


def _feeds(signature: Any, inputs: Any) -> dict[str, np.ndarray]:
    """Name in the graph -> value, of the inputs of a request."""
    sent, wanted = set(inputs), set(signature.inputs)
    if len(sent) != len(wanted):
        raise _invalid(
            f"input size does not match signature: {len(sent)}!={len(wanted)} "
            f"len({_set(sent)}) != len({_set(wanted)}). Sent extra: {_set(sent - wanted)}. "
            f"Missing but required: {_set(wanted - sent)}."
        )
    feeds = {}
    for index, alias in enumerate(sorted(wanted)):
        info = signature.inputs[alias]
        if alias not in sent:
            raise _invalid(
                f"Signature input alias: {alias}(feed name: {info.name}) not found in request "
                f"and no default value provided. Inputs expected to be in the request "
                f"{_set(sent)}, or default input alias set: "
            )
        value = _value(alias, inputs[alias])
        if inputs[alias].dtype != info.dtype:
            raise _invalid(
                f"Expects arg[{index}] to be {type_name(info.dtype)} but "
                f"{type_name(inputs[alias].dtype)} is provided"
            )
        # TF Serving has no such check: what a model makes of another rank is not ours to tell.
        shape = tf.TensorShape(info.tensor_shape)
        if not shape.is_compatible_with(value.shape):
            raise _invalid(f"input {alias} must have shape {shape}, not {list(value.shape)}")
        feeds[info.name] = value
    sizes = {value.shape[0] for value in feeds.values() if value.ndim}
    if len(sizes) > 1:
        raise _invalid("Batching Run() input tensors must have equal 0th-dimension size")
    return feeds


def _value(alias: str, tensor: tensor_pb2.TensorProto) -> np.ndarray:
    sizes = [each.size for each in tensor.tensor_shape.dim]
    try:
        # One value may stand for all of a shape: a few bytes must not ask for any memory.
        if min(sizes, default=0) < 0 or math.prod(sizes) > MOST_VALUES:
            raise ValueError
        return tf.make_ndarray(tensor)
    except (TypeError, ValueError):
        raise _invalid(f"tensor parsing error: {alias}") from None


def _logged_request(record: bytes, path: Path) -> predict_pb2.PredictRequest:
    try:
        log = prediction_log_pb2.PredictionLog.FromString(record)
    except DecodeError:
        raise _invalid(f"Failed to parse warmup record from {path}") from None
    kind = log.WhichOneof("log_type")
    if kind != "predict_log":
        raise Refusal(
            grpc.StatusCode.UNIMPLEMENTED, f"Unsupported log_type for warmup: {kind} at {path}"
        )
    return log.predict_log.request


def _records(path: Path) -> Iterator[bytes]:
    yield from tf.data.TFRecordDataset(str(path)).as_numpy_iterator()


def _register_ops(directory: Path) -> None:
    """Makes ScaNN's ops known if the model has them: the all-in-one model of `retrieve`."""
    path = directory / "saved_model.pb"
    if path.is_file() and b"Scann>" in path.read_bytes():
        import scann  # noqa: F401


def _fetches(signature: Any, wanted: list[str]) -> dict[str, str]:
    """Output -> name in the graph, of the wanted outputs or of all."""
    for place, alias in enumerate(wanted):
        if alias not in signature.outputs:
            raise _invalid(
                f"output tensor alias not found in signature: {alias} Outputs expected to be in "
                f"the set {_set(signature.outputs)}."
            )
        if alias in wanted[:place]:
            raise _invalid(f"duplicate output tensor alias: {alias}")
    return {alias: signature.outputs[alias].name for alias in wanted or signature.outputs}


def _tensor(value: np.ndarray) -> tensor_pb2.TensorProto:
    """A tensor with its values in a field of their type, as TF Serving sends them."""
    tensor = tf.make_tensor_proto(value)
    flat = value.ravel().tolist()
    if tensor.dtype == types_pb2.DT_FLOAT:
        tensor.ClearField("tensor_content")
        tensor.ClearField("float_val")
        tensor.float_val.extend(flat)
    elif tensor.dtype == types_pb2.DT_INT64:
        tensor.ClearField("tensor_content")
        tensor.ClearField("int64_val")
        tensor.int64_val.extend(flat)
    return tensor


def _set(names: Any) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def _invalid(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


def _refusal(error: tf.errors.OpError) -> Refusal:
    # TensorFlow numbers its errors as gRPC does.
    code = _CODES.get(error.error_code, grpc.StatusCode.UNKNOWN)
    return Refusal(code, " ".join(str(error.message).split()))
