"""`python -m experiments`: the paper's tables and figures, and more, from one command each."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from experiments import EXPERIMENTS
from pebr_tf.cli.late_group import run_command
from pebr_tf.errors import UserError

if TYPE_CHECKING:
    from experiments.settings import ExperimentSettings, Scale

ALL, CACHE = "all", "cache"
MOST_SEEDS = 100
_SEEDS = {"full": 3, "small": 1}


class _Command(click.Command):
    """Its help lists the experiments."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, text) for name, (_, text) in EXPERIMENTS.items()]
        with formatter.section("Experiments"):
            formatter.write_dl([*rows, (ALL, "Each of them in turn.")])


@click.command(cls=_Command)
@click.argument("name", metavar="NAME")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Results go to DIR/NAME, finished steps to DIR/cache.",
)
@click.option("--seeds", type=int, help="Trainings of each kind; 3, or 1 if the scale is small.")
@click.option(
    "--scale",
    type=click.Choice(["small", "full"]),
    default="full",
    show_default=True,
    help="Small is to see it work, in minutes.",
)
@click.option(
    "--goodbooks",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Folder of goodbooks-10k; without it only synthetic logs are measured.",
)
@click.option(
    "--dbpedia",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Folder of DBpedia-Entity v2, another click log of first-run.",
)
def experiment(
    name: str,
    out: Path,
    seeds: int | None,
    scale: str,
    goodbooks: Path | None,
    dbpedia: Path | None,
) -> None:
    """Reproduce a table or a figure, with seeds and error bars.

    Writes figures.json, tables.md, plots as PNG and SVG, and index.html, a page that needs no other
    file, into DIR/NAME. Finished steps stay in DIR/cache, so that a run that was stopped goes on
    where it was, and experiments share their towers.
    """
    names = _names(name)
    seeds = _SEEDS[scale] if seeds is None else seeds
    if not 1 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds must be from 1 to {MOST_SEEDS}. Received: {seeds}.")
    if goodbooks is not None:
        _require_goodbooks(goodbooks)
    _require_writable(out, names)
    from experiments.settings import ExperimentSettings

    chosen: Scale = "small" if scale == "small" else "full"
    settings = ExperimentSettings(chosen, seeds, goodbooks, dbpedia)
    console = Console(highlight=False)
    try:
        for each in names:
            _run(each, settings, out, console)
    except KeyboardInterrupt:
        console.print(
            f"Stopped; finished steps are kept in {out / CACHE}, and the same command goes on "
            "from there.",
            soft_wrap=True,
            markup=False,
        )
        raise SystemExit(130) from None


def _run(name: str, settings: ExperimentSettings, out: Path, console: Console) -> None:
    from experiments.console import WIDEST, StepDisplay, console_table
    from experiments.step import Store, run_steps
    from experiments.writing import write_results

    module = importlib.import_module(EXPERIMENTS[name][0])
    console.print(module.TITLE, style="bold", markup=False)
    if settings.goodbooks is None:
        console.print("Synthetic logs only; --goodbooks PATH adds goodbooks-10k.", soft_wrap=True)
    if name == "first-run" and settings.dbpedia is None:
        console.print("--dbpedia PATH adds DBpedia-Entity v2.")
    with StepDisplay(console) as display:
        outputs = run_steps(module.steps(settings), Store(out / CACHE), display)
    results = module.results(settings, outputs)
    page = write_results(results, out / name)
    console.print()
    console.print(console_table(results.tables[0]), width=min(console.width, WIDEST), crop=False)
    console.print(f"Wrote {page}.", soft_wrap=True, markup=False)


def _names(name: str) -> tuple[str, ...]:
    name = name.replace("_", "-")
    if name == ALL:
        return tuple(EXPERIMENTS)
    if name not in EXPERIMENTS:
        known = ", ".join([*EXPERIMENTS, ALL])
        raise UserError(f"NAME must be one of {known}. Received: {name}.")
    return (name,)


def _require_writable(out: Path, names: tuple[str, ...]) -> None:
    from experiments.writing import require_ours

    cache = out / CACHE
    try:
        out.mkdir(parents=True, exist_ok=True)
        # Now, and not when the first step is done.
        for folder in (out, cache) if cache.exists() else (out,):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        raise UserError(
            f"--out must be a folder that can be written. Received: {out} ({error.strerror})."
        ) from None
    for name in names:
        require_ours(out / name)


def _require_goodbooks(directory: Path) -> None:
    """Looks at the two small files, and whether the large one is there."""
    from pebr_tf.data.goodbooks import read_columns

    read_columns(directory, "books.csv", "goodreads_book_id", "title")
    read_columns(directory, "tags.csv", "tag_id", "tag_name")
    if not any((directory / name).is_file() for name in ("book_tags.csv", "book_tags.csv.zip")):
        raise UserError(
            f"{directory} must hold book_tags.csv or book_tags.csv.zip of goodbooks-10k. "
            "Received: neither."
        )


if __name__ == "__main__":
    run_command(experiment, "python -m experiments")
