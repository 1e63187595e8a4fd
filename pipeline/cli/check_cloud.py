"""`pebr check-cloud`: lists all problems of a configuration for a target at once."""

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from pebr_tf.cli.output import print_facts
from pebr_tf.config import Config
from pipeline.cli.cloud_request import config_option, target_option

UNKNOWN = "Not checked: permissions, quotas, and whether the image and the buckets exist."


@click.command(name="check-cloud")
@config_option
@target_option("vertex", "kubeflow", "airflow")
def check_cloud(config_file: Path, target: str) -> None:
    """List what prevents a run on Vertex AI, Kubeflow or Airflow.

    Nothing is sent. Exits with 0 if the configuration can run, with 2 if it prints problems to fix.
    """
    config = Config.load(config_file)
    from pipeline.cloud_check import credential_problems, problems

    console = Console(highlight=False)
    found = 0
    looks = [lambda: problems(config, target)]
    if target == "vertex":
        # Last: looking for them may take seconds.
        looks.append(credential_problems)
    for look in looks:
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
        print_facts(console, {name: value for name, value in values.items() if value})
    console.print(f"[dim]{UNKNOWN}[/dim]", soft_wrap=True)
    if found:
        raise click.exceptions.Exit(2)
