"""What TF Serving is asked: by the encoder, and by the warm-up that must take the same path."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow_serving.apis import model_pb2, predict_pb2

from serving.encoder import NAMES
from serving.tf_serving.answers import INPUT, SIGNATURE


def model_spec(model: str, version: int | None, signature: str = "") -> model_pb2.ModelSpec:
    """A model by its name, and by its version unless that is None: the latest then."""
    spec = model_pb2.ModelSpec(name=model, signature_name=signature)
    if version is not None:
        spec.version.value = version
    return spec


def encode_request(
    queries: Sequence[str], model: str, version: int | None
) -> predict_pb2.PredictRequest:
    """Asks `serving_default` for all that `Encoded` has, of texts [B]."""
    # TensorFlow prepares itself for each set of outputs anew: the set is always this one.
    request = predict_pb2.PredictRequest(
        model_spec=model_spec(model, version, SIGNATURE), output_filter=NAMES
    )
    request.inputs[INPUT].CopyFrom(_texts(queries))
    return request


def query_at_request(
    queries: Sequence[str], cutoff: float, model: str, version: int | None
) -> predict_pb2.PredictRequest:
    """Asks `query_at` for all of its outputs, of texts [B] with one share to keep."""
    request = predict_pb2.PredictRequest(model_spec=model_spec(model, version, "query_at"))
    request.inputs[INPUT].CopyFrom(_texts(queries))
    cutoffs = tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, float_val=[cutoff] * len(queries))
    cutoffs.tensor_shape.dim.add(size=len(queries))
    request.inputs["cutoff"].CopyFrom(cutoffs)
    return request


def _texts(queries: Sequence[str]) -> tensor_pb2.TensorProto:
    tensor = tensor_pb2.TensorProto(
        dtype=types_pb2.DT_STRING, string_val=[query.encode() for query in queries]
    )
    tensor.tensor_shape.dim.add(size=len(queries))
    return tensor
