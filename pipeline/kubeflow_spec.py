"""Compiles the pipeline for open-source Kubeflow Pipelines: a PipelineSpec and its Kubernetes part.

The job for Vertex AI is the source. What Kubeflow ignores or reads otherwise is replaced:

- The entry point is `pipeline.kubeflow_entry`.
- There is no hook before the cache check, so ClickLogExampleGen is never cached. It finds the
  latest span when it runs.
- The labels of nodes and the secret are in a second document.
"""

from typing import Any

import yaml

from pebr_tf.config import Config, Kubeflow
from pipeline.kubeflow_v2_runner import compile_job

ENTRY = ("python", "-m", "pipeline.kubeflow_entry")
# The keys of Kubeflow's own secret for MinIO, and the variables of Amazon's tools.
SECRET_KEYS = {"accesskey": "AWS_ACCESS_KEY_ID", "secretkey": "AWS_SECRET_ACCESS_KEY"}


def compile_documents(
    config: Config, *, index_only: bool = False, span: int | None = None
) -> list[dict[str, Any]]:
    """The PipelineSpec, and if pods need more than Kubeflow's defaults, the PlatformSpec.

    `pipeline.cloud_check` checks the paths and names of the config. The options are those of
    `compile_job`.
    """
    spec = compile_job(config, index_only=index_only, span=span)["pipelineSpec"]
    spec["defaultPipelineRoot"] = config.pipeline.root
    spec["root"]["dag"]["tasks"]["ClickLogExampleGen"].pop("cachingOptions", None)
    executors = spec["deploymentSpec"]["executors"]
    pods = {}
    for name, executor in executors.items():
        container = executor["container"]
        container["command"] = list(ENTRY)
        container.pop("lifecycle", None)
        if config.kubeflow.environment:
            container["env"] = variables_of(config.kubeflow)
        pods[name] = _pod(config.kubeflow, "accelerator" in container["resources"])
    if not any(pods.values()):
        return [spec]
    return [spec, {"platforms": {"kubernetes": {"deploymentSpec": {"executors": pods}}}}]


def to_yaml(documents: list[dict[str, Any]]) -> str:
    return str(yaml.safe_dump_all(documents, allow_unicode=True, width=100))


def variables_of(kubeflow: Kubeflow) -> list[dict[str, Any]]:
    pairs = (each.split("=", 1) for each in kubeflow.environment)
    return [{"name": name, "value": value} for name, value in pairs]


def node_labels(kubeflow: Kubeflow, has_accelerator: bool) -> dict[str, str]:
    labels = kubeflow.node_selector + (kubeflow.accelerator_selector if has_accelerator else ())
    return dict(label.split("=", 1) for label in labels)


def _pod(kubeflow: Kubeflow, has_accelerator: bool) -> dict[str, Any]:
    pod: dict[str, Any] = {}
    if labels := node_labels(kubeflow, has_accelerator):
        pod["nodeSelector"] = {"labels": labels}
    if kubeflow.secret is not None:
        variables = [{"secretKey": key, "envVar": name} for key, name in SECRET_KEYS.items()]
        pod["secretAsEnv"] = [{"secretName": kubeflow.secret, "keyToEnv": variables}]
    return pod
