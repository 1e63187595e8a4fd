"""`pebr submit` and `pebr schedule`: requests, output and errors."""

import re
import socket
import sys
import types

import pytest
from google.auth.compute_engine import _metadata
from google.cloud.aiplatform import gapic
from vertex_server import EMAIL, cloud_config, tiny_job

from pipeline import vertex

CONSOLE = "https://console.cloud.google.com/vertex-ai/locations/europe-west4/pipelines"
CRON = ("--cron", "0 3 * * mon-fri", "--time-zone", "Europe/Berlin")
# Both commands, with what each needs.
COMMANDS = [("submit",), ("schedule", *CRON)]
pytestmark = pytest.mark.usefixtures("same_code")


@pytest.fixture
def compiled(monkeypatch):
    """A tiny job replaces the real one, which needs TFX; returns the calls of the compiler."""
    asked = []

    def compile_job(config, **given):
        asked.append(given)
        return tiny_job()

    module = types.ModuleType("pipeline.kubeflow_v2_runner")
    module.compile_job = compile_job
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return asked


@pytest.fixture
def pebr(tmp_path, key_file, monkeypatch, pebr):
    """As of the conftest, with a config and an account key."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file))
    file = tmp_path / "pebr.yaml"

    def run(command, *arguments, config=None):
        text = config if isinstance(config, str) else (config or cloud_config()).to_yaml()
        file.write_text(text)
        code, out, err = pebr(command, "--config", file, *arguments)
        return code, out, err.replace(f"{file}", "FILE")

    return run


def test_a_submission(pebr, server, compiled):
    code, out, err = pebr("submit", "--job-id", "nightly-1")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "compiling",
        "name      projects/shop-1/locations/europe-west4/pipelineJobs/nightly-1",
        "state     PIPELINE_STATE_PENDING",
        f"link      {CONSOLE}/runs/nightly-1?project=shop-1",
    ]
    (request,) = server.received
    assert request.pipeline_job_id == "nightly-1"
    assert server.callers == [EMAIL]
    assert compiled == [{"index_only": False, "span": None}]


def test_the_options_of_a_submission(pebr, server, compiled):
    config = cloud_config(**{"pipeline.name": "shop-search"})
    assert pebr("submit", "--index-only", "--span", "7", "--no-cache", config=config)[0] == 0
    assert compiled == [{"index_only": True, "span": 7}]
    (request,) = server.received
    assert re.fullmatch(r"shop-search-20[0-9]{12}", request.pipeline_job_id)
    task = gapic.PipelineJob.to_dict(request.pipeline_job)["pipeline_spec"]["root"]["dag"]["tasks"]
    assert task["Pusher"]["cachingOptions"] == {"enableCache": False}


def test_a_schedule(pebr, server, compiled):
    code, out, err = pebr("schedule", *CRON, "--index-only", "--name", "Every night")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        *("name      projects/shop-1/locations/europe-west4/schedules/678", "state     ACTIVE"),
        f"link      {CONSOLE}/schedules/678?project=shop-1",
    ]
    (request,) = server.received
    assert request.schedule.display_name == "Every night"
    assert request.schedule.cron == "TZ=Europe/Berlin 0 3 * * MON-FRI"
    assert compiled == [{"index_only": True}]
    assert pebr("schedule", "--cron", "0 3 * * *")[0] == 0
    schedule = server.received[1].schedule
    assert (schedule.display_name, schedule.cron) == ("pebr", "0 3 * * *")


@pytest.mark.parametrize("command", [("submit", "--job-id", "pebr-1"), ("schedule", *CRON)])
def test_a_dry_run_sends_nothing_and_prints_what_is_then_received(
    command, pebr, server, compiled, monkeypatch
):
    def fail(*_):
        raise AssertionError("A dry run must not leave this process.")

    with monkeypatch.context() as offline:
        offline.setattr("google.auth.default", fail)
        offline.setattr(socket.socket, "connect", fail)
        offline.setattr("grpc._channel._UnaryUnaryMultiCallable.__call__", fail)
        code, out, err = pebr(*command, "--dry-run")
    assert code == 0
    assert err.count("next run: ") == (3 if command[0] == "schedule" else 0)
    assert re.fullmatch(r"(next run: \w+day 20[0-9-]{8} 03:00 Europe/Berlin\n)*", err)
    assert server.received == []
    assert pebr(*command)[0] == 0
    (request,) = server.received
    assert out == f"{vertex.to_json(request)}\n"
    assert type(request).from_json(out) == request


@pytest.mark.parametrize("command", COMMANDS)
def test_without_credentials_nothing_is_compiled(command, pebr, compiled, tmp_path, monkeypatch):
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    code, out, err = pebr(*command)
    assert (code, out, compiled) == (2, "", [])
    assert err.startswith("pebr: Google Cloud credentials must be available: run gcloud auth app")


def test_a_config_that_cannot_run_on_vertex_ai(pebr, compiled):
    root = "pipeline.root must be on gs:// to run on Vertex AI. Received: 'run', a path of this"
    bad_type = "FILE: cloud must be a mapping of settings. Received: 'nonsense'."
    for command in (*COMMANDS, ("submit", "--dry-run"), ("schedule", *CRON, "--dry-run")):
        for config, expected in (
            (cloud_config(**{"pipeline.root": "run"}), f"{root} machine."),
            ("cloud: nonsense", bad_type),
        ):
            assert pebr(*command, config=config) == (2, "", f"pebr: {expected}\n")
    assert compiled == []
