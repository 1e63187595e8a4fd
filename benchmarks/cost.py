"""Processor time and memory of each component, and the projected cost for logs of any size.

  python -m benchmarks cost
  python -m benchmarks cost --clicks 500000 --items 50000

Runs the pipeline three times, each in a process of its own: on some clicks and items, on four times
the clicks, and on four times the items. Measured are processor time (user and system, with child
processes), which hardly depends on the load of the machine, and the peak of resident memory. The
three runs give a fixed cost and a rate for each component; the printed sum of both projects the
cost of a large log. Components that compare items with held-out queries are projected to the 20,000
queries that they use at most. Memory is not extrapolated: docs/running-on-vertex.md derives it.
"""

import json
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.processes import measure_apart

TIMES = 4
# Clicks, items and training pairs: three passes, one pass, and a tenth of one.
SIZES = ((1e6, 1e5, 3e6), (1e8, 1e6, 1e8), (1e10, 1e7, 1e9))
BY_CLICKS = ("ClickLogExampleGen", "Transform")
BY_ITEMS = ("IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher")
# Components that compare items with at most MOST_QUERIES held-out queries.
COMPARING = ("CutoffCalibrator", "RetrievalEvaluator")
MOST_QUERIES = 20_000
TRAINER = "Trainer"
MILLION = 1e6


@dataclass(frozen=True)
class ResourceUse:
    """Resources that a component used: processor seconds, and gigabytes resident at the peak."""

    seconds: float
    gigabytes: float


class Meter:
    """A run display that records processor time and memory instead of showing progress."""

    def __init__(self) -> None:
        self.used: dict[str, ResourceUse] = {}
        self._began = 0.0

    def begin(self, name: str) -> None:
        """A component begins."""
        # The peak is that of the process: it is set back to what is resident now.
        Path("/proc/self/clear_refs").write_text("5")
        self._began = _processor_seconds()

    def end(self, name: str, took: str) -> None:
        """A component is done."""
        self.used[name] = ResourceUse(_processor_seconds() - self._began, _peak_gigabytes())


def _processor_seconds() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _peak_gigabytes() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 2**20


def measure(folder: str) -> None:
    """Runs the pipeline on a generated folder and prints the resources as JSON."""
    from pebr_tf.config import Config
    from pipeline.local_runner import run
    from pipeline.quiet import set_logging

    set_logging()
    config = Config.load(f"{folder}/pebr.yaml").replace_all(
        {
            "pipeline.root": f"{folder}/run",
            "pipeline.releases": f"{folder}/releases",
            # Long enough to measure a rate.
            "training.early_stop_patience": None,
            "training.steps": 1_000,
            "training.batch_size": 512,
        }
    )
    meter = Meter()
    outcome = run(config, meter)
    result = {
        "pairs": config.training.steps * config.training.batch_size,
        "queries": outcome.evaluation.data.calibrate_queries,
        "used": {name: [each.seconds, each.gigabytes] for name, each in meter.used.items()},
    }
    print(json.dumps(result))


@dataclass(frozen=True)
class MeasuredRun:
    """Resources of one pipeline run.

    Attributes:
      pairs: Pairs that were trained on.
      queries: Queries held out for calibration.
      used: What each component used.
    """

    pairs: int
    queries: int
    used: dict[str, ResourceUse]


def measured(clicks: int, items: int) -> MeasuredRun:
    """A run in a process of its own."""
    from pebr_tf.data import synthetic

    with tempfile.TemporaryDirectory() as scratch:
        folder = f"{scratch}/data"
        spec = synthetic.SyntheticSpec(clicks=clicks, items=items)
        synthetic.write(spec, Path(folder), "parquet")
        synthetic.config(Path(folder)).dump(Path(folder) / "pebr.yaml")
        result = measure_apart("cost", "--measure", folder)
    used = {name: ResourceUse(*each) for name, each in result["used"].items()}
    return MeasuredRun(result["pairs"], result["queries"], used)


