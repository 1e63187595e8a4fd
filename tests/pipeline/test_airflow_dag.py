"""The DAG file for Airflow, read with stand-ins for Airflow; tests/e2e reads it with Airflow."""

import runpy
import sys
from types import ModuleType, SimpleNamespace

import pytest

from pebr_tf.config import Config
from pipeline.airflow_dag import compile_dag
from pipeline.cloud_check import problems
from pipeline.cron import read_cron

EXAMPLE = "examples/airflow.yaml"
LOCAL = {
    "data.click_log": '/srv/it\'s "{{ the }}"\\log.csv',
    "data.catalogue": None,
    "pipeline.root": "/srv/run",
    "pipeline.releases": "/srv/releases",
}
pytestmark = pytest.mark.usefixtures("same_code")


class Task(SimpleNamespace):
    def __rshift__(self, other):
        other.after = self.task_id


class Dag:
    """Takes the place of Airflow's DAG, and collects the tasks."""

    def __init__(self, **given):
        self.given, self.tasks = given, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Executes a DAG file; returns the DAG's arguments and the tasks."""
    dags, tasks = [], []

    def operator(**given):
        tasks.append(Task(after=None, **given))
        return tasks[-1]

    names = {
        "pendulum": {"datetime": lambda *date, tz: (*date, tz)},
        "airflow": {"DAG": lambda **given: dags.append(Dag(**given)) or dags[-1]},
        "airflow.providers.standard.operators.bash": {"BashOperator": operator},
        "airflow.providers.cncf.kubernetes.operators.pod": {"KubernetesPodOperator": operator},
    }
    for name, content in names.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)

    def read_file(text):
        (tmp_path / "dag.py").write_text(text, encoding="utf-8")
        runpy.run_path(str(tmp_path / "dag.py"))
        return dags[-1].given, tasks

    return read_file


def config_in(text):
    return Config.from_yaml(text.removeprefix("{% raw %}").removesuffix("{% endraw %}"))


@pytest.mark.parametrize("index_only", [False, True])
def test_one_task_per_component_one_after_the_other(read, index_only):
    config = Config().replace_all(LOCAL)
    cron = read_cron("0 3 * * mon-fri", "Europe/Berlin")
    text, names = compile_dag(config, cron, index_only=index_only, span=7)
    dag, tasks = read(text)
    assert dag["dag_id"] == ("pebr-index-only" if index_only else "pebr")
    assert dag["schedule"] == "0 3 * * MON-FRI"
    assert dag["start_date"][-1] == "Europe/Berlin"
    assert (dag["catchup"], dag["max_active_runs"]) == (False, 1)
    assert dag["default_args"]["retries"] == 2
    assert dag["default_args"]["pool"] == "default_pool"
    assert [task.task_id for task in tasks] == names
    assert [task.after for task in tasks] == [None, *names[:-1]]
    assert ("Trainer" in names) == (not index_only)
    options = " --index-only --span 7" if index_only else " --span 7"
    # Airflow names the runs of all DAGs alike, by their time.
    name = f'"{dag["dag_id"]}.{{{{ run_id }}}}"'
    assert tasks[1].bash_command == (
        f'printf %s "$PEBR_CONFIG" | pebr run --only StatisticsGen --run-id {name}'
        f"{options} --config /dev/stdin"
    )
    assert tasks[1].append_env
    assert config_in(tasks[1].env["PEBR_CONFIG"]) == config


def test_pods(read):
    config = Config.load(EXAMPLE)
    dag, tasks = read(compile_dag(config, None)[0])
    assert dag["default_args"]["pool"] == "shop-search"
    assert (dag["schedule"], dag["start_date"][-1]) == (None, "UTC")
    (trainer,) = (task for task in tasks if task.task_id == "Trainer")
    assert trainer.startup_timeout_seconds == 1800
    assert trainer.cmds == ["sh", "-c"]
    assert "pebr run --only Trainer " in trainer.arguments[0]
    assert config_in(trainer.env_vars["PEBR_CONFIG"]) == config
    pod = trainer.pod_template_dict
    (container,) = pod["spec"].pop("containers")
    assert pod == {
        "metadata": {"namespace": "search"},
        "spec": {
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "pebr-data"}}],
            "serviceAccountName": "pebr",
            "securityContext": {"fsGroup": 65532},
        },
    }
    keys = {"accesskey": "AWS_ACCESS_KEY_ID", "secretkey": "AWS_SECRET_ACCESS_KEY"}
    limits = {"cpu": "16", "memory": "64G", "nvidia.com/gpu": "1"}
    assert container == {
        "name": "base",
        "image": "registry.example.org/pebr/pebr:1-gpu",
        "env": [
            {"name": "AWS_ENDPOINT_URL", "value": "http://minio.search:9000"},
            *(
                {
                    "name": name,
                    "valueFrom": {"secretKeyRef": {"name": "pebr", "key": key, "optional": True}},
                }
                for key, name in {**keys, "metadata-password": "PEBR_METADATA_PASSWORD"}.items()
            ),
        ],
        "resources": {"requests": limits, "limits": limits},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }


