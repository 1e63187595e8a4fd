"""What a server on this machine receives in place of Vertex AI, and what its rejections become."""

import json
import socket

import grpc
import pytest
from google.auth.credentials import Credentials
from google.auth.exceptions import RefreshError
from google.cloud import aiplatform
from google.cloud.aiplatform import gapic
from google.cloud.aiplatform.utils import gcs_utils
from google.oauth2 import service_account
from google.protobuf import json_format
from vertex_server import CLOUD, EMAIL, IDENTITY, cloud_config, redirect, tiny_job

from pipeline import vertex
from pipeline.cron import read_cron

PARENT = "projects/shop-1/locations/europe-west4"
CRON = "TZ=Europe/Berlin 0 3 * * MON"
TIMES = read_cron("0 3 * * MON", "Europe/Berlin")
START = "Vertex AI must accept the job in shop-1, europe-west4. Received: "


@pytest.fixture(scope="module")
def credentials(key_file):
    return service_account.Credentials.from_service_account_file(str(key_file))


@pytest.fixture
def config():
    return cloud_config(**IDENTITY)


@pytest.fixture
def refused(rejection):
    """A function that returns the error of a submission."""
    request = vertex.job_request(tiny_job(), cloud_config(), "pebr-1")
    return lambda credentials: rejection(vertex.submit, request, cloud_config(), credentials)


def specification(job):
    return json_format.MessageToDict(gapic.PipelineJob.pb(job).pipeline_spec)


def test_nobody_is_named_by_default():
    job = vertex.job_request(tiny_job(), cloud_config(), "pebr-1").pipeline_job
    assert (job.service_account, job.network) == ("", "")


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        (True, {"Pusher": {"enableCache": True}, "Look": None}),
        (False, {"Pusher": {"enableCache": False}, "Look": {"enableCache": False}}),
    ],
)
def test_caching_is_as_compiled_or_off(cache, expected):
    job = vertex.job_request(tiny_job(), cloud_config(), "pebr-1", cache).pipeline_job
    tasks = specification(job)["root"]["dag"]["tasks"]
    assert {name: task.get("cachingOptions") for name, task in tasks.items()} == expected


def test_the_requests_are_those_of_the_library(server, config, credentials, tmp_path, monkeypatch):
    buckets = []
    monkeypatch.setattr(
        gcs_utils,
        "create_gcs_bucket_for_pipeline_artifacts_if_it_does_not_exist",
        lambda **given: buckets.append(given["output_artifacts_gcs_dir"]),
    )
    file = tmp_path / "job.json"
    file.write_text(json.dumps(tiny_job()))
    job = aiplatform.PipelineJob(
        display_name="pebr",
        template_path=str(file),
        job_id="pebr-1",
        labels=tiny_job()["labels"],
        project="shop-1",
        location="europe-west4",
        credentials=credentials,
    )
    identity = {key.removeprefix("cloud."): value for key, value in IDENTITY.items()}
    schedule = aiplatform.PipelineJobSchedule(job, "Mondays", credentials=credentials)
    schedule.create(cron=CRON, max_concurrent_run_count=1, allow_queueing=False, **identity)
    job.submit(**identity)
    # What a dry run could not show, and a submission does not need.
    assert buckets == ["gs://shop-pebr/run"]
    theirs = list(server.received)
    server.hosts.clear()
    ours = [
        vertex.schedule_request(tiny_job(), config, TIMES, "Mondays"),
        vertex.job_request(tiny_job(), config, "pebr-1"),
    ]
    assert ours == theirs
    assert specification(ours[1].pipeline_job) == tiny_job()["pipelineSpec"]
    assert vertex.schedule(ours[0], config, credentials) == {
        "name": f"{PARENT}/schedules/678",
        "state": "ACTIVE",
        "link": schedule._dashboard_uri(),
    }
    assert vertex.submit(ours[1], config, credentials) == {
        "name": f"{PARENT}/pipelineJobs/pebr-1",
        "state": "PIPELINE_STATE_PENDING",
        "link": job._dashboard_uri(),
    }
    assert server.received == theirs + ours
    assert server.callers[2:] == [EMAIL] * 2
    patience = server.patience[2:]
    assert all(vertex.TIMEOUT_SECONDS / 2 < each <= vertex.TIMEOUT_SECONDS for each in patience)
    assert set(server.hosts) == {"europe-west4-aiplatform.googleapis.com:443"}


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "Errors:\n1. A;\n b.\n", "400 Errors: 1. A; b."),
        (grpc.StatusCode.ALREADY_EXISTS, "pebr-1 exists", "409 pebr-1 exists."),
        (grpc.StatusCode.UNAVAILABLE, "try later", "503 try later."),
    ],
)
def test_a_rejection_is_one_sentence_and_is_not_tried_again(
    status, text, expected, server, credentials, refused
):
    server.rejection = status, text
    assert refused(credentials) == START + expected
    assert len(server.received) == 1


def test_a_rejected_schedule(server, credentials, rejection):
    server.rejection = grpc.StatusCode.NOT_FOUND, "no such project"
    request = vertex.schedule_request(tiny_job(), cloud_config(), TIMES, "a")
    assert rejection(vertex.schedule, request, cloud_config(), credentials) == (
        "Vertex AI must accept the schedule in shop-1, europe-west4. Received: 404 no such project."
    )


def test_a_server_that_does_not_answer(server, credentials, monkeypatch, refused):
    server.silent = True
    monkeypatch.setattr(vertex, "TIMEOUT_SECONDS", 0.5)
    assert refused(credentials) == f"{START}504 Deadline Exceeded."


def test_no_server(credentials, monkeypatch, refused):
    with socket.socket() as taken:
        # Bound, so that nobody else has it, and not listening.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        redirect(monkeypatch, address, [], grpc.ssl_channel_credentials())
        text = refused(credentials)
    assert text.startswith(f"{START}503 failed to connect to all addresses")
    assert "Connection refused" in text
    assert "\n" not in text


class Expired(Credentials):
    def refresh(self, request):
        raise RefreshError("Reauthentication is needed. Run `gcloud auth login`.", {"a": 1})


def test_credentials_that_have_expired(server, refused):
    assert refused(Expired()) == (
        f"{START}503 Getting metadata from plugin failed with error: ('Reauthentication is needed. "
        "Run `gcloud auth login`.', {'a': 1})."
    )
    assert server.received == []


@pytest.mark.slow
@pytest.mark.usefixtures("same_code")
@pytest.mark.parametrize("index_only", [False, True])
def test_the_library_accepts_the_compiled_pipeline(server, config, credentials, index_only):
    from pipeline.kubeflow_v2_runner import compile_job

    job = compile_job(config, index_only=index_only)
    accepted = vertex.submit(vertex.job_request(job, config, "pebr-1"), config, credentials)
    assert accepted["state"] == "PIPELINE_STATE_PENDING"
    (request,) = server.received
    assert specification(request.pipeline_job) == job["pipelineSpec"]
    assert request.pipeline_job.runtime_config.gcs_output_directory == CLOUD["pipeline.root"]
