"""A gRPC server that answers by a script, and remembers what it was asked."""

import contextlib
import threading
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2_grpc

from serving.proto import retrieval_pb2, retrieval_pb2_grpc

ANSWER = retrieval_pb2.RetrieveResponse(
    results=[
        retrieval_pb2.QueryResult(
            items=[
                retrieval_pb2.Item(item_id="a", score=0.75, fields={"title": "A"}),
                retrieval_pb2.Item(item_id="b", score=0.5),
            ],
            count=2,
            truncated=True,
            threshold=0.25,
            expected_recall=0.875,
            tau=0.125,
            alpha=8,
            beta=2,
            level=-3,
            stratum="head",
            level_source="probe",
        ),
        retrieval_pb2.QueryResult(stratum="tail"),
    ],
    release=20261116145733,
    knob="recall",
    value=0.9,
    timings=retrieval_pb2.Timings(queue=1, encode=2, search=3, lookup=4, total=11),
    request_id="abc",
)
RELEASE = {
    "version": 20261116145733,
    "created": "2026-11-16T14:57:33+00:00",
    "items": 20_000,
    "dimension": 128,
    "default_knob": "recall",
    "default_value": 0.9,
    "floor": 1,
    "limit": 10_000,
    "fields": ("title", "brand"),
}
HANG = "hang"


class Script(retrieval_pb2_grpc.RetrievalServicer):
    """Takes one step a call, and answers when there are none left.

    A step is a status, a status with its text and any pairs of trailing metadata, or HANG: no
    answer before the call is over.
    """

    def __init__(self):
        self.steps = []
        self.calls = []
        self.health = health.HealthServicer()

    def Retrieve(self, request, context):
        self.calls.append((request, dict(context.invocation_metadata()), context.time_remaining()))
        self._step(context)
        return ANSWER

    def GetRelease(self, request, context):
        self._step(context)
        return retrieval_pb2.Release(**RELEASE)

    def _step(self, context):
        if not self.steps:
            return
        step = self.steps.pop(0)
        if step == HANG:
            over = threading.Event()
            context.add_callback(over.set)
            over.wait(30)
            return
        code, text, *metadata = step if isinstance(step, tuple) else (step, "no")
        context.set_trailing_metadata(tuple(metadata))
        context.abort(code, text)


@contextlib.contextmanager
def serving(script, **options):
    server = grpc.server(
        futures.ThreadPoolExecutor(8),
        options=[("grpc.so_reuseport", 0), *((f"grpc.{k}", v) for k, v in options.items())],
    )
    retrieval_pb2_grpc.add_RetrievalServicer_to_server(script, server)
    health_pb2_grpc.add_HealthServicer_to_server(script.health, server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None).wait()
