"""The DAG file in real Airflow: parsed by versions 2 and 3, and run task by task by version 2."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_world import write_world

from pebr_tf.config import Config
from pipeline.airflow_dag import compile_dag
from pipeline.cron import read_cron

ROOT = Path(__file__).parents[2]
# The newest of each major version that this machine's Python runs, with the packages of its time.
AIRFLOW = {"2.10.5": "2025-03-15", "3.1.8": "2026-03-15"}
POD = "apache-airflow-providers-cncf-kubernetes"
# Prints what Airflow makes of a file; of a pod also what it would ask Kubernetes for.
READ = """
import json, runpy, sys
dag = runpy.run_path(sys.argv[1])["task"].dag
tasks = dag.topological_sort()
found = {
    "dag": [dag.dag_id, dag.timetable.summary, str(dag.timezone), dag.max_active_runs],
    "tasks": [task.task_id for task in tasks],
    "after": [sorted(task.upstream_task_ids) for task in tasks],
}
if hasattr(tasks[0], "build_pod_request_obj"):
    (task,) = (task for task in tasks if task.task_id == "Trainer")
    found["pod"] = task.build_pod_request_obj().to_dict()
print(json.dumps(found, default=str))
"""
# A cluster that nothing is sent to.
CLUSTER = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {}}],
}
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module", params=AIRFLOW)
def airflow(request, environment_with):
    """The `bin` folder of an environment with Airflow."""
    packages = (f"apache-airflow=={request.param}", POD)
    return environment_with("--exclude-newer", AIRFLOW[request.param], *packages) / "bin"


def environment(folder):
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "KUBECONFIG": str(folder / "kubernetes.json"),
    }


def run(folder, *command):
    options = {"env": environment(folder), "text": True}
    done = subprocess.run(command, cwd=folder, capture_output=True, **options)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


def write_dag(folder, config, cron=None):
    text, tasks = compile_dag(config, cron)
    (folder / "dags").mkdir(exist_ok=True)
    (folder / "dags/pebr.py").write_text(text, encoding="utf-8")
    return tasks


def read_dag(folder, airflow):
    out = run(folder, airflow / "python", "-c", READ, folder / "dags/pebr.py")
    return json.loads(out.splitlines()[-1])


@pytest.fixture
def config(tmp_path):
    """The tiny world with absolute paths."""
    write_world(tmp_path)
    config = Config.load(tmp_path / "pebr.yaml")
    keys = ("data.click_log", "data.catalogue", "pipeline.root", "pipeline.releases")
    return config.replace_all({key: f"{tmp_path}/{config.value_at(key)}" for key in keys})


def test_airflow_reads_the_file(airflow, config, tmp_path):
    tasks = write_dag(tmp_path, config, read_cron("0 3 * * mon-fri", "Europe/Berlin"))
    assert read_dag(tmp_path, airflow) == {
        "dag": ["pebr", "0 3 * * MON-FRI", "Europe/Berlin", 1],
        "tasks": tasks,
        "after": [[], *([task] for task in tasks[:-1])],
    }


def test_airflow_makes_pods(airflow, tmp_path):
    config = Config.load(ROOT / "examples/airflow.yaml")
    write_dag(tmp_path, config)
    (tmp_path / "kubernetes.json").write_text(json.dumps(CLUSTER))
    pod = read_dag(tmp_path, airflow)["pod"]
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["command"]) == (config.cloud.image, ["sh", "-c"])
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert [mount["mount_path"] for mount in container["volume_mounts"]] == ["/data"]
    values = {each["name"]: each["value"] for each in container["env"]}
    assert config.to_yaml(comments=False) in values["PEBR_CONFIG"]
    assert {"AWS_ENDPOINT_URL", "PEBR_METADATA_PASSWORD"} <= values.keys()


def test_airflow_runs_the_tasks_to_a_release(airflow, config, tmp_path):
    if not any(airflow.parent.glob("lib/python*/site-packages/apache_airflow-2*")):
        pytest.skip("one version is enough")
    tasks = write_dag(tmp_path, config)
    run(tmp_path, airflow / "airflow", "db", "migrate")
    run(tmp_path, airflow / "airflow", "dags", "test", "pebr", "2026-11-18")
    assert {path.name for path in (tmp_path / "run/artifacts").iterdir()} >= set(tasks)
    (release,) = (tmp_path / "releases").glob("[0-9]*")
    query = ("query", "--release", release, "--limit", "3", "huawei phone")
    assert "huawei phone" in run(tmp_path, "pebr", *query)
