"""Kubeflow without a cluster: KFP's own compiler, its pods against an S3 server, its own client."""

import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from containers import KubeflowContainers
from pebr_process import pebr
from tiny_world import write_world

from pebr_tf.config import Config
from pipeline.cron import read_cron
from pipeline.kubeflow_spec import compile_documents, to_yaml

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests/engines/kubeflow"
RCLONE = "github.com/rclone/rclone@v1.68.2"
KEYS = {"AWS_ACCESS_KEY_ID": "the-access-key-of-a-test", "AWS_SECRET_ACCESS_KEY": "its-secret"}
# Rclone's exit code for a folder that does not exist.
NOT_FOUND = 3
EXAMPLE = ROOT / "examples/kubeflow.yaml"
pytestmark = pytest.mark.engine


def built(arguments, what, **variables):
    """Runs Go, whose own cache makes all but the first build fast."""
    if shutil.which("go") is None:
        pytest.skip("go must be installed")
    done = subprocess.run(
        ["go", *arguments], capture_output=True, text=True, env={**os.environ, **variables}
    )
    if done.returncode:
        pytest.skip(f"Go cannot build {what}: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def kubeflow(tmp_path_factory):
    """Runs KFP's code on arguments; see tests/engines/kubeflow/main.go."""
    program = tmp_path_factory.mktemp("kubeflow") / "kubeflow"
    built(["build", "-C", str(PROGRAM), "-o", str(program), "."], "KFP's compiler")
    return lambda *arguments: subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False
    )


def templates(workflow):
    return {each["name"]: each for each in workflow["spec"]["templates"]}


@pytest.mark.parametrize("index_only", [False, True])
def test_kfp_and_argo_accept_the_file(kubeflow, index_only, tmp_path):
    file = tmp_path / "pipeline.yaml"
    documents = compile_documents(Config.load(EXAMPLE), index_only=index_only)
    file.write_text(to_yaml(documents), encoding="utf-8")
    done = kubeflow("compile", file)
    assert (done.returncode, done.stderr) == (0, "")
    workflow = json.loads(done.stdout)
    names = {task["name"] for task in templates(workflow)["root"]["dag"]["tasks"]}
    assert {"Pusher", "Pusher-driver"} <= names
    assert ("Trainer" in names) == (not index_only)
    assert "nvidia.com/gpu" in done.stdout or index_only
    assert '\\"pool\\":\\"batch\\"' in done.stdout


@pytest.mark.parametrize("mistake", ["resolver", "dependency", "job"])
def test_kfp_or_argo_rejects_what_kubeflow_cannot_run(kubeflow, mistake, tmp_path):
    spec, _ = compile_documents(Config.load(EXAMPLE))
    tasks = spec["root"]["dag"]["tasks"]
    executors = spec["deploymentSpec"]["executors"]
    if mistake == "resolver":
        executors["LastBlessedModel_executor"] = {"resolver": {"outputArtifactQueries": {}}}
        reason = "not implemented"
    elif mistake == "dependency":
        tasks["Pusher"]["dependentTasks"] = ["LastAcceptedRun"]
        reason = "LastAcceptedRun"
    else:
        spec = {"pipelineSpec": spec, "runtimeConfig": {}}
        reason = "unknown template format: pipeline spec is invalid"
    (tmp_path / "pipeline.yaml").write_text(to_yaml([spec]), encoding="utf-8")
    done = kubeflow("compile", tmp_path / "pipeline.yaml")
    assert done.returncode == 1
    assert reason in done.stderr


@pytest.mark.parametrize(
    "text",
    ["0 3 * * *", "*/20 * * * *", "30 2 * * mon-fri", "0 0 1,15 * 7", "0 0 13 * 5-7", "0 0 29 2 *"],
)
def test_a_cron_means_the_same_to_kubeflow(kubeflow, text):
    cron = read_cron(text)
    done = kubeflow("times", cron.for_kubeflow(), "2026-11-18T12:00:00Z", "3")
    assert done.returncode == 0, done.stderr
    noon = datetime(2026, 11, 18, 12, tzinfo=timezone.utc)
    wanted = [f"{time:%Y-%m-%dT%H:%M:%SZ}" for time in cron.next_times(noon, 3)]
    assert done.stdout.split()[: len(wanted)] == wanted
    assert wanted


