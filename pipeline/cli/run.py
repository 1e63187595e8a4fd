"""`pebr run`: the whole pipeline, in this process."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.markup import escape

from pebr_tf.config import Config
from pipeline.quiet import set_logging

# Exit codes, beside 0, 1 for a fault and 2 for a user's mistake. A schedule has to notice models
# that are never released, and to tell them from runs that failed.
NOT_BLESSED = 3
INTERRUPTED = 128 + signal.SIGINT


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="What `pebr config init` writes.",
)
@click.option("--until", metavar="COMPONENT", help="The last component to run, such as Transform.")
@click.option("--no-cache", is_flag=True, help="Run everything anew.")
@click.option(
    "--index-only",
    is_flag=True,
    help="Train nothing: a new index and cut-off for the last blessed model.",
)
@click.option("--span", type=int, help="The span to read; by default the latest.")
def run(
    config_file: Path, until: str | None, no_cache: bool, index_only: bool, span: int | None
) -> None:
    """Run the pipeline: from click logs to a pushed release.

    Components whose inputs, settings and code have not changed since an earlier run are not run
    again. A run that was killed goes on where it was.

    Exit code: 0, a model was blessed, or the run ended before; 3, it was measured and not blessed,
    so nothing was pushed; 2, something is for you to mend; 130, interrupted; 1, a fault of ours.
    """
    config = Config.load(config_file)
    console = Console(highlight=False)
    console.print("[dim]starting[/dim]")
    set_logging()
    from pebr_tf.report import summary_table
    from pipeline import local_runner
    from pipeline.display import RunDisplay
    from pipeline.pipeline import Options

    options = Options(index_only, span)
    try:
        with RunDisplay(console) as display:
            outcome = local_runner.run(config, display, until, not no_cache, options)
    except KeyboardInterrupt:
        click.echo("pebr: interrupted; another run goes on from here.", err=True)
        # Threads of Beam and TensorFlow may be in the middle of their work: nobody waits for them.
        _leave(INTERRUPTED)
    if outcome.evaluation:
        console.print()
        console.print(summary_table(outcome.evaluation))
        console.print()
    paths = {
        "report": outcome.report,
        "release": outcome.release,
        "run": config.pipeline.root,
    }
    for name, path in paths.items():
        if path:
            console.print(f"[dim]{name:<10}[/dim]{escape(str(path))}", soft_wrap=True)
    console.print(f"[dim]{'time':<10}[/dim]{outcome.seconds:,.0f} s")
    if outcome.release:
        hint = f'pebr query --release {outcome.release.parent} "..."'
        console.print(f"[dim]{'try':<10}[/dim]{escape(hint)}", soft_wrap=True)
    if outcome.evaluation and not outcome.evaluation.blessed:
        click.echo("pebr: the model was not blessed: nothing was pushed.", err=True)
        raise click.exceptions.Exit(NOT_BLESSED)


def _leave(code: int) -> NoReturn:
    """Ends this process at once; nothing of a run needs an orderly end, for any may be killed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
