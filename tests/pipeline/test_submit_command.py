"""`pebr submit` and `pebr schedule`: requests, output and errors."""

from __future__ import annotations

import json
import re
import socket
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.auth.compute_engine import _metadata
from google.cloud.aiplatform import gapic
from vertex_server import (
    CLOUD,
    EMAIL,
    VertexServer,
    cloud_config,
    tiny_job,
    vertex_server,
    write_key_file,
)

from pebr_tf.cli.main import main
from pebr_tf.config import Config
from pipeline import vertex

Pebr = Callable[..., tuple[int, str, str]]
CONSOLE = "https://console.cloud.google.com/vertex-ai/locations/europe-west4/pipelines"
CRON = ("--cron", "0 3 * * mon-fri", "--time-zone", "Europe/Berlin")
# Both commands, with what each needs.
COMMANDS = [("submit",), ("schedule", *CRON)]


@pytest.fixture(autouse=True)
def _logs_stay_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later tests read logs."""
    monkeypatch.setattr("pipeline.quiet.set_logging", lambda: None)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[VertexServer]:
    with vertex_server(monkeypatch) as running:
        yield running


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_key_file(tmp_path_factory.mktemp("key"))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A tiny job replaces the real one, which needs TFX; returns the calls of the compiler."""
    asked = []

    def compile_job(config: Config, **given: Any) -> dict[str, Any]:
        asked.append(given)
        return tiny_job()

    module = types.ModuleType("pipeline.kubeflow_v2_runner")
    module.compile_job = compile_job
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return asked


@pytest.fixture
def pebr(
    tmp_path: Path,
    key_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Pebr:
    """Runs a command with a config and an account key; returns exit code, output and errors."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file))
    file = tmp_path / "pebr.yaml"

    def run(command: str, *arguments: str, config: Config | str | None = None) -> Any:
        text = config if isinstance(config, str) else (config or cloud_config()).to_yaml()
        file.write_text(text)
        with pytest.raises(SystemExit) as exit_:
            main([command, "--config", str(file), *arguments])
        output = capsys.readouterr()
        return exit_.value.code, output.out, output.err.replace(f"{file}", "FILE")

    return run


@pytest.fixture
def no_credentials(
    pebr: Pebr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    """A machine without credentials; returns the monkeypatch for further changes."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    return monkeypatch


def test_a_submission(pebr: Pebr, server: VertexServer, compiled: list[dict[str, Any]]) -> None:
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


def test_the_options_of_a_submission(
    pebr: Pebr, server: VertexServer, compiled: list[dict[str, Any]]
) -> None:
    config = cloud_config(pipeline__name="shop-search")
    assert pebr("submit", "--index-only", "--span", "7", "--no-cache", config=config)[0] == 0
    assert compiled == [{"index_only": True, "span": 7}]
    (request,) = server.received
    assert re.fullmatch(r"shop-search-20[0-9]{12}", request.pipeline_job_id)
    task = gapic.PipelineJob.to_dict(request.pipeline_job)["pipeline_spec"]["root"]["dag"]["tasks"]
    assert task["Pusher"]["cachingOptions"] == {"enableCache": False}


def test_a_schedule(pebr: Pebr, server: VertexServer, compiled: list[dict[str, Any]]) -> None:
    code, out, err = pebr("schedule", *CRON, "--index-only", "--name", "Every night")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "compiling",
        "name      projects/shop-1/locations/europe-west4/schedules/678",
        "state     ACTIVE",
        f"link      {CONSOLE}/schedules/678?project=shop-1",
    ]
    (request,) = server.received
    assert request.schedule.display_name == "Every night"
    assert request.schedule.cron == "TZ=Europe/Berlin 0 3 * * MON-FRI"
    assert compiled == [{"index_only": True}]


def test_a_schedule_is_in_utc_and_has_the_pipelines_name(
    pebr: Pebr, server: VertexServer, compiled: list[dict[str, Any]]
) -> None:
    assert pebr("schedule", "--cron", "0 3 * * *")[0] == 0
    (request,) = server.received
    assert (request.schedule.display_name, request.schedule.cron) == ("pebr", "0 3 * * *")