@pytest.mark.parametrize("target", ["vertex", "kubeflow"])
def test_a_remote_root_is_submitted(read, target):
    dag, (task,) = read(compile_dag(Config.load(f"examples/{target}.yaml"), None)[0])
    assert task.task_id == "submit"
    assert dag["default_args"]["retries"] == 0
    assert f" | pebr submit --target {target} --config /dev/stdin" in task.bash_command


def test_problems():
    assert problems(Config(), "airflow") == [
        f"{key} must be an absolute path to run on Airflow. Received: {value!r}."
        for key, value in {
            "pipeline.root": "run",
            "pipeline.releases": "releases",
            "data.click_log": "data/clicks/*",
            "data.catalogue": "data/catalogue/*",
        }.items()
    ]
    changes = {
        "airflow.volume_claim": "pebr",
        "cloud.resources.trainer": "4 cpu, 16 GB, 1 NVIDIA_L4",
    }
    assert problems(Config().replace_all({**LOCAL, **changes}), "airflow")[1:] == [
        "pipeline.releases must be below /data, the volume of the pods, to run on Airflow. "
        "Received: '/srv/releases'.",
        "data.click_log must be below /data, the volume of the pods, to run on Airflow. Received: "
        "'/srv/it\\'s \"{{ the }}\"\\\\log.csv'.",
        "cloud.image must name an image to run on Airflow. Received: null.",
        "cloud.resources.trainer must name an accelerator by its resource in Kubernetes, such as "
        "nvidia.com/gpu. Received: '4 cpu, 16 GB, 1 NVIDIA_L4'.",
    ]
    changes = {
        "pipeline.releases": "hdfs://name/releases",
        "data.click_log": "ftp://name/clicks",
        "data.catalogue": "bigquery://a.b",
        "cloud.dataflow.enabled": True,
        "training.strategy": "multi_worker",
        "cloud.training_job.workers": 2,
    }
    ignored = [
        "pipeline.releases must be on s3://, minio:// or gs:// to run on Airflow. Received: "
        "'hdfs://name/releases', which components there do not reach.",
        "data.click_log must be on s3://, minio://, gs:// or bigquery:// to run on Airflow. "
        "Received: 'ftp://name/clicks', which components there do not reach.",
        "data.catalogue must be bigquery://project.dataset.table or bigquery:// and a query. "
        "Received: 'bigquery://a.b'.",
        "cloud.dataflow.enabled must be false to run on Airflow. Received: true.",
        "cloud.training_job.workers must be 1 to run on Airflow. Received: 2.",
    ]
    assert problems(Config().replace_all({**LOCAL, **changes}), "airflow") == ignored
    example = Config.load(EXAMPLE)
    assert problems(example, "airflow") == []
    # Airflow's workers have variables of their own.
    minio = {"pipeline.releases": "minio://shop/releases", "kubeflow.environment": []}
    assert problems(Config().replace_all({**LOCAL, **minio}), "airflow") == []
    assert problems(example.replace_all(minio), "airflow") == [
        "kubeflow.environment must have AWS_ENDPOINT_URL, the address of the server of minio:// "
        "paths. Received: []."
    ]
    remote = Config().replace("pipeline.root", "gs://shop/run")
    assert problems(remote, "airflow") == problems(remote, "vertex")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--cron", "0 3 * * *"),
            "--cron must come with --target airflow. Received: 0 3 * * *.",
        ),
        (
            ("--target", "airflow", "--time-zone", "Europe/Berlin"),
            "--time-zone must come with --cron. Received: Europe/Berlin.",
        ),
        (
            ("--target", "airflow", "--span", "2026-13-01"),
            "--span must be a number, or a date such as 2026-11-16. Received: '2026-13-01'.",
        ),
    ],
)
def test_mistakes(options, expected, pebr):
    assert pebr("compile", "--config", EXAMPLE, *options) == (2, "", f"pebr: {expected}\n")


def test_a_span_may_be_a_date(tmp_path, pebr):
    out = tmp_path / "dag.py"
    options = ("--target", "airflow", "--span", "2026-11-16", "--out", out)
    code, told, _ = pebr("compile", "--config", EXAMPLE, *options)
    assert code == 0
    assert told.startswith(f"Wrote {out}: 11 tasks, image registry.")
    assert out.read_text().count("--span 20773") == 11
