"""What the commands for Vertex AI share: their config, and the way from it to a request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from pebr_tf.config import Config

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="What `pebr config init` writes, with its section cloud filled in.",
)
index_only_option = click.option(
    "--index-only", is_flag=True, help="A new index for the last blessed model."
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print the request as JSON, and send nothing."
)


def ask(
    config: Config,
    dry_run: bool,
    request_of: Callable[[dict[str, Any]], Any],
    send: Callable[..., Any],
    **options: Any,
) -> None:
    """Compiles the pipeline and sends a request with it, or prints what would be sent.

    Args:
      config: All of it.
      dry_run: Whether to print; neither credentials nor a network are needed then.
      request_of: Makes the request of a compiled job.
      send: What of `pipeline.vertex` sends it.
      **options: Of `compile_job`.

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
    for name, value in vars(send(request, config, credentials)).items():
        console.print(f"[dim]{name:<10}[/dim]{escape(value)}", soft_wrap=True)
