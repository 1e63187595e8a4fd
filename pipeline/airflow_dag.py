"""Compiles the pipeline into a DAG file for Airflow 2 and 3.

A task is one command of `pebr`, on a worker or in a pod, so Airflow's environment needs none of
this project's packages. The tasks run one after the other, because one process at a time uses a
root. A run in the metadata has the names of the DAG and of Airflow's run, because the runs of two
DAGs with one schedule have the same name in Airflow.
"""

import pprint
import string
from typing import Any

from pebr_tf.config import Config
from pebr_tf.environment import PASSWORD
from pipeline.cloud_check import MOUNT, submission_target
from pipeline.cron import Cron
from pipeline.kubeflow_spec import SECRET_KEYS, node_labels, variables_of
from pipeline.kubeflow_v2_runner import machine_of
from pipeline.pipeline import Options, components_of

_FILE = string.Template('''\
"""The pipeline $title for Airflow, written by `pebr compile --target airflow`."""

import datetime

import pendulum
from airflow import DAG

$imports

# As it was when this file was written: compile again after a change.
CONFIG = """\
$config"""
TASKS = $tasks
PODS = $pods
# Airflow fills in templates in all texts of a task.
RAW_CONFIG = "{% raw %}" + CONFIG + "{% endraw %}"

with DAG(
    dag_id=$dag_id,
    schedule=$schedule,
    start_date=pendulum.datetime(2026, 1, 1, tz=$time_zone),
    catchup=False,
    max_active_runs=1,
    default_args={
        "retries": $retries,
        "retry_delay": datetime.timedelta(minutes=1),
        "retry_exponential_backoff": True,
        "pool": $pool,
    },
):
    previous = None
    for name, arguments in TASKS.items():
        command = f'printf %s "$$PEBR_CONFIG" | pebr {arguments} --config /dev/stdin'
        task = $operator
        if previous is not None:
            previous >> task
        previous = task
''')
_BASH_IMPORT = """\
try:
    from airflow.providers.standard.operators.bash import BashOperator
except ImportError:  # Airflow 2
    from airflow.operators.bash import BashOperator"""
_BASH = """BashOperator(
            task_id=name,
            bash_command=command,
            env={"PEBR_CONFIG": RAW_CONFIG},
            append_env=True,
        )"""
_POD_IMPORT = "from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator"
_POD = """KubernetesPodOperator(
            task_id=name,
            cmds=["sh", "-c"],
            arguments=[command],
            env_vars={"PEBR_CONFIG": RAW_CONFIG},
            pod_template_dict=PODS[name],
            # A new node and a large image take minutes.
            startup_timeout_seconds=1800,
        )"""


def compile_dag(
    config: Config, cron: Cron | None, *, index_only: bool = False, span: int | None = None
) -> tuple[str, list[str]]:
    """The text of the file, and its tasks; `pipeline.cloud_check` checks the configuration."""
    target = submission_target(config)
    dag_id = config.pipeline.name + ("-index-only" if index_only else "")
    options = (" --index-only" if index_only else "") + ("" if span is None else f" --span {span}")
    if target is not None:
        tasks = {"submit": f"submit --target {target}{options}"}
    else:
        tasks = {
            node.id: f'run --only {node.id} --run-id "{dag_id}.{{{{ run_id }}}}"{options}'
            for node in components_of(config, Options(index_only, span))
        }
    has_pods = target is None and config.airflow.volume_claim is not None
    text = _FILE.substitute(
        title=dag_id,
        dag_id=repr(dag_id),
        imports=_POD_IMPORT if has_pods else _BASH_IMPORT,
        config=config.to_yaml(comments=False).replace("\\", "\\\\").replace('"""', '\\"""'),
        tasks=_shown(tasks),
        pods=_shown({name: _pod(config, name) for name in tasks} if has_pods else {}),
        operator=_POD if has_pods else _BASH,
        schedule=repr(cron and " ".join(cron.fields)),
        time_zone=repr((cron and cron.time_zone) or "UTC"),
        # A submission that has timed out may have been accepted.
        retries=config.cloud.retries if target is None else 0,
        pool=repr(config.airflow.pool),
    )
    return text, list(tasks)


def _shown(value: Any) -> str:
    # Wide enough for one command per line.
    return pprint.pformat(value, width=200, sort_dicts=False)


def _pod(config: Config, component: str) -> dict[str, Any]:
    machine, kubeflow = machine_of(config, component), config.kubeflow
    limits = {"cpu": str(machine.cpu), "memory": f"{machine.memory_gb}G"}
    if machine.accelerator is not None:
        limits[machine.accelerator] = str(machine.accelerators)
    variables: list[dict[str, Any]] = variables_of(kubeflow)
    if kubeflow.secret is not None:
        keys = {**SECRET_KEYS, "metadata-password": PASSWORD}
        variables += [
            {
                "name": name,
                "valueFrom": {
                    "secretKeyRef": {"name": kubeflow.secret, "key": key, "optional": True}
                },
            }
            for key, name in keys.items()
        ]
    container = {
        "name": "base",
        "image": config.cloud.image,
        "env": variables,
        "resources": {"requests": limits, "limits": limits},
        "volumeMounts": [{"name": "data", "mountPath": MOUNT}],
    }
    claim = {"claimName": config.airflow.volume_claim}
    spec = {
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": claim}],
        "nodeSelector": node_labels(kubeflow, machine.accelerator is not None),
        "serviceAccountName": kubeflow.service_account,
        # The user of the image.
        "securityContext": {"fsGroup": 65532},
    }
    return {
        "metadata": {"namespace": kubeflow.namespace},
        "spec": {key: value for key, value in spec.items() if value},
    }
