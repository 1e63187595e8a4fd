"""Training with several workers: the Trainer starts a CustomJob on Vertex AI and waits for it.

A component of a pipeline is one container. Vertex AI gives the workers of a CustomJob a TF_CONFIG
that lists all of them, and TFX's Trainer for Vertex AI runs `run_fn` in each.
"""

from __future__ import annotations

from typing import Any

from tfx.components.trainer.component import Trainer
from tfx.extensions.google_cloud_ai_platform.constants import ENABLE_VERTEX_KEY, VERTEX_REGION_KEY
from tfx.extensions.google_cloud_ai_platform.trainer.component import Trainer as JobTrainer
from tfx.extensions.google_cloud_ai_platform.trainer.executor import TRAINING_ARGS_KEY

from pebr_tf.config import Cloud, Machine


def training_job(cloud: Cloud, custom: dict[str, Any], arguments: dict[str, Any]) -> Trainer:
    """The Trainer for several workers, with the custom_config of `run_fn` and other arguments."""
    settings = {
        **custom,
        ENABLE_VERTEX_KEY: True,
        VERTEX_REGION_KEY: cloud.region,
        TRAINING_ARGS_KEY: {"project": cloud.project, "job_spec": _job_spec(cloud)},
    }
    return JobTrainer(custom_config=settings, **arguments)


def _job_spec(cloud: Cloud) -> dict[str, Any]:
    machine = Machine.of(cloud.resources.trainer)
    machine_spec: dict[str, Any] = {"machine_type": cloud.training_job.machine_type}
    if machine.accelerator is not None:
        machine_spec["accelerator_type"] = machine.accelerator
        machine_spec["accelerator_count"] = machine.accelerators
    pools = [
        {
            "machine_spec": machine_spec,
            "replica_count": count,
            "container_spec": {"image_uri": cloud.image},
        }
        for count in (1, cloud.training_job.workers - 1)
    ]
    spec: dict[str, Any] = {
        "worker_pool_specs": pools,
        # One worker cannot restart alone: all continue from the last checkpoint.
        "scheduling": {"restart_job_on_worker_restart": True},
    }
    for key in ("service_account", "network"):
        if (value := getattr(cloud, key)) is not None:
            spec[key] = value
    return spec
