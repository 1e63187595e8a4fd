"""The retrieval service under load, against the service that one writes in an afternoon.

  python -m benchmarks serving --release demo/releases --queries demo/data/queries.parquet

Both serve the same release over HTTP with JSON, from a process of their own; the clients, a process
as well, ask again as soon as they are answered (closed loop). The rival, plain_service.py, returns
a fixed number of items, the average of ours for these queries, so that answers are of one size; it
is measured with its handler in threads and on the loop, and the better one counts. All take turns,
several rounds of a few seconds each; the medians over rounds are printed, with the percentiles of
all requests of all rounds.
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

from serving.versions import served

# This folder is first on the path, where this file would stand for the package of its name.

HERE = Path(__file__).parent
# Clients and queries a request.
LOADS = ((1, 1), (8, 1), (64, 1), (8, 32))
PERCENTILES = (50, 99, 99.9)
OURS, THREADS, LOOP = "pebr serve", "plain, in threads", "plain, on the loop"


@dataclass
class Measured:
    """What the rounds of one service under one load gave."""

    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    timings: list[dict[str, float]] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Queries a second."""
        return statistics.median(self.rates)

    def percentiles(self) -> list[float]:
        """Milliseconds of a request."""
        return [float(each) * 1e3 for each in np.percentile(self.latencies, PERCENTILES)]


@contextmanager
def pebr_serve(release: Path) -> Iterator[str]:
    """Our service; yields its URL."""
    command = [sys.executable, "-m", "pebr_tf.cli.main", "serve", "--release", str(release)]
    command += ["--http-port", "0", "--grpc-port", "0"]
    with _process(command, stderr=subprocess.PIPE) as process:
        for line in process.stderr:
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("event") == "listening":
                break
        else:
            raise SystemExit("pebr serve must listen. Received: nothing.")
        # Its log is read, or it would wait for a reader.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        yield f"http://127.0.0.1:{event['http_port']}"
    drain.wait()


@contextmanager
def plain_service(release: Path, top_k: int, handler: str) -> Iterator[str]:
    """The rival; yields its URL."""
    command = [sys.executable, str(HERE / "plain_service.py"), "--release", str(release)]
    command += ["--top-k", str(top_k), handler]
    with _process(command, stdout=subprocess.PIPE) as process:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


@contextmanager
def _process(command: list[str], **streams: int) -> Iterator[subprocess.Popen]:
    quiet = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **streams}
    process = subprocess.Popen(command, text=True, **quiet)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def load(url: str, queries: Path, clients: int, batch: int, seconds: float) -> dict:
    """One round."""
    command = [sys.executable, str(HERE / "closed_loop.py"), f"{url}/v1/retrieve"]
    command += ["--queries", str(queries), "--clients", str(clients), "--batch", str(batch)]
    command += ["--seconds", str(seconds), "--warm-up", "1"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    if result["failures"]:
        raise SystemExit(f"every request must be answered. Received: {result['failures']}.")
    return result


def busy_seconds(url: str) -> float:
    """What our service has spent on encoding and searching since it began."""
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
    """How many items our service returns for a query, over some of the queries."""
    body = json.dumps({"queries": texts}).encode()
    request = urllib.request.Request(
        f"{url}/v1/retrieve", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return statistics.mean(each["count"] for each in json.load(answer)["results"])


def print_rates(console: Console, measured: dict) -> None:
    """Queries a second and latencies of both services."""
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
    """Where the time of our requests goes."""
    table = Table("load", "stage", *(f"p{each:g} ms" for each in PERCENTILES))
    for clients, batch in LOADS:
        ours = measured[OURS, clients, batch]
        names = list(ours.timings[0])
        columns = {name: [each[name] for each in ours.timings] for name in names}
        columns["client"] = [seconds * 1e3 for seconds in ours.latencies]
        for place, (name, values) in enumerate(columns.items()):
            title = f"{clients} clients x {batch}" if place == 0 else ""
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
@click.option("--seconds", type=float, default=5.0, show_default=True, help="Of a round.")
def main(release: Path, queries: Path, rounds: int, seconds: float) -> None:
    """Prints rates, latencies by stage, and the share that is neither encoding nor search."""
    console = Console(width=120)
    directory = (release / str(served(release)[-1]) if served(release) else release).resolve()
    texts = pq.read_table(queries, columns=["query"])["query"].to_pylist()
    texts = np.random.default_rng(0).permutation(texts)[:20_000].tolist()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        listed = Path(folder) / "queries.txt"
        listed.write_text("\n".join(texts), encoding="utf-8")
        urls = {OURS: stack.enter_context(pebr_serve(directory))}
        top_k = round(average_items(urls[OURS], texts[:250]))
        console.print(f"{len(texts):,} queries; {top_k} items a query on average")
        for name, handler in ((THREADS, "--in-threads"), (LOOP, "--on-loop")):
            urls[name] = stack.enter_context(plain_service(directory, top_k, handler))
        measured: dict[tuple[str, int, int], Measured] = {}
        for _ in range(rounds):
            for clients, batch in LOADS:
                for name, url in urls.items():
                    before = busy_seconds(url) if name == OURS else 0.0
                    result = load(url, listed, clients, batch, seconds)
                    into = measured.setdefault((name, clients, batch), Measured())
                    into.rates.append(result["queries"] / result["seconds"])
                    into.latencies += result["latencies"]
                    into.timings += result["timings"]
                    if name == OURS:
                        # The second of warm-up is a second of load as well.
                        spent = busy_seconds(url) - before
                        into.idle.append(1 - spent / (result["seconds"] + 1))
    print_rates(console, measured)
    print_stages(console, measured)