@dataclass(frozen=True)
class Rate:
    """Processor seconds of a component: a fixed part, and a part per million units.

    Attributes:
      fixed: Seconds at any size.
      unit: The unit that is counted: clicks, items, pairs; empty for a fixed cost only.
      per_million: Seconds per million units.
      gigabytes: The peak over the measured runs.
    """

    fixed: float
    unit: str
    per_million: float
    gigabytes: float

    def hours(self, counts: dict[str, float]) -> float:
        """Processor hours."""
        return (self.fixed + self.per_million * counts.get(self.unit, 0) / MILLION) / 3_600


def rates(clicks: int, items: int) -> dict[str, Rate]:
    """Measures three runs and fits a line through two points for each component."""
    console = Console(stderr=True)
    sizes = ((clicks, items), (TIMES * clicks, items), (clicks, TIMES * items))
    runs = []
    for number, size in enumerate(sizes, 1):
        console.print(f"[dim]run {number} of 3: {size[0]:,} clicks, {size[1]:,} items[/dim]")
        runs.append(measured(*size))
    small, of_clicks, of_items = runs
    console.print(f"[dim]{of_items.queries:,} queries were held out for calibration[/dim]")
    found = {}
    for name, used in small.used.items():
        peak = max(run.used[name].gigabytes for run in runs)
        if name == TRAINER:
            # Tracing and export take a few seconds of a minute; all of it is attributed to pairs.
            found[name] = Rate(0.0, "pairs", used.seconds / small.pairs * MILLION, peak)
            continue
        unit, large, count = "", used, 1
        if name in BY_CLICKS:
            unit, large, count = "clicks", of_clicks.used[name], clicks
        elif name in BY_ITEMS:
            unit, large, count = "items", of_items.used[name], items
        slope = max((large.seconds - used.seconds) / ((TIMES - 1) * count), 0.0)
        fixed = max(used.seconds - slope * count, 0.0) if unit else used.seconds
        if name in COMPARING:
            slope *= MOST_QUERIES / of_items.queries
        found[name] = Rate(fixed, unit, slope * MILLION, peak)
    return found


def report(found: dict[str, Rate]) -> None:
    """Prints the rates and the projected cost."""
    table = Table(title="processor seconds, measured")
    for title in ("component", "fixed", "per million", "unit", "peak GB"):
        table.add_column(title, justify="left" if title in ("component", "unit") else "right")
    for name, rate in found.items():
        row = (f"{rate.fixed:,.0f}", f"{rate.per_million:,.1f}" if rate.unit else "", rate.unit)
        table.add_row(name, *row, f"{rate.gigabytes:.1f}")
    sums = Table(title="processor hours: (fixed + seconds per million x millions) / 3,600")
    sums.add_column("component")
    for clicks, items, pairs in SIZES:
        head = f"{clicks:,.0f} clicks\n{items:,.0f} items\n{pairs:,.0f} pairs"
        sums.add_column(head, justify="right")
    names = ("clicks", "items", "pairs")
    totals = [0.0] * len(SIZES)
    for name, rate in found.items():
        hours = [rate.hours(dict(zip(names, size, strict=True))) for size in SIZES]
        totals = [total + each for total, each in zip(totals, hours, strict=True)]
        sums.add_row(name, *(f"{each:,.2f}" for each in hours))
    sums.add_section()
    sums.add_row("all", *(f"{total:,.1f}" for total in totals))
    console = Console(width=100)
    console.print(table)
    console.print(sums)


@click.command()
@click.option("--clicks", default=250_000, show_default=True)
@click.option("--items", default=25_000, show_default=True)
@click.option("--measure", "folder", hidden=True)
def main(clicks: int, items: int, folder: str | None) -> None:
    """Measure processor time and memory of every component."""
    if folder is not None:
        measure(folder)
        return
    report(rates(clicks, items))
