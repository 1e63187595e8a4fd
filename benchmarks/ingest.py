"""How fast ClickLogExampleGen reads a click log, against TFX's CsvExampleGen on the same file.

  python -m benchmarks ingest
  python -m benchmarks ingest --rows 200000

Both executors run on Beam's DirectRunner, each in a process of its own, so that peak memory is
measured per side. Ours runs before and after the other, and the slower run counts. The time is that
of `Do`, without imports. CsvExampleGen parses, splits and writes; ours also checks every row,
counts the queries and items, draws samples and writes the catalogue.
"""

import json
import shutil
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.processes import MEBIBYTE, measure_apart, peak_bytes

_SIDES = ("CsvExampleGen", "ClickLogExampleGen")


def write_log(folder: Path, rows: int) -> None:
    """Writes `log/log.csv` with `rows` clicks, and `catalogue.csv`."""
    from pebr_tf.data.synthetic import SyntheticSpec, write

    write(SyntheticSpec(clicks=rows), folder / "made", "csv")
    (folder / "log").mkdir()
    for source, target in (
        ("clicks", folder / "log" / "log.csv"),
        ("catalogue", folder / "catalogue.csv"),
    ):
        with target.open("wb") as out:
            for number, shard in enumerate(sorted((folder / "made" / source).iterdir())):
                with shard.open("rb") as file:
                    if number:
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
    from components.click_log_example_gen.executor import ClickLogExampleGenExecutor
    from pebr_tf.config import Config

    config = Config().replace_all(
        {
            "data.click_log": str(folder / "log" / "log.csv"),
            "data.catalogue": str(folder / "catalogue.csv"),
        }
    )
    kinds = {
        "examples": standard_artifacts.Examples,
        "samples": standard_artifacts.Examples,
        "catalogue": standard_artifacts.Examples,
        "dead_letters": DeadLetters,
    }
    outputs = {name: [kind()] for name, kind in kinds.items()}
    for name, [artifact] in outputs.items():
        artifact.uri = str(folder / "ours" / name)
    start = time.perf_counter()
    ClickLogExampleGenExecutor(ClickLogExampleGenExecutor.Context()).Do(
        {}, outputs, settings.exec_properties(config)
    )
    return time.perf_counter() - start


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Clicks in the log.")
@click.option("--side", type=click.Choice(_SIDES), hidden=True, help="Measure in this process.")
@click.option("--folder", type=click.Path(path_type=Path), hidden=True, help="Folder of the log.")
def main(rows: int, side: str | None, folder: Path | None) -> None:
    """Print rows per second and peak memory of both, and their ratio."""
    if side and folder:
        seconds = (run_stock if side == _SIDES[0] else run_ours)(folder)
        click.echo(json.dumps({"seconds": seconds, "peak": peak_bytes()}))
        return
    table = Table(title=f"A CSV click log of {rows:,} rows, DirectRunner")
    for column in ("", "seconds", "rows per second", "ratio", "peak MiB"):
        table.add_column(column, justify="right")
    console = Console()
    with console.status("measuring"), tempfile.TemporaryDirectory() as directory:
        write_log(Path(directory), rows)
        # Ours runs before and after, because the load of the machine changes meanwhile.
        before, stock, after = (
            measure_apart("ingest", f"--side={side}", f"--folder={directory}")
            for side in (_SIDES[1], *_SIDES)
        )
        slower = max(before, after, key=lambda result: result["seconds"])
        results = dict(zip(_SIDES, (stock, slower), strict=True))
    for name, result in results.items():
        table.add_row(
            name,
            f"{result['seconds']:,.1f}",
            f"{rows / result['seconds']:,.0f}",
            f"{results[_SIDES[0]]['seconds'] / result['seconds']:.1f}",
            f"{result['peak'] / MEBIBYTE:,.0f}",
        )
    console.print(table)
