"""A stand-in for TF Serving: its gRPC services, on its published stubs, over SavedModels.

It implements what the remote encoder uses, with the status codes and messages of TF Serving's
published source. It has no batching, version labels, warm-up, REST API or metrics.
"""

from concurrent.futures import ThreadPoolExecutor

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from grpc import StatusCode
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

MODEL = "pebr_query"
VERSIONS_KEPT = 2
LOAD_ERRORS = (OSError, RuntimeError, DecodeError, tf.errors.OpError)


class TfServingStandIn(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    """Serves the newest versions of one model, in plain text, until `stop` or the end of a `with`.

    `directory` has one SavedModel per version, in folders named by numbers. It is scanned again
    after every question for the status: new versions are there at the next one.
    """

    def __init__(self, directory):
        self._directory = directory
        # Version -> Servable, or the error message of one that failed to load.
        self._versions = {}
        self._scan()
        self._server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(self, self._server)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self):
        """Ends all calls under way and frees the port."""
        self._server.stop(None).wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def Predict(self, request, context):
        version, servable = self._find(request.model_spec, context)
        response = servable.predict(request)
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version
        return response

    def GetModelStatus(self, request, context):
        spec = request.model_spec
        before = self._versions
        self._scan()
        if spec.name != MODEL or spec.version.value not in before:
            message = f"Could not find version {spec.version.value} of model {spec.name}"
            context.abort(StatusCode.NOT_FOUND, message)
        loaded = before[spec.version.value]
        response = get_model_status_pb2.GetModelStatusResponse()
        status = response.model_version_status.add(version=spec.version.value)
        status.state = status.AVAILABLE
        if isinstance(loaded, str):
            status.state = status.END
            status.status.error_code = StatusCode.NOT_FOUND.value[0]
            status.status.error_message = loaded
        return response

    def _find(self, spec, context):
        """The requested version, or the newest if none is requested, and its servable."""
        loaded = {
            version: each
            for version, each in dict(self._versions).items()
            if not isinstance(each, str) and spec.name == MODEL
        }
        pinned = spec.WhichOneof("version_choice") == "version"
        version = spec.version.value if pinned else max(loaded, default=None)
        if version not in loaded:
            name = f"Specific({spec.name}, {version})" if pinned else f"Latest({spec.name})"
            context.abort(StatusCode.NOT_FOUND, f"Servable not found for request: {name}")
        return version, loaded[version]

    def _scan(self):
        """Loads new versions, and drops those that are no longer among the newest."""
        found = {
            int(each.name): each for each in self._directory.iterdir() if each.name.isdecimal()
        }
        newest = sorted(found)[-VERSIONS_KEPT:]
        kept = {version: self._versions.get(version) for version in newest}
        for version in newest:
            if kept[version] is None:
                try:
                    kept[version] = Servable(found[version])
                except LOAD_ERRORS as error:
                    kept[version] = str(error)
        self._versions = kept


class Servable:
    """One version: a SavedModel in a session of its own, as in TF Serving."""

    def __init__(self, directory):
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            loaded = tf.compat.v1.saved_model.loader.load(
                self._session, [tf.saved_model.SERVING], str(directory)
            )
        self.signatures = dict(loaded.signature_def)

    def predict(self, request):
        """The response, without the name and version of the model."""
        name = request.model_spec.signature_name or "serving_default"
        inputs, outputs = self.signatures[name].inputs, self.signatures[name].outputs
        wanted = list(request.output_filter) or list(outputs)
        feeds = {inputs[alias].name: tf.make_ndarray(t) for alias, t in request.inputs.items()}
        values = self._session.run({alias: outputs[alias].name for alias in wanted}, feeds)
        response = predict_pb2.PredictResponse()
        response.model_spec.signature_name = name
        for alias, value in values.items():
            tensor = response.outputs[alias]
            tensor.dtype = outputs[alias].dtype
            tensor.tensor_shape.CopyFrom(tf.TensorShape(value.shape).as_proto())
            # TF Serving sends numbers in a field of their type, not as bytes.
            kinds = {"int64": tensor.int64_val, "bool": tensor.bool_val}
            numbers = kinds.get(str(value.dtype), tensor.float_val)
            numbers.extend(value.ravel().tolist())
        return response
