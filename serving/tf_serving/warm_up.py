"""Requests that TF Serving replays when it loads a model, so that the first callers do not wait.

    <model>/assets.extra/tf_serving_warmup_requests     TFRecords of PredictionLog

TensorFlow prepares a graph on first use of a signature, a set of outputs, sometimes a batch size.
If a warm-up request fails, TF Serving does not load the model.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from pebr_tf.config import TfServing
from pebr_tf.files import replacing_file
from serving.tf_serving.messages import encode_request, query_at_request

WARM_UP = Path("assets.extra/tf_serving_warmup_requests")
# `allowed_batch_sizes` of batching_parameters.txt: TF Serving pads batches to one of these.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
RECALL = 0.9


def write_warm_up(
    model_directory: Path, queries: Sequence[str], model: str = TfServing().model
) -> None:
    """Writes warm-up requests into a query model and replaces existing ones.

    One request per signature is written for each of BATCH_SIZES; `queries`, at least one, are
    repeated to fill them.
    """
    with (
        replacing_file(model_directory / WARM_UP) as path,
        tf.io.TFRecordWriter(str(path)) as writer,
    ):
        for request in _requests(queries, model):
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(request)
            writer.write(log.SerializeToString(deterministic=True))


def _requests(queries: Sequence[str], model: str) -> Iterator[predict_pb2.PredictRequest]:
    for size in BATCH_SIZES:
        batch = list(itertools.islice(itertools.cycle(queries), size))
        yield encode_request(batch, model, None)
        yield encode_request(batch, model, None, with_law=False)
        yield query_at_request(batch, RECALL, model, None)
