"""`pebr generate`: synthetic click logs with known relevance."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from pebr_tf.data.synthetic.writer import Summary


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Directory to write, new or empty.",
)
@click.option("--items", default=20_000, show_default=True, help="Items of the catalogue.")
@click.option("--queries", default=8_000, show_default=True, help="Different queries.")
@click.option("--clicks", default=300_000, show_default=True, help="Rows of the click log.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option(
    "--noise", default=0.05, show_default=True, help="Share of the clicks that fall on any item."
)
@click.option(
    "--format",
    type=click.Choice(["parquet", "csv", "jsonl"]),
    default="parquet",
    show_default=True,
    help="Format of all tables.",
)
def generate(
    out: Path, items: int, queries: int, clicks: int, seed: int, noise: float, format: str
) -> None:
    """Make synthetic click logs with known relevance.

    Writes a click log, the catalogue, the queries and the items relevant to each into DIR,
    dataset.json, which describes them, and pebr.yaml, a configuration that fits them.
    """
    from pebr_tf.data import synthetic

    spec = synthetic.SyntheticSpec(
        items=items, queries=queries, clicks=clicks, seed=seed, noise=noise
    )
    console = Console(highlight=False)
    with _progress(console) as progress:
        summary = synthetic.write(spec, out, format, progress)
    synthetic.config(out).dump(out / "pebr.yaml")
    _print_summary(console, summary)
    console.print(f"Wrote {out}.", soft_wrap=True, markup=False)


@contextlib.contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Yields a callback that draws bars on a terminal and prints a line a part elsewhere."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    bars = Progress(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.completed:>13,} of {task.total:,}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def draw(part: str, done: int, total: int) -> None:
        if part not in tasks:
            tasks[part] = bars.add_task(part, total=total)
        bars.update(tasks[part], completed=done)

    with bars:
        yield draw


class _Lines:
    """Prints a line whenever another tenth of a part is done."""

    def __init__(self, console: Console):
        self._console = console
        self._tenths: dict[str, int] = {}

    def __call__(self, part: str, done: int, total: int) -> None:
        tenth = 10 * done // total
        if tenth > self._tenths.get(part, 0):
            self._tenths[part] = tenth
            self._console.print(f"{part:<9} {done:>13,} of {total:,}")


def _print_summary(console: Console, summary: "Summary") -> None:
    relevant = (
        f"p10 {summary.relevant_p10:,}, p50 {summary.relevant_p50:,}, "
        f"p90 {summary.relevant_p90:,}, max {summary.relevant_max:,}"
    )
    rows = {
        "items": f"{summary.items:,}",
        "queries": f"{summary.queries:,}",
        "clicks": f"{summary.clicks:,}",
        "relevant items a query": relevant,
        "popularity and breadth": f"Spearman {summary.breadth_correlation:.2f}",
        "noise": f"{summary.noise_share:.1%} of the clicks",
    }
    for name, value in rows.items():
        console.print(f"[dim]{name:<24}[/dim]{value}")
