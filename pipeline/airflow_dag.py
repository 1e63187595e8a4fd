"""Compiles the pipeline into a DAG file for Airflow 2 and 3; see docs/airflow.md."""

import functools
import pprint
from pathlib import Path
from typing import Any

import jinja2

from pebr_tf.config import Config
from pebr_tf.environment import PASSWORD
from pipeline.cloud_check import MOUNT, submission_target
from pipeline.cron import Cron
from pipeline.kubeflow_spec import SECRET_KEYS, node_labels, variables_of
from pipeline.kubeflow_v2_runner import machine_of
from pipeline.pipeline import Options, components_of


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
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    # Wide enough for one command per line.
    environment.filters["shown"] = functools.partial(pprint.pformat, width=200, sort_dicts=False)
    text = environment.get_template("airflow_dag.py.jinja").render(
        title=dag_id,
        config=config.to_yaml(comments=False).replace("\\", "\\\\").replace('"""', '\\"""'),
        tasks=tasks,
        pods={name: _pod(config, name) for name in tasks} if has_pods else {},
        schedule=cron and " ".join(cron.fields),
        time_zone=(cron and cron.time_zone) or "UTC",
        # A submission that has timed out may have been accepted.
        retries=config.cloud.retries if target is None else 0,
        pool=config.airflow.pool,
    )
    return text, list(tasks)


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
