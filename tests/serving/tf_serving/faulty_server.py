"""A server on TF Serving's stubs that answers as a test tells it to."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis import get_model_status_pb2, predict_pb2
from tiny_release import DIMENSION

from pebr_tf.retrieval.encoded import ENCODED_FIELDS

PREDICT = "tensorflow.serving.PredictionService", "Predict"
STATUS = "tensorflow.serving.ModelService", "GetModelStatus"
REQUESTS = {
    PREDICT: predict_pb2.PredictRequest,
    STATUS: get_model_status_pb2.GetModelStatusRequest,
}


class FaultyServer:
    """Calls `behaviours[method](request, context)`, which gives a message or bytes.

    `calls` counts calls of Predict, `arrived` is set by each, and hung calls wait for `release`.
    """

    def __init__(self):
        self.behaviours = {PREDICT: good}
        self.calls = 0
        self.arrived = threading.Event()
        self.release = threading.Event()
        self._lock = threading.Lock()
        self._server = None
        self.address = "127.0.0.1:0"

    def start(self):
        """Listens, on the port that it had before if it had one."""
        # Threads to spare, for those that hang.
        server = grpc.server(ThreadPoolExecutor(32), options=[("grpc.so_reuseport", 0)])
        for method, request in REQUESTS.items():
            service, name = method
            handler = grpc.unary_unary_rpc_method_handler(
                self._answering(method),
                request_deserializer=request.FromString,
                response_serializer=lambda message: (
                    message if isinstance(message, bytes) else message.SerializeToString()
                ),
            )
            handlers = grpc.method_handlers_generic_handler(service, {name: handler})
            server.add_generic_rpc_handlers((handlers,))
        port = server.add_insecure_port(self.address)
        self.address = f"127.0.0.1:{port}"
        server.start()
        self._server = server

    def kill(self):
        """Ends at once, with all calls under way."""
        self._server.stop(None).wait()

    def hang(self, request, context):
        """Accepts a call and never answers it, until the test ends."""
        self.release.wait()
        return b""

    def _answering(self, method):
        def answer(request, context):
            if method == PREDICT:
                with self._lock:
                    self.calls += 1
                self.arrived.set()
            return self.behaviours[method](request, context)

        return answer


def good(request, context=None, **changes):
    """An answer as it should be, with outputs changed, or left out where they are None."""
    size = len(request.inputs["query"].string_val)
    response = predict_pb2.PredictResponse(model_spec=request.model_spec)
    values = {name: np.full(size, 0.5, np.float32) for name in ENCODED_FIELDS}
    values["embedding"] = np.full([size, DIMENSION], 0.5, np.float32)
    values["stratum"] = np.ones(size, np.int64)
    values["unfamiliar"] = np.zeros(size, bool)
    for name, value in {**values, **changes}.items():
        if value is not None:
            response.outputs[name].CopyFrom(
                value if isinstance(value, TensorProto) else tf.make_tensor_proto(value)
            )
    return response


def changed(**changes):
    return lambda request, context: good(request, **changes)


def failing(code, details=""):
    """A behaviour: every call ends with this status."""
    return lambda request, context: context.abort(code, details)
