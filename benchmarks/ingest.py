"""How fast ClickLogExampleGen reads a click log, against TFX's CsvExampleGen on the same file.

  python -m benchmarks ingest
  python -m benchmarks ingest --rows 200000

Both executors run on Beam's DirectRunner, each in a process of its own, so that the peak memory is
that side's; ours before and after the other, and the slower run counts. Timed is `Do`, without the
imports. CsvExampleGen parses, splits and writes; ours also checks every row, joins the items'
columns and writes the catalogue.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

_MEBIBYTE = 2**20
_SIDES = ("CsvExampleGen", "ClickLogExampleGen")


def write_log(folder: Path, rows: int) -> None:
    """Writes `log/log.csv` with so many clicks, and `catalogue.csv`."""
    from pebr_tf.data.synthetic import SyntheticSpec, write

    write(SyntheticSpec(clicks=rows), folder / "made", "csv")
    (folder / "log").mkdir()
    for source, target in (
        ("clicks", folder / "log" / "log.csv"),
        ("catalogue", folder / "catalogue.csv"),
    ):
        with target.open("wb") as out:
            for place, shard in enumerate(sorted((folder / "made" / source).iterdir())):
                with shard.open("rb") as file:
                    if place:
                        file.readline()
                    shutil.copyfileobj(file, out)


def run_stock(folder: Path) -> float:
    """Seconds of CsvExampleGen."""
    from tfx.components.example_gen.csv_example_gen.executor import Executor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)

    splits = [
        example_gen_pb2.SplitConfig.Split(name=name, hash_buckets=buckets)
        for name, buckets in (("train", 8), ("calibrate", 1), ("test", 1))
    ]
    inputs = example_gen_pb2.Input(
        splits=[example_gen_pb2.Input.Split(name="single_split", pattern="*")]
    )
    outputs = example_gen_pb2.Output(split_config=example_gen_pb2.SplitConfig(splits=splits))
    properties = {
        "input_base": str(folder / "log"),
        "input_config": proto_utils.proto_to_json(inputs),
        "output_config": proto_utils.proto_to_json(outputs),
    }
    examples = standard_artifacts.Examples()
    examples.uri = str(folder / "stock")
    start = time.perf_counter()
    Executor(Executor.Context()).Do({}, {"examples": [examples]}, properties)
    return time.perf_counter() - start


def run_ours(folder: Path) -> float:
    """Seconds of ClickLogExampleGen."""
    from tfx.types import standard_artifacts

    from components.artifacts import DeadLetters
    from components.click_log_example_gen import settings
    from components.click_log_example_gen.executor import Executor
    from pebr_tf.config import Config

    config = Config().replace_all(
        {
            "data.click_log": str(folder / "log" / "log.csv"),
            "data.catalogue": str(folder / "catalogue.csv"),
        }
    )
    kinds = {
        "examples": standard_artifacts.Examples,
        "catalogue": standard_artifacts.Examples,
        "dead_letters": DeadLetters,
    }
    outputs = {name: [kind()] for name, kind in kinds.items()}
    for name, [artifact] in outputs.items():
        artifact.uri = str(folder / "ours" / name)
    start = time.perf_counter()
    Executor(Executor.Context()).Do({}, outputs, settings.exec_properties(config))
    return time.perf_counter() - start


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Clicks in the log.")
@click.option("--side", type=click.Choice(_SIDES), hidden=True, help="Measure in this process.")
@click.option("--folder", type=click.Path(path_type=Path), hidden=True, help="Of the log.")
def main(rows: int, side: str | None, folder: Path | None) -> None:
    """Print rows a second and peak memory of both, and their ratio."""
    if side and folder:
        seconds = (run_stock if side == _SIDES[0] else run_ours)(folder)
        # Linux counts kibibytes, macOS bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        click.echo(json.dumps({"seconds": seconds, "peak": peak}))
        return
    table = Table(title=f"A CSV click log of {rows:,} rows, DirectRunner")
    for column in ("", "seconds", "rows a second", "ratio", "peak MiB"):
        table.add_column(column, justify="right")
    console = Console()
    with console.status("measuring"), tempfile.TemporaryDirectory() as directory:
        write_log(Path(directory), rows)
        # Ours before and after, the slower counts: the load of a machine changes meanwhile.
        before, stock, after = (
            _measure_apart(Path(directory), side) for side in (_SIDES[1], *_SIDES)
        )
        results = dict(zip(_SIDES, (stock, max(before, after, key=_seconds)), strict=True))
    for name, result in results.items():
        table.add_row(
            name,
            f"{result['seconds']:,.1f}",
            f"{rows / result['seconds']:,.0f}",
            f"{results[_SIDES[0]]['seconds'] / result['seconds']:.1f}",
            f"{result['peak'] / _MEBIBYTE:,.0f}",
        )
    console.print(table)


def _seconds(result: dict[str, float]) -> float:
    return result["seconds"]


def _measure_apart(folder: Path, side: str) -> dict[str, float]:
    command = [sys.executable, __file__, f"--side={side}", f"--folder={folder}"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result
