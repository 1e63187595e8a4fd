"""Shared by the commands of the pipeline: options, and requests to Vertex AI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pebr_tf.cli.output import print_facts
from pebr_tf.config import Config

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="A configuration, as `pebr config init` writes it.",
)
index_only_option = click.option(
    "--index-only",
    is_flag=True,
    help="Train nothing: build a new index and cut-off for the last blessed model.",
)
span_option = click.option("--span", type=int, help="The span to read; by default the latest.")
no_cache_option = click.option("--no-cache", is_flag=True, help="Run every component again.")
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print the request as JSON and send nothing."
)


def send_request(
    config: Config,
    dry_run: bool,
    request_of: Callable[[dict[str, Any]], Any],
    send: Callable[..., Any],
    **options: Any,
) -> None:
    """Compiles the pipeline and sends a request with it, or prints what would be sent.

    A dry run needs neither credentials nor a network. The `options` go to `compile_job`.

    Raises:
      UserError: The config cannot run on Vertex AI, there are no credentials, or Vertex AI did not
        accept it.
    """
    from pipeline import vertex
    from pipeline.cloud_check import require_cloud
    from pipeline.quiet import set_logging

    require_cloud(config)
    credentials = None if dry_run else vertex.default_credentials()
    console = Console(highlight=False, quiet=dry_run)
    console.print("[dim]compiling[/dim]")
    set_logging()
    from pipeline.kubeflow_v2_runner import compile_job

    request = request_of(compile_job(config, **options))
    if dry_run:
        click.echo(vertex.to_json(request))
        return
    print_facts(console, vars(send(request, config, credentials)))
