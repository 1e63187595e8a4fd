"""`pebr submit`: one run on Vertex AI."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from pebr_tf.config import Config
from pebr_tf.errors import UserError


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="What `pebr config init` writes, with its section cloud filled in.",
)
@click.option("--index-only", is_flag=True, help="A new index for the last blessed model.")
@click.option("--span", type=int, help="The span to read; by default the latest.")
@click.option("--no-cache", is_flag=True, help="Run everything anew.")
@click.option("--job-id", metavar="ID", help="Name of the run; by default the time is in it.")
@click.option("--dry-run", is_flag=True, help="Print the request as JSON, and send nothing.")
def submit(
    config_file: Path,
    index_only: bool,
    span: int | None,
    no_cache: bool,
    job_id: str | None,
    dry_run: bool,
) -> None:
    """Compile the pipeline and run it on Vertex AI.

    Ends when Vertex AI has accepted the run. A dry run needs neither credentials nor a network.
    """
    if job_id is not None and not re.fullmatch(r"[a-z][a-z0-9-]{0,127}", job_id):
        raise UserError(
            "--job-id must be at most 128 lower-case letters, digits and hyphens, a letter first. "
            f"Received: {job_id!r}."
        )
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

    job = compile_job(config, index_only=index_only, span=span)
    request = vertex.job_request(
        job, config, job_id or _timed(config.pipeline.name), cache=not no_cache
    )
    if dry_run:
        click.echo(vertex.to_json(request))
        return
    accepted = vertex.submit(request, config, credentials)
    for name, value in vars(accepted).items():
        console.print(f"[dim]{name:<10}[/dim]{escape(value)}", soft_wrap=True)


def _timed(name: str) -> str:
    return f"{name}-{datetime.now(timezone.utc):%Y%m%d%H%M%S}"
