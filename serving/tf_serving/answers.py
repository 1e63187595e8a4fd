"""Answers of TF Serving, believed only after a look: the version, the outputs, their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import predict_pb2

from serving.encoder import NAMES, Encoded

SIGNATURE = "serving_default"
INPUT = "query"


class BadAnswer(Exception):
    """An answer that must not be used; the text completes "TF Serving answered with ..."."""


def unpack(
    response: predict_pb2.PredictResponse, version: int, size: int, dimension: int | None
) -> Encoded:
    """What a response says of queries.

    Args:
      response: Of PredictionService.Predict.
      version: Of the model that was asked.
      size: B, the number of queries.
      dimension: n of the embeddings [B, n]; None: any.

    Raises:
      BadAnswer: Another version, or an output that is missing or has another type or shape.
    """
    received = response.model_spec.version.value
    if received != version:
        raise BadAnswer(f"version {received} in the place of {version}")
    arrays = {}
    for name in NAMES:
        if name not in response.outputs:
            raise BadAnswer(f"no output {name}")
        shape = [size, dimension] if _rank(name) == 2 else [size]
        arrays[name] = _array(name, response.outputs[name], shape)
    return Encoded(**arrays)


def unfit(encoded: Encoded) -> str | None:
    """The first output with a number that is not finite, or None."""
    for name in NAMES:
        if not np.isfinite(getattr(encoded, name)).all():
            return name
    return None


def check_signature(signatures: Any, dimension: int | None) -> None:
    """Refuses a model without a usable `serving_default`.

    Args:
      signatures: Name -> SignatureDef of the model.
      dimension: n of the embeddings [B, n]; None: any.

    Raises:
      BadAnswer: Says what is missing or differs.
    """
    if SIGNATURE not in signatures:
        raise BadAnswer(f"a model without the signature {SIGNATURE}")
    signature: meta_graph_pb2.SignatureDef = signatures[SIGNATURE]
    inputs = {name: each.dtype for name, each in signature.inputs.items()}
    if inputs != {INPUT: types_pb2.DT_STRING}:
        listed = ", ".join(f"{name} {type_name(each)}" for name, each in sorted(inputs.items()))
        raise BadAnswer(f"a model that takes {listed or 'nothing'} in the place of {INPUT} string")
    for name in NAMES:
        if name not in signature.outputs:
            raise BadAnswer(f"a model without the output {name}")
        output = signature.outputs[name]
        _check_type(name, output.dtype)
        shape = [each.size for each in output.tensor_shape.dim]
        wanted = [-1, dimension] if _rank(name) == 2 else [-1]
        if output.tensor_shape.unknown_rank or not _fits(shape, wanted):
            raise BadAnswer(f"a model whose output {name} has shape {_shape_name(shape)}")


def type_name(dtype: int) -> str:
    """The name of a type in protocol buffers, as TensorFlow writes it."""
    known = types_pb2.DataType.values()
    return types_pb2.DataType.Name(dtype)[3:].lower() if dtype in known else f"type {dtype}"


def _array(name: str, tensor: tensor_pb2.TensorProto, wanted: list[int | None]) -> np.ndarray:
    """The numbers of a tensor that has the right type, shape and number of values."""
    _check_type(name, tensor.dtype)
    shape = [each.size for each in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank or not _fits(shape, wanted):
        raise BadAnswer(
            f"{name} of shape {_shape_name(shape)} in the place of {_shape_name(wanted)}"
        )
    dtype = _dtype(name)
    if tensor.tensor_content:
        if len(tensor.tensor_content) % dtype.itemsize:
            raise BadAnswer(f"{name} of {len(tensor.tensor_content)} bytes")
        values = np.frombuffer(tensor.tensor_content, dtype)
    else:
        values = np.array(tensor.int64_val if dtype == np.int64 else tensor.float_val, dtype)
    # Shapes are only claims: one that is believed may ask for any amount of memory.
    if len(values) != np.prod(shape, dtype=object):
        raise BadAnswer(f"{name} of shape {_shape_name(shape)} with {len(values)} values")
    return values.reshape(shape)


def _check_type(name: str, received: int) -> None:
    wanted = types_pb2.DT_INT64 if _dtype(name) == np.int64 else types_pb2.DT_FLOAT
    if received != wanted:
        raise BadAnswer(f"{name} {type_name(received)} in the place of {type_name(wanted)}")


def _fits(shape: list[int], wanted: list[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        each == size or size is None for each, size in zip(shape, wanted, strict=True)
    )


def _rank(name: str) -> int:
    return 2 if name == "embedding" else 1


def _dtype(name: str) -> np.dtype:
    return np.dtype(np.int64 if name == "stratum" else np.float32)


def _shape_name(shape: list[int | None]) -> str:
    return f"[{', '.join('n' if size is None else str(size) for size in shape)}]"
