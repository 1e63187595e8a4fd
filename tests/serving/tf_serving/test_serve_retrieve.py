"""The all-in-one model with ScaNN's op, served by a process that has not imported ScaNN."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from pebr_tf.config import Index
from pebr_tf.retrieval import build_index
from pebr_tf.retrieval.saved_model import export

ASK = """
import sys
from pathlib import Path
from tensorflow_serving.apis import predict_pb2
from stand_in.servable import Servable

assert "scann" not in sys.modules
request = predict_pb2.PredictRequest.FromString(sys.stdin.buffer.read())
answer = Servable(Path(sys.argv[1])).predict(request)
sys.stdout.buffer.write(answer.SerializeToString())
"""


class Numbered(tf.Module):
    """A query model that knows its queries by their numbers."""

    def __init__(self, vectors):
        super().__init__()
        self.vectors = tf.Variable(vectors, trainable=False)

    def __call__(self, query):
        embedding = tf.gather(self.vectors, tf.strings.to_number(query, tf.int32))
        return {"embedding": embedding, "threshold": tf.fill([tf.shape(query)[0]], 0.7)}


@pytest.mark.slow
def test_retrieve(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(1_500, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    build_index(tmp_path / "index", vectors, config=Index(exact_below=0))
    export(Numbered(vectors[:50]), tmp_path / "index", tmp_path / "model", limit=1_500)
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = "retrieve"
    request.inputs["query"].CopyFrom(tf.make_tensor_proto(["0", "49"]))
    answer = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path / "model")],
        input=request.SerializeToString(),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    outputs = predict_pb2.PredictResponse.FromString(answer).outputs
    splits = tf.make_ndarray(outputs["row_splits"])
    ids = tf.make_ndarray(outputs["item_ids"])
    for row, query in enumerate((0, 49)):
        found = set(ids[splits[row] : splits[row + 1]].tolist())
        expected = set(np.flatnonzero(vectors @ vectors[query] >= 0.7).tolist())
        # ScaNN may miss some, and gives none that is below.
        assert found <= expected
        assert len(found) >= 0.9 * len(expected) > 5
