"""`pebr generate`: synthetic click logs with known relevance."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console

from pebr_tf.cli.options import out_option
from pebr_tf.cli.output import current_step, print_facts


@click.command()
@out_option
@click.option("--items", default=20_000, show_default=True, help="Items in the catalogue.")
@click.option("--queries", default=8_000, show_default=True, help="Different queries.")
@click.option("--clicks", default=300_000, show_default=True, help="Rows in the click log.")
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
    with _progress() as progress:
        summary = synthetic.write(spec, out, format, progress)
    synthetic.config(out).dump(out / "pebr.yaml")
    facts = {
        "items": f"{summary.items:,}",
        "queries": f"{summary.queries:,}",
        "clicks": f"{summary.clicks:,}",
        "relevant items per query": (
            f"p10 {summary.relevant_p10:,}, p50 {summary.relevant_p50:,}, "
            f"p90 {summary.relevant_p90:,}, max {summary.relevant_max:,}"
        ),
        "popularity and breadth": f"Spearman {summary.breadth_correlation:.2f}",
        "noise": f"{summary.noise_share:.1%} of the clicks",
    }
    print_facts(console, facts, width=26)
    console.print(f"Wrote {out}.", soft_wrap=True, markup=False)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yields a callback that shows every tenth of a part."""
    tenths: dict[str, int] = {}
    with current_step("world") as show:

        def show_tenth(part: str, done: int, total: int) -> None:
            tenth = 10 * done // total
            if tenth > tenths.get(part, 0):
                tenths[part] = tenth
                show(f"{part:<9} {done:>13,} of {total:,}")

        yield show_tenth
