"""Compiles the pipeline for Vertex AI with KubeflowV2DagRunner.

The runner of TFX supports neither retries nor drivers other than that of its own ExampleGen; both
are added to the compiled job. The same configuration and code give the same bytes.
"""

import json
from typing import Any

from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner import (
    KubeflowV2DagRunner,
    KubeflowV2DagRunnerConfig,
)
from tfx.orchestration.pipeline import Pipeline

from components.click_log_example_gen.component import ClickLogExampleGen
from pebr_tf.config import Config, Machine
from pipeline.pipeline import NEVER_CACHED, Options, components_of

DRIVER = ("python", "-m", "components.click_log_example_gen.container_driver")
# Names in `cloud.resources` that differ from the name of the component.
RESOURCES = {"ImportSchemaGen": "schema_gen", "LastBlessedModel": "pusher"}
# A schema may have been edited, and pointers changed, without a trace in the cache key.
UNCACHED = ("ImportSchemaGen", "LastBlessedModel", NEVER_CACHED)
BACKOFF = {"backoffDuration": "60s", "backoffFactor": 2.0, "backoffMaxDuration": "1800s"}
ResourceSpec = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec


def compile_job(
    config: Config, *, index_only: bool = False, span: int | None = None
) -> dict[str, Any]:
    """The PipelineJob of a config, as JSON; `pipeline.cloud_check` checks its paths and names.

    `index_only` uses the last blessed model without training. Without a span, the job reads the
    latest when it runs.
    """
    cloud = config.cloud
    nodes = components_of(config, Options(index_only, span, cloud=True))
    for node in nodes:
        node.with_platform_config(_resources(config, node.id))
    pipeline = Pipeline(
        pipeline_name=config.pipeline.name,
        pipeline_root=config.pipeline.root,
        components=nodes,
        enable_cache=cloud.cache,
        beam_pipeline_args=beam_args(config),
    )
    runner = KubeflowV2DagRunner(
        KubeflowV2DagRunnerConfig(default_image=cloud.image, use_pipeline_spec_2_1=True)
    )
    # The runner writes maps in random order.
    job = json.loads(json.dumps(runner.run(pipeline, write_out=False), sort_keys=True))
    spec = job["pipelineSpec"]
    executors = spec["deploymentSpec"]["executors"]
    for node in nodes:
        task = spec["root"]["dag"]["tasks"][node.id]
        if cloud.retries:
            task["retryPolicy"] = {"maxRetryCount": cloud.retries, **BACKOFF}
        container = executors[f"{node.id}_executor"]["container"]
        if isinstance(node, ClickLogExampleGen):
            container["lifecycle"] = _driver_hook(container)
        if not isinstance(node, BaseBeamComponent):
            # TFX passes the arguments of Beam to all components.
            container["args"] = [
                each for each in container["args"] if each not in pipeline.beam_pipeline_args
            ]
        if node.id in UNCACHED:
            task.pop("cachingOptions", None)
    return job


def to_bytes(job: dict[str, Any]) -> bytes:
    return (json.dumps(job, indent=1, sort_keys=True) + "\n").encode()


def beam_args(config: Config) -> list[str]:
    """The Beam arguments of the configuration, and those of Dataflow if it is enabled."""
    cloud, flow = config.cloud, config.cloud.dataflow
    # BigQuery queries are billed to the project. The arguments of the configuration win.
    billed = () if cloud.project is None else (f"--project={cloud.project}",)
    arguments = [*billed, *config.pipeline.beam_args]
    if not flow.enabled:
        return arguments
    folder = f"{config.pipeline.root}/dataflow"
    arguments += [
        "--runner=DataflowRunner",
        f"--region={cloud.region}",
        f"--temp_location={folder}/temp",
        f"--staging_location={folder}/staging",
        # The image holds this code: nothing is shipped or installed.
        f"--sdk_container_image={cloud.image}",
        "--sdk_location=container",
        "--experiments=use_runner_v2",
        f"--machine_type={flow.machine_type}",
        f"--max_num_workers={flow.max_workers}",
        f"--disk_size_gb={flow.disk_gb}",
    ]
    if cloud.service_account is not None:
        arguments.append(f"--service_account_email={cloud.service_account}")
    if flow.subnetwork is not None:
        arguments.append(f"--subnetwork={flow.subnetwork}")
    if not flow.public_ips:
        arguments.append("--no_use_public_ips")
    return arguments


def machine_of(config: Config, component: str) -> Machine:
    # ClickLogExampleGen -> click_log_example_gen.
    words = "".join(f"_{each.lower()}" if each.isupper() else each for each in component)
    return Machine.of(getattr(config.cloud.resources, RESOURCES.get(component, words.lstrip("_"))))


def _resources(config: Config, component: str) -> Any:
    machine = machine_of(config, component)
    spec = ResourceSpec(cpu_limit=machine.cpu, memory_limit=machine.memory_gb)
    # With several workers, the accelerators are theirs: this container only waits.
    waits = component == "Trainer" and config.cloud.training_job.workers > 1
    if machine.accelerator is not None and not waits:
        spec.accelerator.type = machine.accelerator
        spec.accelerator.count = machine.accelerators
    return spec


def _driver_hook(container: dict[str, Any]) -> dict[str, Any]:
    """The command that runs before the cache check: the arguments without the executor's class."""
    arguments = container["args"]
    position = arguments.index("--executor_class_path")
    others = arguments[:position] + arguments[position + 2 :]
    return {"preCacheCheck": {"command": list(DRIVER), "args": others}}
