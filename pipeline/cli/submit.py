"""`pebr submit`: one run on Vertex AI or Kubeflow."""

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline.cli.cloud_request import (
    Destination,
    config_option,
    destination_options,
    dry_run_option,
    index_only_option,
    no_cache_option,
    send_request,
    span_option,
)


@click.command()
@config_option
@destination_options
@index_only_option
@span_option
@no_cache_option
@click.option(
    "--job-id", metavar="ID", help="Name of the run; default: the pipeline name and the time."
)
@dry_run_option
def submit(
    config_file: Path,
    destination: Destination,
    index_only: bool,
    span: int | None,
    no_cache: bool,
    job_id: str | None,
    dry_run: bool,
) -> None:
    """Compile the pipeline and run it on Vertex AI or Kubeflow.

    Returns when the run has been accepted. A dry run needs neither credentials nor a network.
    """
    if job_id is not None and not re.fullmatch(r"[a-z][a-z0-9-]{0,127}", job_id):
        raise UserError(
            "--job-id must be at most 128 lower-case letters, digits and hyphens, a letter first. "
            f"Received: {job_id!r}."
        )
    config = Config.load(config_file)
    requests = destination.requests
    name = job_id or _timed(config.pipeline.name)

    def request_of(compiled: Any) -> Any:
        return requests.job_request(compiled, config, name, cache=not no_cache)

    send_request(
        config, destination, dry_run, request_of, requests.submit, index_only=index_only, span=span
    )


def _timed(name: str) -> str:
    return f"{name}-{datetime.now(timezone.utc):%Y%m%d%H%M%S}"
