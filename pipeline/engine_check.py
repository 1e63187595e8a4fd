"""Finds what keeps `pebr run` from working with an engine under Beam, before anything starts."""

import argparse
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from pebr_tf.config import Config, ConfigError
from pebr_tf.config.error import shown
from pebr_tf.files import is_remote
from pipeline.source import project_digest

# What workers read and write.
PATHS = ("pipeline.root", "data.click_log", "data.catalogue")
IN_PROCESS = ("", "directrunner", "direct", "bundlebaseddirectrunner", "switchingdirectrunner")
# TFX packs itself for workers unless it is told that they have it.
IMAGE = "sdk_container_image"
# What a runner, or an argument of Beam, needs beside it.
PARTNERS = {
    "portablerunner": ("job_endpoint", IMAGE),
    "flinkrunner": ("flink_master", "flink_version", IMAGE),
    "dataflowrunner": ("project", "region", "temp_location", IMAGE),
    "environment_type": ("environment_config",),
    "environment_config": ("environment_type",),
}
# Arguments that only one runner reads.
RUNNERS = {
    "job_endpoint": "PortableRunner",
    "environment_config": "PortableRunner",
    "flink_master": "FlinkRunner",
    "region": "DataflowRunner",
}
SECONDS = 5.0
# What a worker writes into the root, which it must reach.
ANSWER = ".worker_source"


def problems(config: Config) -> list[str]:
    """Every setting with which `pebr run` cannot work; one sentence each."""
    return [str(problem) for problem in _problems(config)]


def worker_problems(config: Config) -> list[str]:
    """Whether the workers of an engine have this version of the project: a job of one element."""
    if _arguments(config).get("runner", "").lower() in IN_PROCESS:
        return []
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    answer = Path(config.pipeline.root) / ANSWER
    answer.parent.mkdir(parents=True, exist_ok=True)
    answer.unlink(missing_ok=True)
    try:
        with beam.Pipeline(options=PipelineOptions(list(config.pipeline.beam_args))) as pipeline:
            _ = pipeline | beam.Create([str(answer)]) | beam.Map(_write_digest)
        there, here = answer.read_text(), project_digest()
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        return [f"Workers of Beam must run a job of one element. Received: {reason}"]
    finally:
        answer.unlink(missing_ok=True)
    wanted = "Workers of Beam must have the version of the project that is here"
    return [] if there == here else [f"{wanted}, source {here[:12]}. Received: {there[:12]}."]


def _write_digest(path: str) -> None:
    Path(path).write_text(project_digest())


def _arguments(config: Config) -> dict[str, str]:
    """The arguments of Beam that the checks know."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in {"runner", *RUNNERS, *sum(PARTNERS.values(), ())}:
        parser.add_argument(f"--{name}", nargs="?", const="")
    given = vars(parser.parse_known_args(list(config.pipeline.beam_args))[0])
    return {name: value for name, value in given.items() if value is not None}


def _problems(config: Config) -> Iterator[ConfigError]:
    root, given = config.pipeline.root, _arguments(config)
    if is_remote(root):
        wanted = "be a local folder for pebr run; pebr submit runs elsewhere"
        yield ConfigError("pipeline.root", wanted, shown(root))
    runner = given.get("runner", "")
    if runner.lower() not in IN_PROCESS:
        for key in PATHS:
            path = config.value_at(key)
            if path is not None and not (os.path.isabs(path) or is_remote(path)):
                wanted = "be an absolute path, which the workers of Beam reach"
                yield ConfigError(key, wanted, shown(path))
    for name, only in RUNNERS.items():
        if name in given and runner.lower() != only.lower():
            wanted = f"have --runner={only} beside --{name}"
            yield ConfigError("pipeline.beam_args", wanted, runner or "no runner")
    for name in (runner.lower(), *given):
        missing = [each for each in PARTNERS.get(name, ()) if each not in given]
        if missing:
            first = f"--{name}" if name in given else f"--runner={runner}"
            wanted = f"have --{' and --'.join(missing)} beside {first}"
            yield ConfigError("pipeline.beam_args", wanted, "none")
    if runner.lower() == "portablerunner" and "job_endpoint" in given:
        host, _, port = given["job_endpoint"].rpartition(":")
        try:
            socket.create_connection((host, int(port)), SECONDS).close()
        except (OSError, ValueError) as error:
            wanted = "name a --job_endpoint that answers, as host:port"
            received = f"{shown(given['job_endpoint'])}, {error}"
            yield ConfigError("pipeline.beam_args", wanted, received)
