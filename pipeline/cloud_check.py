"""Finds what prevents a configuration from running on Vertex AI before anything is sent."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from pebr_tf.config import Config, ConfigError
from pebr_tf.config.error import shown
from pebr_tf.errors import UserError

WHERE = "to run on Vertex AI"
FILES, TABLES = "gs://", "bigquery://"
# Paths that every component and worker must reach, and their allowed schemes.
PATHS = {
    "pipeline.root": (FILES,),
    "pipeline.releases": (FILES,),
    "data.click_log": (FILES, TABLES),
    "data.catalogue": (FILES, TABLES),
    "data.schema": (FILES,),
}
_NETWORK = re.compile(r"projects/[^/\s]+/global/networks/[^/\s]+")
_BUCKET = re.compile(r"gs://[a-z0-9][a-z0-9._-]+[a-z0-9](/.*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def problems(config: Config) -> list[str]:
    """Every setting that Vertex AI, or a component there, would reject; one sentence each."""
    found = [*_names(config), *_paths(config), *_network(config), *_tables(config), *_beam(config)]
    return [str(problem) for problem in found]


def credential_problems() -> list[str]:
    """Why this machine has no usable credentials: one sentence, or none."""
    from pipeline.vertex import default_credentials

    try:
        default_credentials()
    except UserError as error:
        return [str(error)]
    return []


def require_cloud(config: Config) -> None:
    """Checks that a configuration can run on Vertex AI.

    Raises:
      UserError: It cannot. The text has the first problem and the number of others.
    """
    found = problems(config)
    if not found:
        return
    first, *others = found
    if others:
        more = f"(and {len(others)} more: pebr check-cloud --config FILE lists them)"
        first = f"{first.removesuffix('.')} {more}."
    raise UserError(first)


def _names(config: Config) -> Iterator[ConfigError]:
    wanted = {"project": "a project", "region": "a region", "image": "an image"}
    for name, noun in wanted.items():
        if getattr(config.cloud, name) is None:
            yield ConfigError(f"cloud.{name}", f"name {noun} {WHERE}", shown(None))
    if config.cloud.region is not None:
        # Seconds to import.
        from google.cloud.aiplatform.constants.base import SUPPORTED_REGIONS

        if config.cloud.region not in SUPPORTED_REGIONS:
            yield ConfigError(
                "cloud.region", "be a region of Vertex AI", shown(config.cloud.region)
            )


def _paths(config: Config) -> Iterator[ConfigError]:
    for key, schemes in PATHS.items():
        path = config.value_at(key)
        if path is None or (TABLES in schemes and path.startswith(TABLES)):
            continue
        if not path.startswith(FILES):
            away = _SCHEME.match(path) and not path.startswith("file://")
            reason = "which components there do not reach" if away else "a path of this machine"
        elif not _BUCKET.fullmatch(path):
            reason = "which names no bucket"
        else:
            continue
        yield ConfigError(key, f"be on {' or '.join(schemes)} {WHERE}", f"{shown(path)}, {reason}")


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
