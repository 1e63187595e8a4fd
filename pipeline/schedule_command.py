"""`pebr schedule`: runs on Vertex AI, by the clock."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline.cron import read_cron

LONGEST_NAME = 128


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="What `pebr config init` writes, with its section cloud filled in.",
)
@click.option(
    "--cron",
    required=True,
    metavar="TIME",
    help="Minute, hour, day, month and weekday, such as '0 3 * * *'.",
)
@click.option("--time-zone", metavar="NAME", help="Such as Europe/Berlin; by default UTC.")
@click.option("--index-only", is_flag=True, help="A new index for the last blessed model.")
@click.option("--name", help="The schedule's, for people; by default the pipeline's.")
@click.option("--dry-run", is_flag=True, help="Print the request as JSON, and send nothing.")
def schedule(
    config_file: Path,
    cron: str,
    time_zone: str | None,
    index_only: bool,
    name: str | None,
    dry_run: bool,
) -> None:
    """Compile the pipeline and run it on Vertex AI by the clock.

    Every run reads the latest span. One that is due while another is at work is left out. A dry run
    needs neither credentials nor a network.
    """
    time = read_cron(cron, time_zone)
    if name is not None and not 1 <= len(name) <= LONGEST_NAME:
        raise UserError(f"--name must be 1 to {LONGEST_NAME} characters. Received: {len(name)}.")
    config = Config.load(config_file)
    from pipeline import vertex
    from pipeline.cloud_check import require_cloud
    from pipeline.quiet import set_logging

    require_cloud(config)
    credentials = None if dry_run else vertex.default_credentials()
    console = Console(highlight=False, quiet=dry_run)
    console.print("[dim]compiling[/dim]")
    set_logging()
    from pipeline.kubeflow_v2_runner import compile_job

    job = compile_job(config, index_only=index_only)
    request = vertex.schedule_request(job, config, time, name or config.pipeline.name)
    if dry_run:
        click.echo(vertex.to_json(request))
        return
    accepted = vertex.schedule(request, config, credentials)
    for label, value in vars(accepted).items():
        console.print(f"[dim]{label:<10}[/dim]{escape(value)}", soft_wrap=True)