@dataclass(frozen=True)
class S3Server:
    """An S3 server on this machine with one bucket, and a client in Go, as KFP's launcher is."""

    program: Path
    address: str
    bucket: str

    def copy(self, source, target):
        """Copies a folder; one without files is none to S3."""
        command = [self.program, "copy", self._path(source), self._path(target)]
        variables = {**os.environ, "RCLONE_CONFIG": os.devnull}
        done = subprocess.run(command, capture_output=True, text=True, env=variables)
        assert done.returncode in (0, NOT_FOUND), done.stderr

    def _path(self, path):
        options = f":s3,provider=Other,env_auth=true,endpoint='{self.address}':"
        return path.replace("s3://", options) if path.startswith("s3://") else path


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """`rclone serve s3`, with the variables of its clients set."""
    if not os.access("/", os.W_OK):
        pytest.skip("/s3 must be writable, as it is in the pipeline's image")
    folder = tmp_path_factory.mktemp("s3")
    built(["install", RCLONE], "rclone", GOBIN=str(folder))
    bucket = f"pebr-test-{os.getpid()}"
    (folder / "store" / bucket).mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *(folder / "rclone", "serve", "s3", "--addr", f"127.0.0.1:{port}"),
            *("--auth-key", ",".join(KEYS.values()), folder / "store"),
        ],
        env={**os.environ, "RCLONE_CONFIG": os.devnull},
    )
    address = f"http://127.0.0.1:{port}"
    variables = {**KEYS, "AWS_ENDPOINT_URL": address, "AWS_EC2_METADATA_DISABLED": "true"}
    try:
        wait_for(port)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            yield S3Server(folder / "rclone", address, bucket)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(f"/s3/{bucket}", ignore_errors=True)
        with contextlib.suppress(OSError):
            Path("/s3").rmdir()


def wait_for(port):
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise TimeoutError(f"no server on port {port}")


@dataclass(frozen=True)
class KubeflowRuns:
    """A whole run and an index-only run on the same bucket."""

    folder: Path
    s3: S3Server
    whole: dict[str, Any]
    index: dict[str, Any]
    log: dict[str, str]


@pytest.fixture(scope="module")
def runs(s3, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kubeflow_world")
    write_world(folder)
    at = f"s3://{s3.bucket}"
    s3.copy(str(folder / "data"), f"{at}/data/span-7")
    shutil.rmtree(folder / "data")
    config = Config.load(folder / "pebr.yaml").replace_all(
        {
            "cloud.image": "pebr:1",
            "data.click_log": f"{at}/data/span-{{SPAN}}/*.tsv",
            "data.catalogue": f"{at}/data/span-{{SPAN}}/*.jsonl.gz",
            "pipeline.root": f"{at}/run",
            "pipeline.releases": f"{at}/releases",
            "training.warm_start": True,
        }
    )
    pods = KubeflowContainers(folder, copy=s3.copy)
    found = {}
    for name in ("whole", "index"):
        (spec,) = yaml.safe_load_all(to_yaml(compile_documents(config, index_only=name == "index")))
        found[name] = pods.run_spec(spec, f"{at}/run/pebr/{name}")
    return KubeflowRuns(folder, s3, found["whole"], found["index"], pods.log)


def test_pods_push_releases_that_answer_queries(runs):
    versions = []
    for outputs in (runs.whole, runs.index):
        (release,) = outputs["Pusher"]["release"]
        assert release["metadata"]["pushed"] == 1
        versions.append(int(release["metadata"]["version"]))
    here = runs.folder / "fetched"
    source = f"s3://{runs.s3.bucket}/releases"
    fetched = pebr(runs.folder, "fetch", "--from", source, "--releases", str(here))
    assert fetched.code == 0, fetched.err
    assert max(versions) in {int(path.name) for path in here.iterdir() if path.name.isdigit()}
    answered = pebr(runs.folder, "query", "--release", str(here), "--limit", "3", "huawei phone")
    assert answered.code == 0, answered.err
    assert "huawei phone" in answered.out


def test_the_span_is_found_when_a_pod_runs(runs):
    (examples,) = runs.whole["ClickLogExampleGen"]["examples"]
    assert examples["metadata"]["span"] == 7
    assert examples["uri"].startswith(f"s3://{runs.s3.bucket}/run/pebr/whole/")


def test_the_index_only_run_takes_the_model_of_the_first(runs):
    assert "Trainer" not in runs.index
    (first,) = runs.whole["Pusher"]["release"]
    folder = runs.folder / "model"
    (model,) = runs.index["LastBlessedModel"]["model"]
    runs.s3.copy(model["uri"], str(folder))
    pointer = json.loads((folder / "blessed_model.json").read_text("utf-8"))
    assert pointer["model"] == first["metadata"]["version"]


@dataclass
class KubeflowApi:
    """The API of Kubeflow for one experiment that does not exist yet, and what arrived there."""

    host: str = ""
    received: list[tuple[str, str, Any, str | None]] = field(default_factory=list)
    rejection: str | None = None
    page: str | None = None

    def answer(self, path):
        if self.rejection is not None and path.endswith("runs"):
            return 400, {"message": self.rejection}
        return 200, {
            "/apis/v2beta1/healthz": {"multi_user": True},
            "/apis/v2beta1/experiments": {"experiment_id": "experiment-1"},
            "/apis/v2beta1/runs": {"run_id": "run-1", "state": "PENDING"},
            "/apis/v2beta1/recurringruns": {"recurring_run_id": "recurring-1", "status": "ENABLED"},
        }[path]


@pytest.fixture
def api():
    api = KubeflowApi()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self._reply(None)

        def do_POST(self):
            self._reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _reply(self, body):
            path = self.path.partition("?")[0]
            api.received.append((self.command, path, body, self.headers["authorization"]))
            # The client lists experiments before it creates one.
            listing = self.command == "GET" and path.endswith("experiments")
            status, content = (200, {}) if listing else api.answer(path)
            text = (api.page or json.dumps(content)).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api.host = f"http://127.0.0.1:{server.server_port}"
    yield api
    server.shutdown()


@pytest.fixture(scope="module")
def with_client(environment_with):
    """Runs `pebr` in an environment with the extra `kubeflow`, on top of this one."""
    folder = environment_with("-r", ROOT / "requirements/kubeflow.in")
    (packages,) = folder.glob("lib/python*/site-packages")
    shared = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "shared.pth").write_text(f"{shared}\n")
    command = [folder / "bin/python", "-m", "pebr_tf.cli.main"]

    def run(*arguments):
        done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    return run


