"""Processor time, memory and disk of each component as the log and the catalogue grow.

  python -m benchmarks scale
  python -m benchmarks scale --clicks 1000000 --items 100000

Runs the pipeline three times: on some clicks and items, on four times the clicks, and on four times
the items, each component in a process of its own. Measured are wall time, processor time (user and
system, with child processes), which hardly depends on the load of the machine, the peak of resident
memory, and the bytes of the artifacts. The three runs give an exponent in clicks and one in items,
and a fixed cost and a rate, whose sum projects the cost of a large log. Training has 1,000 steps at
every size. Memory is not extrapolated: docs/scale.md derives it.
"""

import json
import math
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.processes import measure_apart
from pebr_tf.config import Config

TIMES = 4
# Clicks, items and training pairs: three passes, one pass, and a tenth of one.
SIZES = ((1e6, 1e5, 3e6), (1e8, 1e6, 1e8), (1e10, 1e7, 1e9))
BY_CLICKS = ("ClickLogExampleGen", "Transform")
BY_ITEMS = ("IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher")
TRAINER = "Trainer"
STEPS, BATCH = 1_000, 512
MILLION = 1e6
# Processor seconds below which nothing is told apart.
INSTANT = 0.1


@dataclass(frozen=True)
class ResourceUse:
    """Resources that a component used.

    Attributes:
      seconds: Processor seconds.
      gigabytes: Resident at the peak.
      wall: Seconds.
      disk: Gigabytes of its artifacts.
    """

    seconds: float
    gigabytes: float
    wall: float
    disk: float = 0.0


class Meter:
    """A run display that records processor time and memory instead of showing progress."""

    def __init__(self) -> None:
        self.used: dict[str, ResourceUse] = {}
        self._began = self._wall = 0.0

    def begin(self, name: str) -> None:
        """A component begins."""
        # The peak is that of the process: it is set back to what is resident now.
        Path("/proc/self/clear_refs").write_text("5")
        self._began, self._wall = _processor_seconds(), time.monotonic()

    def end(self, name: str, took: str) -> None:
        """A component is done."""
        self.used[name] = ResourceUse(
            _processor_seconds() - self._began, _peak_gigabytes(), time.monotonic() - self._wall
        )


def _processor_seconds() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _peak_gigabytes() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 2**20


def config_of(folder: str) -> Config:
    """The configuration of a generated folder, with paths that do not depend on where it runs."""
    return Config.load(f"{folder}/pebr.yaml").replace_all(
        {
            "pipeline.root": f"{folder}/run",
            "pipeline.releases": f"{folder}/releases",
            # Long enough to measure a rate.
            "training.early_stop_patience": None,
            "training.steps": STEPS,
            "training.batch_size": BATCH,
        }
    )


def measure(folder: str, component: str) -> None:
    """Runs a component on a generated folder, in the run `scale`; prints what it used as JSON."""
    from pipeline.local_runner import run
    from pipeline.quiet import set_logging

    set_logging()
    meter = Meter()
    run(config_of(folder), meter, only=component, run_id="scale")
    files = Path(f"{folder}/run/artifacts/{component}").rglob("*")
    size = sum(path.stat().st_size for path in files if path.is_file())
    print(json.dumps({**vars(meter.used[component]), "disk": size / 2**30}))


def measured(clicks: int, items: int) -> dict[str, ResourceUse]:
    """What each component used in a run, in a process of its own."""
    from pebr_tf.data import synthetic
    from pipeline.pipeline import components_of

    with tempfile.TemporaryDirectory() as scratch:
        folder = f"{scratch}/data"
        spec = synthetic.SyntheticSpec(clicks=clicks, items=items)
        synthetic.write(spec, Path(folder), "parquet")
        synthetic.config(Path(folder)).dump(Path(folder) / "pebr.yaml")
        names = [node.id for node in components_of(config_of(folder))]
        return {
            name: ResourceUse(**measure_apart("scale", "--measure", folder, "--component", name))
            for name in names
        }


@dataclass(frozen=True)
class Rate:
    """Processor seconds of a component: a fixed part, and a part per million units.

    Attributes:
      fixed: Seconds at any size.
      unit: The unit that is counted: clicks, items, pairs; empty for a fixed cost only.
      per_million: Seconds per million units.
      gigabytes: The peak over the measured runs.
      exponents: In clicks and in items, of the processor seconds.
    """

    fixed: float
    unit: str
    per_million: float
    gigabytes: float
    exponents: tuple[float, float]

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
        console.print(used_table(runs[-1], size))
    small, of_clicks, of_items = runs
    found = {}
    for name, used in small.items():
        peak = max(run[name].gigabytes for run in runs)
        more = (of_clicks[name].seconds, of_items[name].seconds)
        in_clicks, in_items = (
            math.log(max(each, INSTANT) / max(used.seconds, INSTANT), TIMES) for each in more
        )
        if name == TRAINER:
            # Tracing and export take a few seconds of a minute; all of it is attributed to pairs.
            per_million = used.seconds / (STEPS * BATCH) * MILLION
            found[name] = Rate(0.0, "pairs", per_million, peak, (in_clicks, in_items))
            continue
        unit, large, count = "", used, 1
        if name in BY_CLICKS:
            unit, large, count = "clicks", of_clicks[name], clicks
        elif name in BY_ITEMS:
            unit, large, count = "items", of_items[name], items
        slope = max((large.seconds - used.seconds) / ((TIMES - 1) * count), 0.0)
        fixed = max(used.seconds - slope * count, 0.0) if unit else used.seconds
        found[name] = Rate(fixed, unit, slope * MILLION, peak, (in_clicks, in_items))
    return found


def used_table(used: dict[str, ResourceUse], size: tuple[int, int]) -> Table:
    """What the components of one run used."""
    table = Table(title=f"{size[0]:,} clicks, {size[1]:,} items")
    for title in ("component", "processor s", "wall s", "peak GB", "disk GB"):
        table.add_column(title, justify="left" if title == "component" else "right")
    for name, each in used.items():
        row = (f"{each.seconds:,.1f}", f"{each.wall:,.1f}")
        table.add_row(name, *row, f"{each.gigabytes:.2f}", f"{each.disk:.3f}")
    return table


def report(found: dict[str, Rate]) -> None:
    """Prints the rates and the projected cost."""
    table = Table(title="processor seconds, measured, and their exponents")
    titles = ("component", "fixed", "per million", "unit", "peak GB", "in clicks", "in items")
    for title in titles:
        table.add_column(title, justify="left" if title in ("component", "unit") else "right")
    for name, rate in found.items():
        row = (f"{rate.fixed:,.0f}", f"{rate.per_million:,.1f}" if rate.unit else "", rate.unit)
        exponents = (f"{each:.2f}" for each in rate.exponents)
        table.add_row(name, *row, f"{rate.gigabytes:.1f}", *exponents)
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
@click.option("--component", hidden=True)
def main(clicks: int, items: int, folder: str | None, component: str | None) -> None:
    """Measure processor time, memory and disk of every component as the data grow."""
    if folder is not None and component is not None:
        measure(folder, component)
        return
    report(rates(clicks, items))
