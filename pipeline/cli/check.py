"""`pebr check`: lists all problems of a configuration for a target at once."""

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from pebr_tf.cli.output import print_facts
from pebr_tf.config import Config
from pipeline import engine_check
from pipeline.cli.cloud_request import config_option, target_option

UNKNOWN = "Not checked: permissions, quotas, and whether the image and the buckets exist."
LOCAL = "local"


@click.command()
@config_option
@target_option(LOCAL, "vertex", "kubeflow", "airflow")
def check(config_file: Path, target: str) -> None:
    """List what keeps a run from working, here or elsewhere.

    For pebr run (local), a job of one element asks the workers of an engine under Beam for their
    version. For Vertex AI, Kubeflow and Airflow nothing is sent. Exits with 0 if the configuration
    can run, with 2 if it prints problems to fix.
    """
    config = Config.load(config_file)
    if target == LOCAL:
        here = engine_check.problems(config) or engine_check.worker_problems(config)
        for problem in here:
            click.echo(problem)
        raise click.exceptions.Exit(2 if here else 0)
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
