"""Requests that TF Serving replays when it loads a model, so that no caller waits for the first.

    <model>/assets.extra/tf_serving_warmup_requests     TFRecords of PredictionLog

TensorFlow prepares itself for a signature, a set of outputs and, in places, a batch size when it
first meets them. A request of the warm-up that fails keeps the model from being loaded.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from pebr_tf.config import TfServing
from pebr_tf.errors import UserError
from pebr_tf.files import replacing_file
from serving.tf_serving.requests import encode_request, query_at_request

WARM_UP = Path("assets.extra/tf_serving_warmup_requests")
# TF Serving refuses a model with more.
MOST_RECORDS = 1_000
# `allowed_batch_sizes` of batching_parameters.txt: batches are filled up to one of these.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CUTOFF = 0.9


def write_warm_up(
    model_directory: Path,
    queries: Sequence[str],
    batch_sizes: Sequence[int] = BATCH_SIZES,
    model: str = TfServing().model,
) -> None:
    """Writes warm-up requests into a query model, over any that it had.

    Args:
      model_directory: A SavedModel with the signatures `serving_default` and `query_at`.
      queries: Texts, repeated to fill the batches.
      batch_sizes: Each becomes a request for either signature.
      model: Name of the model in TF Serving.

    Raises:
      UserError: No queries, no such model, or more requests than TF Serving replays.
    """
    if not queries:
        raise UserError("a warm-up must have at least one query. Received: none.")
    if 2 * len(batch_sizes) > MOST_RECORDS:
        raise UserError(
            f"a warm-up must have at most {MOST_RECORDS // 2} batch sizes. "
            f"Received: {len(batch_sizes)}."
        )
    if not (Path(model_directory) / "saved_model.pb").is_file():
        raise UserError(f"{model_directory} must be a SavedModel to be warmed up.")
    with (
        replacing_file(Path(model_directory) / WARM_UP) as path,
        tf.io.TFRecordWriter(str(path)) as writer,
    ):
        for request in _requests(queries, batch_sizes, model):
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(request)
            writer.write(log.SerializeToString(deterministic=True))


def _requests(
    queries: Sequence[str], batch_sizes: Sequence[int], model: str
) -> list[predict_pb2.PredictRequest]:
    requests = []
    for size in batch_sizes:
        batch = list(itertools.islice(itertools.cycle(queries), size))
        requests.append(encode_request(batch, model, None))
        requests.append(query_at_request(batch, CUTOFF, model, None))
    return requests
