"""How fast `pebr generate` writes clicks, and its peak memory.

  python -m benchmarks generate
  python -m benchmarks generate --clicks 87000000

Every size runs in a process of its own, so that the peak memory is that of one size.
"""

import json
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.processes import MEBIBYTE, measure_apart, peak_bytes


def measure(items: int, queries: int, clicks: int, format: str) -> dict[str, float]:
    """Writes a data set into a temporary directory.

    Returns:
      `seconds` from the first import to the last file, `bytes` on disk, and `peak`, the largest
      resident set of this process in bytes.
    """
    start = time.perf_counter()
    from pebr_tf.data.synthetic import SyntheticSpec, write

    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        write(SyntheticSpec(items=items, queries=queries, clicks=clicks), out, format)
        seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return {"seconds": seconds, "bytes": size, "peak": peak_bytes()}


@click.command()
@click.option(
    "--clicks",
    "sizes",
    type=int,
    multiple=True,
    default=[1_000_000, 10_000_000],
    show_default=True,
    help="Clicks to write; can be given more than once.",
)
@click.option("--items", default=20_000, show_default=True, help="Items of the catalogue.")
@click.option("--queries", default=8_000, show_default=True, help="Different queries.")
@click.option("--format", default="parquet", show_default=True, help="Format of the files.")
@click.option("--here", is_flag=True, hidden=True, help="Measure one size in this process.")
def main(sizes: tuple[int, ...], items: int, queries: int, format: str, here: bool) -> None:
    """Print rows per second and peak memory of `pebr generate` for several sizes."""
    if here:
        click.echo(json.dumps(measure(items, queries, sizes[0], format)))
        return
    table = Table(title=f"pebr generate: {items:,} items, {queries:,} queries, {format}")
    for column in ("clicks", "seconds", "rows per second", "peak MiB", "disk MiB"):
        table.add_column(column, justify="right")
    console = Console()
    with console.status("measuring"):
        for clicks in sizes:
            options = (f"--clicks={clicks}", f"--items={items}", f"--queries={queries}")
            result = measure_apart("generate", "--here", *options, f"--format={format}")
            table.add_row(
                f"{clicks:,}",
                f"{result['seconds']:,.1f}",
                f"{clicks / result['seconds']:,.0f}",
                f"{result['peak'] / MEBIBYTE:,.0f}",
                f"{result['bytes'] / MEBIBYTE:,.0f}",
            )
    console.print(table)
