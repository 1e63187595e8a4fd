"""`pebr check-cloud`: what keeps a configuration from Vertex AI, all of it at once."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from pebr_tf.config import Config
from pipeline.cli.cloud_request import config_option

UNKNOWN = "Permissions, quotas, and whether image and buckets exist, only Google Cloud can tell."


@click.command(name="check-cloud")
@config_option
def check_cloud(config_file: Path) -> None:
    """List what keeps a configuration from running on Vertex AI.

    Nothing is sent. Exit code: 0, nothing keeps it; 2, what is listed is for you to mend.
    """
    config = Config.load(config_file)
    from pipeline.cloud_check import credential_problems, problems

    console = Console(highlight=False)
    found = 0
    # Credentials are looked for at last: that may take seconds.
    for look in (lambda: problems(config), credential_problems):
        for problem in look():
            console.print(escape(problem), soft_wrap=True)
            found += 1
    if not found:
        values = {
            "project": config.cloud.project,
            "region": config.cloud.region,
            "image": config.cloud.image,
            "root": config.pipeline.root,
        }
        for name, value in values.items():
            console.print(f"[dim]{name:<10}[/dim]{escape(str(value))}", soft_wrap=True)
    console.print(f"[dim]{UNKNOWN}[/dim]", soft_wrap=True)
    if found:
        raise click.exceptions.Exit(2)