@pytest.mark.parametrize("command", [("submit", "--job-id", "pebr-1"), ("schedule", *CRON)])
def test_a_dry_run_prints_what_is_then_received(
    command: tuple[str, ...], pebr: Pebr, server: VertexServer, compiled: list[dict[str, Any]]
) -> None:
    code, out, err = pebr(*command, "--dry-run")
    assert (code, err) == (0, "")
    assert server.received == []
    assert pebr(*command)[0] == 0
    (request,) = server.received
    assert out == f"{vertex.to_json(request)}\n"
    assert type(request).from_json(out) == request


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dry_run_needs_no_credentials_and_no_network(
    command: tuple[str, ...],
    pebr: Pebr,
    compiled: list[dict[str, Any]],
    no_credentials: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("A dry run must not leave this process.")

    no_credentials.setattr("google.auth.default", fail)
    no_credentials.setattr(socket.socket, "connect", fail)
    no_credentials.setattr("grpc._channel._UnaryUnaryMultiCallable.__call__", fail)
    code, out, err = pebr(*command, "--dry-run")
    assert (code, err) == (0, "")
    assert json.loads(out)["parent"] == "projects/shop-1/locations/europe-west4"


@pytest.mark.parametrize("command", COMMANDS)
def test_without_credentials_nothing_is_compiled(
    command: tuple[str, ...],
    pebr: Pebr,
    compiled: list[dict[str, Any]],
    no_credentials: pytest.MonkeyPatch,
) -> None:
    assert pebr(*command) == (
        2,
        "",
        "pebr: Google Cloud credentials must be at hand: run gcloud auth application-default "
        "login, or name a file of them in GOOGLE_APPLICATION_CREDENTIALS. Received: Your default "
        "credentials were not found.\n",
    )
    assert compiled == []


@pytest.mark.parametrize(("command", "noun"), zip(COMMANDS, ("job", "schedule"), strict=True))
def test_a_failed_submission_prints_one_sentence(
    command: tuple[str, ...],
    noun: str,
    pebr: Pebr,
    server: VertexServer,
    compiled: list[dict[str, Any]],
) -> None:
    server.refusal = grpc.StatusCode.PERMISSION_DENIED, "Permission 'x' denied."
    assert pebr(*command) == (
        2,
        "compiling\n",
        f"pebr: Vertex AI must accept the {noun} in shop-1, europe-west4. "
        "Received: 403 Permission 'x' denied.\n",
    )


NO_PROJECT = {key: value for key, value in CLOUD.items() if key != "cloud.project"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            Config().replace_all(NO_PROJECT),
            "cloud.project must name a project to run on Vertex AI. Received: null.",
        ),
        (
            cloud_config(pipeline__root="run"),
            "pipeline.root must be on gs:// to run on Vertex AI. Received: 'run', a path of this "
            "machine.",
        ),
        (
            "cloud: {image: shop/pebr}",
            "FILE: cloud.image must be null or an image with a tag or a digest, such as pebr:1. "
            "Received: 'shop/pebr'.",
        ),
        (
            "cloud: {resources: {trainer: '4 cpu, 16 GB, 1 NVIDIA_T5'}}",
            "FILE: cloud.resources.trainer must name one of the accelerators NVIDIA_TESLA_K80, "
            "NVIDIA_TESLA_P100, NVIDIA_TESLA_V100, NVIDIA_TESLA_P4, NVIDIA_TESLA_T4, "
            "NVIDIA_TESLA_A100, NVIDIA_A100_80GB, NVIDIA_L4, NVIDIA_H100_80GB, "
            "NVIDIA_H100_MEGA_80GB, NVIDIA_H200_141GB, NVIDIA_B200, NVIDIA_GB200, "
            "NVIDIA_RTX_PRO_6000. Received: '4 cpu, 16 GB, 1 NVIDIA_T5'.",
        ),
    ],
)
def test_a_config_that_cannot_run_on_vertex_ai(
    config: Config | str, expected: str, pebr: Pebr, compiled: list[dict[str, Any]]
) -> None:
    for command in (*COMMANDS, ("submit", "--dry-run"), ("schedule", *CRON, "--dry-run")):
        assert pebr(*command, config=config) == (2, "", f"pebr: {expected}\n")
    assert compiled == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            ("schedule", "--cron", "0 25 * * *"),
            "--cron must be five fields, minute hour day month weekday. Received: '0 25 * * *': "
            "hour 25 is not within 0 to 23.",
        ),
        (
            ("schedule", "--cron", "0 3 * * *", "--time-zone", "Mars"),
            "--time-zone must be a name of the IANA database, such as Europe/Berlin. Received: "
            "'Mars'.",
        ),
        (
            ("schedule", "--cron", "0 3 * * *", "--name", "a" * 129),
            "--name must be 1 to 128 characters. Received: 129.",
        ),
        (
            ("submit", "--job-id", "Nightly"),
            "--job-id must be at most 128 lower-case letters, digits and hyphens, a letter first. "
            "Received: 'Nightly'.",
        ),
    ],
)
def test_bad_arguments_are_reported_first(
    command: tuple[str, ...], expected: str, pebr: Pebr
) -> None:
    assert pebr(*command, config="cloud: nonsense") == (2, "", f"pebr: {expected}\n")


@pytest.mark.slow
def test_the_real_pipeline(pebr: Pebr, server: VertexServer) -> None:
    code, out, err = pebr("schedule", *CRON)
    assert (code, len(out.splitlines()), err) == (0, 4, "")
    (request,) = server.received
    job = request.schedule.create_pipeline_job_request.pipeline_job
    tasks = gapic.PipelineJob.to_dict(job)["pipeline_spec"]["root"]["dag"]["tasks"]
    assert {"ClickLogExampleGen", "Trainer", "Pusher"} <= tasks.keys()
