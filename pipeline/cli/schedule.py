"""`pebr schedule`: scheduled runs on Vertex AI or Kubeflow."""

import datetime
from pathlib import Path
from typing import Any

import click

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline.cli.cloud_request import (
    Destination,
    config_option,
    cron_option,
    destination_options,
    dry_run_option,
    index_only_option,
    send_request,
    time_zone_option,
)
from pipeline.cron import read_cron

LONGEST_NAME = 128
SHOWN_TIMES = 3


@click.command()
@config_option
@destination_options
@cron_option(required=True)
@time_zone_option
@index_only_option
@click.option("--name", help="Name of the schedule; by default the pipeline's.")
@dry_run_option
def schedule(
    config_file: Path,
    destination: Destination,
    cron: str,
    time_zone: str | None,
    index_only: bool,
    name: str | None,
    dry_run: bool,
) -> None:
    """Compile the pipeline and schedule it on Vertex AI or Kubeflow.

    Every run reads the latest span. A run that is due while another is active is skipped. A dry run
    needs neither credentials nor a network.
    """
    times = read_cron(cron, time_zone)
    if time_zone is not None and destination.target == "kubeflow":
        raise UserError(
            "--time-zone must be left out with --target kubeflow, whose controller has one time "
            f"zone for all schedules. Received: {time_zone!r}."
        )
    if name is not None and not 1 <= len(name) <= LONGEST_NAME:
        raise UserError(f"--name must be 1 to {LONGEST_NAME} characters. Received: {len(name)}.")
    config = Config.load(config_file)
    requests = destination.requests

    def request_of(compiled: Any) -> Any:
        return requests.schedule_request(compiled, config, times, name or config.pipeline.name)

    send_request(config, destination, dry_run, request_of, requests.schedule, index_only=index_only)
    if dry_run:
        now = datetime.datetime.now(datetime.timezone.utc)
        for time in times.next_times(now, SHOWN_TIMES):
            click.echo(f"next run: {time:%A %Y-%m-%d %H:%M} {time_zone or 'UTC'}", err=True)
