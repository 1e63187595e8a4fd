"""`pebr run`: the whole pipeline, in this process."""

import os
import re
import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from pebr_tf.cli.output import print_facts
from pebr_tf.config import Config
from pebr_tf.data.automatic import chosen_line
from pebr_tf.data.look import find_problems, look_at_small_log
from pebr_tf.errors import UserError
from pebr_tf.files import is_remote
from pipeline.cli.cloud_request import (
    config_option,
    index_only_option,
    no_cache_option,
    span_option,
)
from pipeline.quiet import set_logging

# Exit codes besides 0, 1 for an internal error and 2 for a user's mistake. A scheduler must be able
# to tell a model that was not blessed from a run that failed.
NOT_BLESSED = 3
INTERRUPTED = 128 + signal.SIGINT
# The component that reads the click log.
FIRST = "ClickLogExampleGen"


@click.command()
@config_option
@click.option("--until", metavar="COMPONENT", help="The last component to run, such as Transform.")
@no_cache_option
@index_only_option
@span_option
@click.option("--only", metavar="COMPONENT", help="Run one component, as a part of a run.")
@click.option("--run-id", metavar="NAME", help="The run that --only continues; default: the last.")
def run(
    config_file: Path,
    until: str | None,
    no_cache: bool,
    index_only: bool,
    span: int | None,
    only: str | None,
    run_id: str | None,
) -> None:
    """Run the pipeline: from click logs to a pushed release.

    Components whose inputs, settings and code have not changed since an earlier run are skipped. A
    run that was killed continues where it stopped.

    With --only, each command runs one component, for a scheduler. Without --run-id, the first
    component begins a run, and the others continue the last one. A component that has succeeded in
    the run is not run again.

    Exit code: 0, the model was blessed, or --until ended it earlier; 3, the model was not blessed
    and nothing was pushed; 2, the configuration or the data need a fix; 130, interrupted; 1, an
    internal error.
    """
    _check_options(until, only, run_id)
    config = Config.load(config_file)
    if is_remote(config.pipeline.root):
        raise UserError(
            "pipeline.root must be a local folder for pebr run; pebr submit runs elsewhere. "
            f"Received: {config.pipeline.root!r}."
        )
    # Importing TFX takes many seconds, so missing files and columns are reported first.
    if problems := find_problems(config):
        raise UserError(" ".join(problems))
    console = Console(highlight=False)
    if not index_only and span is None and only in (None, FIRST):
        found = look_at_small_log(config)
        if found.problems:
            raise UserError(" ".join(found.problems))
        for note in found.notes:
            console.print(note, style="yellow", soft_wrap=True, markup=False)
    console.print("[dim]starting[/dim]")
    set_logging(warnings=console)
    from pebr_tf.report import next_steps, served, summary_table
    from pipeline import local_runner
    from pipeline.display import RunDisplay
    from pipeline.pipeline import Options

    options = Options(index_only, span)
    try:
        with RunDisplay(console) as display:
            outcome = local_runner.run(config, display, until, not no_cache, options, only, run_id)
    except KeyboardInterrupt:
        click.echo("pebr: interrupted; the next run continues from here.", err=True)
        # Threads of Beam and TensorFlow may be at work. A run may be killed at any time, so this
        # does not wait for them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    if outcome.evaluation:
        console.print()
        console.print(summary_table(outcome.evaluation))
        console.print()
        for sentence in (served(outcome.evaluation), *next_steps(outcome.evaluation)):
            console.print(sentence, soft_wrap=True, markup=False)
        console.print()
    log_q = outcome.evaluation.model.log_q if outcome.evaluation else None
    facts = {
        "auto": outcome.size and chosen_line(config, outcome.size, log_q),
        "report": outcome.report,
        "release": outcome.release,
        "run": config.pipeline.root,
        "time": f"{outcome.seconds:,.0f} s",
        "try": outcome.release and f'pebr query --release {outcome.release.parent} "..."',
        "serve": outcome.release and f"pebr serve --releases {outcome.release.parent}",
    }
    print_facts(console, {name: value for name, value in facts.items() if value})
    if outcome.evaluation and not outcome.evaluation.blessed:
        click.echo("pebr: the model was not blessed: nothing was pushed.", err=True)
        raise click.exceptions.Exit(NOT_BLESSED)


def _check_options(until: str | None, only: str | None, run_id: str | None) -> None:
    if until is not None and only is not None:
        raise UserError(f"--until must be left out with --only. Received: {until}.")
    if run_id is not None and only is None:
        raise UserError(f"--run-id must come with --only. Received: {run_id}.")
    if run_id is not None and not re.fullmatch(r"[A-Za-z0-9_.~:+-]+", run_id):
        raise UserError(
            f"--run-id must be letters, digits and any of _.~:+-, as in Airflow. "
            f"Received: {run_id!r}."
        )
