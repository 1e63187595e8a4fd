"""What each component needs, from measured rates: processor time and memory for logs of any size.

  python -m benchmarks cost
  python -m benchmarks cost --clicks 500000 --items 50000

Runs the pipeline three times: on some clicks and items, on four times the clicks, and on four times
the items, each in a process of its own. What counts is processor time, user and system, with that
of child processes, which a busy machine hardly changes; and the peak of resident memory. From the
three come a fixed cost and a rate for each component, and from these, by a sum that is printed,
what a large log takes. Components that compare items with held-out queries are reckoned for the
20,000 queries that they look at, at most. Memory is not extrapolated: docs/running-on-vertex.md
derives it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

TIMES = 4
# Clicks, items, and pairs that are trained on: three passes, one pass, and a tenth of one.
SIZES = ((1e6, 1e5, 3e6), (1e8, 1e6, 1e8), (1e10, 1e7, 1e9))
BY_CLICKS = ("ClickLogExampleGen", "StatisticsGen", "Transform")
BY_ITEMS = ("IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher")
# Of these the ones that compare items with held-out queries, of which there are so many at most.
COMPARING = ("CutoffCalibrator", "RetrievalEvaluator")
MOST_QUERIES = 20_000
TRAINER = "Trainer"
MILLION = 1e6


@dataclass(frozen=True)
class Used:
    """What a component has used.

    Attributes:
      seconds: Of a processor.
      gigabytes: Resident at the peak.
    """

    seconds: float
    gigabytes: float


class Meter:
    """The display of a run that notes processor time and memory."""

    def __init__(self) -> None:
        self.used: dict[str, Used] = {}
        self._began = 0.0

    def begin(self, name: str) -> None:
        """A component begins."""
        # The peak is that of the process: it is set back to what is resident now.
        Path("/proc/self/clear_refs").write_text("5")
        self._began = _processor_seconds()

    def end(self, name: str, seconds: float, cached: bool) -> None:
        """A component is done."""
        self.used[name] = Used(_processor_seconds() - self._began, _peak_gigabytes())


def _processor_seconds() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _peak_gigabytes() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 2**20


def measure(folder: str) -> None:
    """Runs the pipeline of a generated folder; prints what was used as JSON."""
    # This folder has a serving.py, which is not the package.
    from pebr_tf.config import Config
    from pipeline.local_runner import run
    from pipeline.quiet import set_logging

    set_logging()
    config = Config.load(f"{folder}/pebr.yaml").replace_all(
        {
            "pipeline.root": f"{folder}/run",
            "pipeline.releases": f"{folder}/releases",
            # Only so long that a rate can be told.
            "training.early_stop_patience": None,
            "training.steps": 1_000,
        }
    )
    meter = Meter()
    outcome = run(config, meter)
    told = {
        "pairs": config.training.steps * config.training.batch_size,
        "queries": outcome.evaluation["data"]["calibrate_queries"],
        "used": {name: [each.seconds, each.gigabytes] for name, each in meter.used.items()},
    }
    print(json.dumps(told))


@dataclass(frozen=True)
class Run:
    """A run that was measured.

    Attributes:
      pairs: That were trained on.
      queries: Held out for calibration.
      used: What each component used.
    """

    pairs: int
    queries: int
    used: dict[str, Used]


def measured(clicks: int, items: int) -> Run:
    """A run in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = f"{scratch}/data"
        arguments = ["generate", "--out", folder, "--clicks", str(clicks), "--items", str(items)]
        _python("-m", "pebr_tf.cli.main", *arguments)
        told = json.loads(_python(__file__, "--measure", folder).splitlines()[-1])
    used = {name: Used(*each) for name, each in told["used"].items()}
    return Run(told["pairs"], told["queries"], used)


def _python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


@dataclass(frozen=True)
class Rate:
    """Processor seconds of a component: fixed, and for every million of something.

    Attributes:
      fixed: Seconds whatever the size.
      of: What is counted: clicks, items, pairs; nothing for a fixed cost alone.
      a_million: Seconds.
      gigabytes: At the peak of the runs that were measured.
    """

    fixed: float
    of: str
    a_million: float
    gigabytes: float

    def hours(self, counts: dict[str, float]) -> float:
        """Processor hours."""
        return (self.fixed + self.a_million * counts.get(self.of, 0) / MILLION) / 3_600


def rates(clicks: int, items: int) -> dict[str, Rate]:
    """Measures, and draws a line through two points for each component."""
    console = Console(stderr=True)
    sizes = ((clicks, items), (TIMES * clicks, items), (clicks, TIMES * items))
    runs = []
    for place, size in enumerate(sizes):
        console.print(f"[dim]run {place + 1} of 3: {size[0]:,} clicks, {size[1]:,} items[/dim]")
        runs.append(measured(*size))
    small, of_clicks, of_items = runs
    console.print(f"[dim]{of_items.queries:,} queries were held out for calibration[/dim]")
    found = {}
    for name, used in small.used.items():
        peak = max(run.used[name].gigabytes for run in runs)
        if name == TRAINER:
            # Tracing and export are a few seconds of a minute: all of it counts as the pairs'.
            found[name] = Rate(0.0, "pairs", used.seconds / small.pairs * MILLION, peak)
            continue
        of, large, count = "", used, 1
        if name in BY_CLICKS:
            of, large, count = "clicks", of_clicks.used[name], clicks
        elif name in BY_ITEMS:
            of, large, count = "items", of_items.used[name], items
        slope = max((large.seconds - used.seconds) / ((TIMES - 1) * count), 0.0)
        fixed = max(used.seconds - slope * count, 0.0) if of else used.seconds
        if name in COMPARING:
            slope *= MOST_QUERIES / of_items.queries
        found[name] = Rate(fixed, of, slope * MILLION, peak)
    return found


def report(found: dict[str, Rate]) -> None:
    """Prints the rates, and what they come to."""
    table = Table(title="processor seconds, measured")
    for title in ("component", "fixed", "a million", "of", "peak GB"):
        table.add_column(title, justify="left" if title in ("component", "of") else "right")
    for name, rate in found.items():
        row = (f"{rate.fixed:,.0f}", f"{rate.a_million:,.1f}" if rate.of else "", rate.of)
        table.add_row(name, *row, f"{rate.gigabytes:.1f}")
    sums = Table(title="processor hours: (fixed + seconds a million x millions) / 3,600")
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
    """Measure what the components need."""
    if folder is not None:
        measure(folder)
        return
    report(rates(clicks, items))
