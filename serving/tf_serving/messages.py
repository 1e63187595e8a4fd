"""Requests to TF Serving, and checks of its responses: version, outputs, types and shapes."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow_serving.apis import model_pb2, predict_pb2

from pebr_tf.retrieval.encoded import ENCODED_FIELDS, TOWER_FIELDS, EncodedQueries

SIGNATURE, TOWERS_SIGNATURE = "serving_default", "encode"
INPUT = "query"
# Type of an output in a message and in an array, and the field of the message with its values.
_FLOAT = (types_pb2.DT_FLOAT, np.dtype(np.float32), "float_val")
_TYPES = {
    "stratum": (types_pb2.DT_INT64, np.dtype(np.int64), "int64_val"),
    "unfamiliar": (types_pb2.DT_BOOL, np.dtype(np.bool_), "bool_val"),
}


class InvalidResponse(Exception):
    """A response that must not be used; the text completes "TF Serving returned ..."."""


def model_spec(model: str, version: int | None, signature: str = "") -> model_pb2.ModelSpec:
    """A model by its name and version; None stands for the latest version."""
    spec = model_pb2.ModelSpec(name=model, signature_name=signature)
    if version is not None:
        spec.version.value = version
    return spec


def encode_request(
    queries: Sequence[str], model: str, version: int | None, with_law: bool = True
) -> predict_pb2.PredictRequest:
    """Asks for all fields of `EncodedQueries`, or only those of the towers, for texts [B]."""
    # TensorFlow prepares a graph for each set of outputs: there must be one for each signature.
    request = predict_pb2.PredictRequest(
        model_spec=model_spec(model, version, SIGNATURE if with_law else TOWERS_SIGNATURE),
        output_filter=ENCODED_FIELDS if with_law else TOWER_FIELDS,
    )
    request.inputs[INPUT].CopyFrom(tf.make_tensor_proto(list(queries), tf.string))
    return request


def query_at_request(
    queries: Sequence[str], recall: float, model: str, version: int | None
) -> predict_pb2.PredictRequest:
    """Asks `query_at` for all its outputs, for texts [B] with one recall in (0, 1)."""
    request = predict_pb2.PredictRequest(model_spec=model_spec(model, version, "query_at"))
    request.inputs[INPUT].CopyFrom(tf.make_tensor_proto(list(queries), tf.string))
    recalls = tf.make_tensor_proto(np.full(len(queries), recall, np.float32))
    request.inputs["recall"].CopyFrom(recalls)
    return request


def decode(
    response: predict_pb2.PredictResponse,
    version: int,
    size: int,
    dimension: int,
    with_law: bool = True,
) -> EncodedQueries:
    """The outputs for B queries.

    `size` is B, and `dimension` is n of the embeddings [B, n]; see `encode_request`.

    Raises:
      InvalidResponse: Another version, or an output that is missing or has another type or shape.
    """
    received = response.model_spec.version.value
    if received != version:
        raise InvalidResponse(f"version {received} instead of {version}")
    arrays = {}
    for name in ENCODED_FIELDS if with_law else TOWER_FIELDS:
        if name not in response.outputs:
            raise InvalidResponse(f"no output {name}")
        arrays[name] = _array(name, response.outputs[name], size, dimension)
    return EncodedQueries.of(arrays)


def _array(name: str, tensor: tensor_pb2.TensorProto, size: int, dimension: int) -> np.ndarray:
    expected_type, dtype, field = _TYPES.get(name, _FLOAT)
    if tensor.dtype != expected_type:
        raise InvalidResponse(
            f"{name} of type {_type_name(tensor.dtype)} instead of {_type_name(expected_type)}"
        )
    expected = [size, dimension] if name == "embedding" else [size]
    shape = [each.size for each in tensor.tensor_shape.dim]
    if shape != expected:
        raise InvalidResponse(f"{name} of shape {shape} instead of {expected}")
    if tensor.tensor_content:
        if len(tensor.tensor_content) % dtype.itemsize:
            raise InvalidResponse(f"{name} of {len(tensor.tensor_content)} bytes")
        values = np.frombuffer(tensor.tensor_content, dtype)
    else:
        values = np.array(getattr(tensor, field), dtype)
    if len(values) != np.prod(shape):
        raise InvalidResponse(f"{name} of shape {shape} with {len(values)} values")
    return values.reshape(shape)


def _type_name(dtype: int) -> str:
    if dtype not in types_pb2.DataType.values():
        return str(dtype)
    return types_pb2.DataType.Name(dtype).removeprefix("DT_").lower()
