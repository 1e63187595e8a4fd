"""What long item texts cost, against titles: the same clicks, the same items.

  python -m benchmarks texts
  python -m benchmarks texts --clicks 130000 --characters 1500

Each log runs through the pipeline up to Trainer in a process of its own, twice: the second run
trains more steps and takes the rest from the cache, so the difference is the cost of a step. Times
are processor time, which hardly depends on the load of the machine.
"""

import json
import tempfile
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.processes import MEBIBYTE, measure_apart
from benchmarks.scale import Meter

COMPONENTS = ("ClickLogExampleGen", "StatisticsGen", "Transform", "Trainer")
# Steps of the two trainings.
STEPS = (50, 250)


def lengthen(catalogue: Path, characters: int) -> None:
    """Extends the titles to texts of about `characters`, with other titles in random order."""
    (file,) = catalogue.iterdir()
    table = pq.read_table(file)
    titles = np.array(table["title"].to_pylist(), object)
    needed = -(-characters // int(np.mean([len(title) for title in titles])))
    others = np.random.default_rng(0).integers(len(titles), size=(len(titles), needed))
    rows = zip(titles, titles[others], strict=True)
    texts = [" ".join([title, *more])[:characters] for title, more in rows]
    place = table.column_names.index("title")
    pq.write_table(table.set_column(place, "title", pa.array(texts)), file)


def measure(folder: str) -> None:
    """Runs the pipeline on a generated folder; prints seconds and bytes as JSON."""
    from pebr_tf.data import synthetic
    from pipeline.local_runner import run
    from pipeline.quiet import set_logging

    set_logging()
    changes = {"pipeline.root": f"{folder}/run", "training.validation_interval": STEPS[1]}
    config = synthetic.config(Path(folder)).replace_all(changes)
    meters = [Meter() for _ in STEPS]
    for meter, steps in zip(meters, STEPS, strict=True):
        run(config.replace("training.steps", steps), meter, until="Trainer")
    short, long = (meter.used["Trainer"].seconds for meter in meters)
    files = Path(folder, "run", "artifacts", "ClickLogExampleGen", "examples").rglob("*.gz")
    result = {name: meters[0].used[name].seconds for name in COMPONENTS}
    result["a training step, ms"] = 1e3 * (long - short) / (STEPS[1] - STEPS[0])
    result["examples on disk, MiB"] = sum(file.stat().st_size for file in files) / MEBIBYTE
    print(json.dumps(result))


@click.command()
@click.option("--clicks", default=300_000, show_default=True)
@click.option("--characters", default=1_500, show_default=True, help="Length of the long texts.")
@click.option("--measure", "folder", hidden=True)
def main(clicks: int, characters: int, folder: str | None) -> None:
    """Print the cost of a log with titles and with long texts, and their ratio."""
    if folder is not None:
        measure(folder)
        return
    from pebr_tf.data import synthetic

    results = []
    for length in (None, characters):
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch, "data")
            synthetic.write(synthetic.SyntheticSpec(clicks=clicks), made, "parquet")
            if length is not None:
                lengthen(made / "catalogue", length)
            results.append(measure_apart("texts", "--measure", str(made)))
    table = Table(title=f"{clicks:,} clicks, processor seconds")
    for column in ("", "titles", f"{characters:,} characters", "ratio"):
        table.add_column(column, justify="right" if column else "left")
    for name, short in results[0].items():
        long = results[1][name]
        table.add_row(name, f"{short:,.1f}", f"{long:,.1f}", f"{long / short:.2f}")
    Console().print(table)
