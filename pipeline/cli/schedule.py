"""`pebr schedule`: scheduled runs on Vertex AI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline.cli.cloud_request import (
    config_option,
    dry_run_option,
    index_only_option,
    send_request,
)
from pipeline.cron import read_cron

LONGEST_NAME = 128


@click.command()
@config_option
@click.option(
    "--cron",
    required=True,
    metavar="TIME",
    help="Minute, hour, day, month and weekday, such as '0 3 * * *'.",
)
@click.option("--time-zone", metavar="NAME", help="Such as Europe/Berlin; by default UTC.")
@index_only_option
@click.option("--name", help="Name of the schedule; by default the pipeline's.")
@dry_run_option
def schedule(
    config_file: Path,
    cron: str,
    time_zone: str | None,
    index_only: bool,
    name: str | None,
    dry_run: bool,
) -> None:
    """Compile the pipeline and schedule it on Vertex AI.

    Every run reads the latest span. A run that is due while another is active is skipped. A dry run
    needs neither credentials nor a network.
    """
    time = read_cron(cron, time_zone)
    if name is not None and not 1 <= len(name) <= LONGEST_NAME:
        raise UserError(f"--name must be 1 to {LONGEST_NAME} characters. Received: {len(name)}.")
    config = Config.load(config_file)
    from pipeline import vertex

    def request_of(job: dict[str, Any]) -> Any:
        return vertex.schedule_request(job, config, time, name or config.pipeline.name)

    send_request(config, dry_run, request_of, vertex.schedule, index_only=index_only)