TARGET = ("--target", "kubeflow", "--config", str(EXAMPLE))


@pytest.mark.parametrize(
    ("command", "path", "number"),
    [
        (("submit", "--job-id", "night-1"), "runs", "run-1"),
        (("schedule", "--cron", "0 3 * * *"), "recurringruns", "recurring-1"),
    ],
)
def test_the_client_sends_what_a_dry_run_prints(with_client, api, command, path, number, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token\n")
    code, printed, err = with_client(*command, *TARGET, "--dry-run")
    assert code == 0, err
    where = ("--host", api.host, "--token-file", str(token))
    code, out, err = with_client(*command, *TARGET, *where)
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == ["compiling", f"name      {number}"]
    _, experiment, (method, sent_to, body, authorization) = api.received
    named = {"display_name": "shop-search", "namespace": "search"}
    assert experiment[:3] == ("POST", "/apis/v2beta1/experiments", named)
    assert (method, sent_to) == ("POST", f"/apis/v2beta1/{path}")
    assert authorization == "Bearer a-token"
    assert body == {**json.loads(printed), "experiment_id": "experiment-1"}


@pytest.mark.parametrize(
    ("command", "noun"),
    [(("submit",), "run"), (("schedule", "--cron", "0 3 * * *"), "recurring run")],
)
def test_a_login_page_is_no_answer(with_client, api, command, noun):
    api.page = "<html>Sign in</html>"
    code, out, err = with_client(*command, *TARGET, "--host", api.host)
    assert (code, out.split()) == (2, ["compiling"])
    assert err == (
        f"pebr: Kubeflow at {api.host} must accept the {noun}. Received: an answer without an id, "
        "as from a login page; --token-file may be missing.\n"
    )


def test_a_rejected_run_is_one_sentence(with_client, api):
    api.rejection = "the namespace has no quota"
    code, out, err = with_client("submit", *TARGET, "--host", api.host)
    assert (code, out.split()) == (2, ["compiling"])
    assert err == (
        f"pebr: Kubeflow at {api.host} must accept the run. Received: 400 the namespace has no "
        "quota.\n"
    )
