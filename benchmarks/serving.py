"""The retrieval service under load, against a minimal service.

  python -m benchmarks serving --release demo/releases --queries demo/data/queries.parquet

Both serve the same release over HTTP with JSON, each from a process of its own; so do the clients,
which send the next request as soon as the last one is answered (closed loop). The baseline,
plain_service.py, returns a fixed number of items, the average of the product, so that
answers have the same size. It is measured with its handler in threads and on the event loop, and
the better one counts. All take turns in several rounds of a few seconds. Printed are the medians
over rounds and the percentiles over the requests of all rounds.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
import pyarrow.parquet as pq
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from benchmarks.processes import closed_loop, pebr_serve, terminated
from pebr_tf.release.versions import served

# Clients, and queries per request.
LOADS = ((1, 1), (8, 1), (64, 1), (8, 32))
PERCENTILES = (50, 99, 99.9)
OURS, THREADS, LOOP = "pebr serve", "plain, in threads", "plain, on the loop"


@dataclass
class LoadFigures:
    """Measurements of one service under one load, over all rounds."""

    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    timings: list[dict[str, float]] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Queries per second."""
        return statistics.median(self.rates)

    def percentiles(self) -> list[float]:
        """Latency of a request in milliseconds."""
        return [float(each) * 1e3 for each in np.percentile(self.latencies, PERCENTILES)]


@contextmanager
def plain_service(release: Path, top_k: int, handler: str) -> Iterator[str]:
    """The baseline; yields its URL."""
    command = [sys.executable, "-m", "benchmarks.plain_service", "--release", str(release)]
    command += ["--top-k", str(top_k), handler]
    with terminated(command, stdout=subprocess.PIPE) as process:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


def load(url: str, queries: Path, clients: int, batch: int, seconds: float) -> dict:
    """One round."""
    process = closed_loop(url, queries, clients, batch=batch, seconds=seconds, warm_up=1)
    result: dict = json.loads(process.communicate()[0])
    if result["failures"]:
        raise SystemExit(f"every request must be answered. Received: {result['failures']}.")
    return result


def busy_seconds(url: str) -> float:
    """Seconds that our service has spent on encoding and searching since its start."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "pebr_busy_seconds_total"
        and sample.labels["stage"] in ("encode", "search")
    )


def average_items(url: str, texts: list[str]) -> float:
    """Mean number of items per query that our service returns."""
    body = json.dumps({"queries": texts}).encode()
    request = urllib.request.Request(
        f"{url}/v1/retrieve", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return statistics.mean(each["count"] for each in json.load(answer)["results"])


def print_rates(console: Console, measured: dict) -> None:
    """Queries per second and latencies of both services."""
    table = Table(
        "load", "service", *("q/s", "p50 ms", "p99 ms", "p99.9 ms", "q/s ratio", "p99 ratio")
    )
    for clients, batch in LOADS:
        rival = max((THREADS, LOOP), key=lambda name: measured[name, clients, batch].rate)
        title = f"{clients} clients" + (f", {batch} queries each" if batch > 1 else "")
        for name in (OURS, rival):
            each = measured[name, clients, batch]
            ratios = ["", ""]
            if name == OURS:
                other = measured[rival, clients, batch]
                ratios = [
                    f"{each.rate / other.rate:.1f}",
                    f"{each.percentiles()[1] / other.percentiles()[1]:.2f}",
                ]
            figures = [f"{value:.1f}" for value in each.percentiles()]
            table.add_row(
                title if name == OURS else "", name, f"{each.rate:,.0f}", *figures, *ratios
            )
    console.print(table)


def print_stages(console: Console, measured: dict) -> None:
    """Latency of our service by stage."""
    table = Table("load", "stage", *(f"p{each:g} ms" for each in PERCENTILES))
    for clients, batch in LOADS:
        ours = measured[OURS, clients, batch]
        names = list(ours.timings[0])
        columns = {name: [each[name] for each in ours.timings] for name in names}
        columns["client"] = [seconds * 1e3 for seconds in ours.latencies]
        for number, (name, values) in enumerate(columns.items()):
            title = f"{clients} clients x {batch}" if number == 0 else ""
            table.add_row(title, name, *(f"{v:.2f}" for v in np.percentile(values, PERCENTILES)))
    console.print(table)
    for clients, batch in LOADS:
        ours = measured[OURS, clients, batch]
        total = sum(each["total"] for each in ours.timings)
        useful = sum(each["encode"] + each["search"] for each in ours.timings)
        console.print(
            f"{clients} clients x {batch}: {1 - useful / total:.0%} of a request's time in the "
            f"service is not encode or search; {statistics.median(ours.idle):.0%} of the time "
            "nothing was encoded or searched"
        )


@click.command()
@click.option("--release", type=click.Path(path_type=Path, exists=True), default="demo/releases")
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True),
    default="demo/data/queries.parquet",
    help="Parquet with the column `query`.",
)
@click.option("--rounds", type=int, default=3, show_default=True)
@click.option("--seconds", type=float, default=5.0, show_default=True, help="Length of a round.")
def main(release: Path, queries: Path, rounds: int, seconds: float) -> None:
    """Print rates, latencies by stage, and the share that is neither encoding nor search."""
    console = Console(width=120)
    directory = (release / str(served(release)[-1]) if served(release) else release).resolve()
    texts = pq.read_table(queries, columns=["query"])["query"].to_pylist()
    texts = np.random.default_rng(0).permutation(texts)[:20_000].tolist()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        listed = Path(folder) / "queries.txt"
        listed.write_text("\n".join(texts), encoding="utf-8")
        url, _ = stack.enter_context(pebr_serve("--release", str(directory)))
        urls = {OURS: url}
        top_k = round(average_items(urls[OURS], texts[:250]))
        console.print(f"{len(texts):,} queries; {top_k} items per query on average")
        for name, handler in ((THREADS, "--in-threads"), (LOOP, "--on-loop")):
            urls[name] = stack.enter_context(plain_service(directory, top_k, handler))
        measured: dict[tuple[str, int, int], LoadFigures] = {}
        for _ in range(rounds):
            for clients, batch in LOADS:
                for name, url in urls.items():
                    before = busy_seconds(url) if name == OURS else 0.0
                    result = load(url, listed, clients, batch, seconds)
                    into = measured.setdefault((name, clients, batch), LoadFigures())
                    into.rates.append(result["queries"] / result["seconds"])
                    into.latencies += result["latencies"]
                    into.timings += result["timings"]
                    if name == OURS:
                        # The second of warm-up is under load, too.
                        spent = busy_seconds(url) - before
                        into.idle.append(1 - spent / (result["seconds"] + 1))
    print_rates(console, measured)
    print_stages(console, measured)
