"""Vertex AI's two services on a socket file, with the client library's own messages."""

import base64
import contextlib
import json
import tempfile
import threading
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.cloud.aiplatform import gapic
from google.cloud.aiplatform_v1.services.pipeline_service.transports import (
    PipelineServiceGrpcTransport,
)
from google.cloud.aiplatform_v1.services.schedule_service.transports import (
    ScheduleServiceGrpcTransport,
)

from pebr_tf.config import Config

EMAIL = "submitter@shop-1.iam.gserviceaccount.com"
CLOUD = {
    "data.click_log": "gs://shop-logs/clicks/*",
    "data.catalogue": "gs://shop-logs/catalogue/*",
    "pipeline.root": "gs://shop-pebr/run",
    "pipeline.releases": "gs://shop-pebr/releases",
    "cloud.project": "shop-1",
    "cloud.region": "europe-west4",
    "cloud.image": "europe-west4-docker.pkg.dev/shop-1/pebr/pebr:1",
}
IDENTITY = {
    "cloud.service_account": "runner@shop-1.iam.gserviceaccount.com",
    "cloud.network": "projects/12345/global/networks/main",
}


def cloud_config(**changes):
    """A configuration that can run on Vertex AI, with some keys changed."""
    return Config().replace_all({**CLOUD, **changes})


def tiny_job():
    """A job of a task that may be cached and one that may not, as `compile_job` gives it."""
    tasks = {
        "Pusher": {
            "taskInfo": {"name": "Pusher"},
            "componentRef": {"name": "Pusher"},
            "cachingOptions": {"enableCache": True},
            "retryPolicy": {"maxRetryCount": 2},
        },
        "Look": {"taskInfo": {"name": "Look"}, "componentRef": {"name": "Pusher"}},
    }
    container = {"image": CLOUD["cloud.image"], "args": ["--é"]}
    return {
        "displayName": "pebr",
        "labels": {"tfx_version": "1-16-0"},
        "pipelineSpec": {
            "pipelineInfo": {"name": "pebr"},
            "schemaVersion": "2.1.0",
            "sdkVersion": "tfx-1.16.0",
            "components": {"Pusher": {"executorLabel": "Pusher_executor"}},
            "deploymentSpec": {"executors": {"Pusher_executor": {"container": container}}},
            "root": {"dag": {"tasks": tasks}},
        },
        "runtimeConfig": {"gcsOutputDirectory": CLOUD["pipeline.root"]},
    }


def write_key_file(folder):
    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    content = {
        "type": "service_account",
        "project_id": "shop-1",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": EMAIL,
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    path = folder / "key.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@dataclass
class VertexServer:
    """Vertex AI's answers, and what arrived; `hosts` are those that clients asked for."""

    received: list[Any] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    patience: list[float] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    rejection: tuple[grpc.StatusCode, str] | None = None
    silent: bool = False
    release: threading.Event = field(default_factory=threading.Event)

    def create_pipeline_job(self, request, context):
        self._take(request, context)
        job = gapic.PipelineJob(request.pipeline_job)
        job.name = f"{request.parent}/pipelineJobs/{request.pipeline_job_id}"
        job.state = gapic.PipelineState.PIPELINE_STATE_PENDING
        return job

    def create_schedule(self, request, context):
        self._take(request, context)
        schedule = gapic.Schedule(request.schedule)
        schedule.name = f"{request.parent}/schedules/678"
        schedule.state = gapic.Schedule.State.ACTIVE
        return schedule

    def _take(self, request, context):
        self.received.append(request)
        self.patience.append(context.time_remaining())
        self.callers.append(_caller(dict(context.invocation_metadata())["authorization"]))
        if self.silent:
            self.release.wait()
        if self.rejection is not None:
            context.abort(*self.rejection)


@contextlib.contextmanager
def vertex_server(monkeypatch):
    vertex = VertexServer()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        [
            _service(
                "PipelineService",
                CreatePipelineJob=_handler(
                    vertex.create_pipeline_job, gapic.CreatePipelineJobRequest, gapic.PipelineJob
                ),
            ),
            _service(
                "ScheduleService",
                CreateSchedule=_handler(
                    vertex.create_schedule, gapic.CreateScheduleRequest, gapic.Schedule
                ),
            ),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/vertex"
        # Tokens need a safe channel; gRPC takes a socket file for one.
        kind = grpc.LocalConnectionType.UDS
        server.add_secure_port(address, grpc.local_server_credentials(kind))
        redirect(monkeypatch, address, vertex.hosts, grpc.local_channel_credentials(kind))
        server.start()
        try:
            yield vertex
        finally:
            vertex.release.set()
            server.stop(None).wait()


def redirect(monkeypatch, address, hosts, trust):
    """Lets clients connect to an address; all else stays theirs."""
    for transport in (PipelineServiceGrpcTransport, ScheduleServiceGrpcTransport):
        original = transport.create_channel.__func__

        def create_channel(cls, host, original=original, **options):
            hosts.append(host)
            return original(cls, address, **{**options, "ssl_credentials": trust})

        monkeypatch.setattr(transport, "create_channel", classmethod(create_channel))


def _service(name, **methods):
    return grpc.method_handlers_generic_handler(f"google.cloud.aiplatform.v1.{name}", methods)


def _handler(function, request, answer):
    return grpc.unary_unary_rpc_method_handler(function, request.deserialize, answer.serialize)


def _caller(authorization):
    """Who a token names: the issuer of one that the client signed itself."""
    payload = authorization.removeprefix("Bearer ").split(".")[1]
    padded = payload + "=" * (-len(payload) % 4)
    return str(json.loads(base64.urlsafe_b64decode(padded))["iss"])
