"""Runs a component in a pod of Kubeflow Pipelines: `python -m pipeline.kubeflow_entry ARGUMENTS`.

The arguments are those of TFX's entry point for Vertex AI, which this module calls. Three things
differ on Kubeflow. Its driver gives input artifacts without their types. Its launcher copies
artifacts between an object store and local folders, so a component must use the local paths and
report the addresses. And its metadata has no null.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)

TASK, SPEC = "--json_serialized_invocation_args", "--json_serialized_inputs_spec_args"
# Where the launcher puts the files of an object store.
LOCAL = {"gs://": "/gcs/", "s3://": "/s3/", "minio://": "/minio/"}


def to_local(task: dict[str, Any], spec: dict[str, Any]) -> dict[str, str]:
    """Sets types and local paths in the executor input of a task; returns the address of each path.

    `spec` is the component's ComponentInputsSpec.
    """
    addresses = {}
    types = {key: each["artifactType"] for key, each in spec.get("artifacts", {}).items()}
    for key, artifact in (*_artifacts(task, "inputs"), *_artifacts(task, "outputs")):
        if not artifact.get("type"):
            artifact["type"] = types[key]
        address = artifact["uri"]
        for scheme, folder in LOCAL.items():
            if address.startswith(scheme):
                artifact["uri"] = folder + address.removeprefix(scheme)
        artifact["uri"] = artifact.pop("customPath", None) or artifact["uri"]
        addresses[artifact["uri"]] = address
    return addresses


def to_remote(output: dict[str, Any], addresses: dict[str, str]) -> None:
    """Sets the addresses in the executor output, and removes metadata without a value."""
    for _, artifact in _artifacts({"outputs": output}, "outputs"):
        artifact["uri"] = addresses.get(artifact["uri"], artifact["uri"])
        metadata = artifact.get("metadata", {})
        artifact["metadata"] = {key: value for key, value in metadata.items() if value is not None}


def _artifacts(task: dict[str, Any], side: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, listed in task.get(side, {}).get("artifacts", {}).items():
        for artifact in listed.get("artifacts", ()):
            yield key, artifact


def main(arguments: list[str]) -> None:
    """Runs the component; a UserError ends it with one sentence."""
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor as tfx

    from components import s3_files  # noqa: F401  (a reviewed schema may be on s3://)
    from pipeline.local_runner import find_user_error

    task, spec = (json.loads(arguments[arguments.index(name) + 1]) for name in (TASK, SPEC))
    addresses = to_local(task, spec)
    arguments[arguments.index(TASK) + 1] = json.dumps(task)
    try:
        tfx.main(tfx._parse_flags(arguments))
    except Exception as error:
        user_error = find_user_error(error, Path("/"))
        if user_error is None:
            raise
        sys.exit(f"pebr: {user_error}")
    path = Path(task["outputs"]["outputFile"])
    output = json.loads(path.read_text(encoding="utf-8"))
    to_remote(output, addresses)
    path.write_text(json.dumps(output), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
