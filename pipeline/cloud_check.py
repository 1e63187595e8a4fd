"""Finds what prevents a configuration from running on Vertex AI, Kubeflow or Airflow."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pebr_tf.config import Config, ConfigError, Machine
from pebr_tf.config.error import shown
from pebr_tf.errors import UserError
from pebr_tf.files import is_remote

TABLES = "bigquery://"


@dataclass(frozen=True)
class Target:
    """Where a compiled pipeline runs: its name in messages, and the schemes of its files."""

    title: str
    schemes: tuple[str, ...]


TARGETS = {
    "vertex": Target("Vertex AI", ("gs://",)),
    "kubeflow": Target("Kubeflow", ("s3://", "minio://", "gs://")),
    "airflow": Target("Airflow", ("s3://", "minio://", "gs://")),
}
# Where pods of Airflow mount their volume.
MOUNT = "/data"
# Paths that every component and worker must reach, and whether each may be a BigQuery source.
PATHS = {
    "pipeline.root": False,
    "pipeline.releases": False,
    "data.click_log": True,
    "data.catalogue": True,
    "data.schema": False,
}
_NETWORK = re.compile(r"projects/[^/\s]+/global/networks/[^/\s]+")
_BUCKET = re.compile(r"[a-z0-9]+://[a-z0-9][a-z0-9._-]+[a-z0-9](/.*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def problems(config: Config, target: str = "vertex") -> list[str]:
    """Every setting that a target, or a component there, would reject; one sentence each."""
    if target == "airflow":
        if (submitted := submission_target(config)) is not None:
            return problems(config, submitted)
        return list(map(str, _on_airflow(config)))
    on_vertex = target == "vertex"
    found = [
        *_names(config, target),
        *_paths(config, TARGETS[target]),
        *(_network(config) if on_vertex else ()),
        *_tables(config),
        *(_beam(config) if on_vertex else _one_process(config, target)),
        *(() if on_vertex else _pods(config)),
        *_accelerators(config, target),
    ]
    return [str(problem) for problem in found]


def submission_target(config: Config) -> str | None:
    """Where a task of Airflow submits the run; None if its tasks run the components."""
    if not is_remote(config.pipeline.root):
        return None
    return "vertex" if config.kubeflow.host is None else "kubeflow"


def credential_problems() -> list[str]:
    """Why this machine has no usable credentials: one sentence, or none."""
    from pipeline.vertex import default_credentials

    try:
        default_credentials()
    except UserError as error:
        return [str(error)]
    return []


def require_cloud(config: Config, target: str = "vertex") -> None:
    """Checks that a configuration can run on a target.

    Raises:
      UserError: It cannot. The text has the first problem and the number of others.
    """
    found = problems(config, target)
    if not found:
        return
    first, *others = found
    if others:
        option = "" if target == "vertex" else f" --target {target}"
        more = f"(and {len(others)} more: pebr check-cloud{option} --config FILE lists them)"
        first = f"{first.removesuffix('.')} {more}."
    raise UserError(first)


def _names(config: Config, target: str) -> Iterator[ConfigError]:
    wanted = {"project": "a project", "region": "a region", "image": "an image"}
    if target != "vertex":
        wanted.pop("region")
        if target == "airflow" or not _bills_a_query(config):
            wanted.pop("project")
    for name, noun in wanted.items():
        if getattr(config.cloud, name) is None:
            where = f"to run on {TARGETS[target].title}"
            yield ConfigError(f"cloud.{name}", f"name {noun} {where}", shown(None))
    if target == "vertex" and config.cloud.region is not None:
        # Seconds to import.
        from google.cloud.aiplatform.constants.base import SUPPORTED_REGIONS

        if config.cloud.region not in SUPPORTED_REGIONS:
            yield ConfigError(
                "cloud.region", "be a region of Vertex AI", shown(config.cloud.region)
            )


def _paths(config: Config, target: Target) -> Iterator[ConfigError]:
    for key, may_be_a_table in PATHS.items():
        path = config.value_at(key)
        if path is None or (target is TARGETS["airflow"] and not is_remote(path)):
            continue
        if may_be_a_table and path.startswith(TABLES):
            continue
        if not path.startswith(target.schemes):
            away = _SCHEME.match(path) and not path.startswith("file://")
            reason = "which components there do not reach" if away else "a path of this machine"
        elif not _BUCKET.fullmatch(path):
            reason = "which names no bucket"
        elif key.startswith("pipeline.") and "?" in path:
            reason = "with options, which components do not read"
        else:
            continue
        *others, last = (*target.schemes, TABLES) if may_be_a_table else target.schemes
        allowed = f"{', '.join(others)} or {last}" if others else last
        requirement = f"be on {allowed} to run on {target.title}"
        yield ConfigError(key, requirement, f"{shown(path)}, {reason}")


def _on_airflow(config: Config) -> Iterator[ConfigError]:
    """Every task begins in a folder of its own, and pods share nothing but the volume."""
    has_pods = config.airflow.volume_claim is not None
    place = f"below {MOUNT}, the volume of the pods," if has_pods else "an absolute path"
    for key in PATHS:
        path = config.value_at(key)
        if path is None or is_remote(path):
            continue
        if not path.startswith(f"{MOUNT}/" if has_pods else "/"):
            yield ConfigError(key, f"be {place} to run on Airflow", shown(path))
    yield from _paths(config, TARGETS["airflow"])
    yield from _tables(config)
    yield from _one_process(config, "airflow")
    if has_pods:
        yield from _names(config, "airflow")
        yield from _pods(config)
        yield from _accelerators(config, "airflow")


def _one_process(config: Config, target: str) -> Iterator[ConfigError]:
    """A component on Kubeflow or Airflow is one process: neither Dataflow nor a CustomJob."""
    where = f"to run on {TARGETS[target].title}"
    if config.cloud.dataflow.enabled:
        yield ConfigError("cloud.dataflow.enabled", f"be false {where}", shown(True))
    workers = config.cloud.training_job.workers
    if workers > 1:
        yield ConfigError("cloud.training_job.workers", f"be 1 {where}", shown(workers))


def _pods(config: Config) -> Iterator[ConfigError]:
    """What pods of Kubernetes have from the configuration only."""
    paths = [config.value_at(key) or "" for key in PATHS]
    variables = config.kubeflow.environment
    endpoint = any(each.startswith("AWS_ENDPOINT_URL=") for each in variables)
    if not endpoint and any(path.startswith("minio://") for path in paths):
        requirement = "have AWS_ENDPOINT_URL, the address of the server of minio:// paths"
        yield ConfigError("kubeflow.environment", requirement, shown(variables))


def _bills_a_query(config: Config) -> bool:
    """Whether BigQuery needs a project, which Beam arguments may name, too."""
    sources = (config.data.click_log, config.data.catalogue or "")
    is_query = any(source.startswith(TABLES) and len(source.split()) > 1 for source in sources)
    return is_query and not any(each.startswith("--project") for each in config.pipeline.beam_args)


def _accelerators(config: Config, target: str) -> Iterator[ConfigError]:
    """Vertex AI has names of its own, Kubernetes those of its resources."""
    form = "name an accelerator by its resource in Kubernetes, such as nvidia.com/gpu"
    if target == "vertex":
        form = "name an accelerator of Vertex AI, such as NVIDIA_L4"
    for component, text in config.cloud.resources.to_mapping().items():
        name = Machine.of(text).accelerator
        if name is not None and ("/" in name) != (target != "vertex"):
            yield ConfigError(f"cloud.resources.{component}", form, shown(text))


def _network(config: Config) -> Iterator[ConfigError]:
    network = config.cloud.network
    if network is not None and not _NETWORK.fullmatch(network):
        yield ConfigError(
            "cloud.network",
            "be a whole name, such as projects/12345/global/networks/main",
            shown(network),
        )


def _tables(config: Config) -> Iterator[ConfigError]:
    """BigQuery sources must be a table or a query."""
    for key in ("data.click_log", "data.catalogue"):
        source = config.value_at(key)
        if source is None or not source.startswith(TABLES):
            continue
        words = source.removeprefix(TABLES).split()
        parts = "".join(words).split(".")
        if len(words) <= 1 and not (len(parts) == 3 and all(parts)):
            yield ConfigError(
                key, f"be {TABLES}project.dataset.table or {TABLES} and a query", shown(source)
            )


def _beam(config: Config) -> Iterator[ConfigError]:
    """With Dataflow enabled, Beam arguments must not set the runner or the locations of files."""
    if not config.cloud.dataflow.enabled:
        return
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("runner", "temp_location", "staging_location"):
        parser.add_argument(f"--{name}", nargs="?", const="")
    given, _ = parser.parse_known_args(config.pipeline.beam_args)
    for name, value in vars(given).items():
        if value is not None:
            yield ConfigError(
                "pipeline.beam_args",
                f"leave --{name} to cloud.dataflow, which is enabled",
                shown(value),
            )
