"""The retrieval service under load, against a minimal service.

  python -m benchmarks serving --release demo/releases --data demo/data

Both serve the same release over HTTP with JSON, from processes of their own, as many as there are
cores; so do the clients, which send the next request as soon as the last one is answered (closed
loop). The baseline, plain_service.py, returns a fixed number of items, the average of the product,
so that answers have the same size. It is measured with its handler in threads and on the event
loop, in one process and in as many as the product has, and the best one counts. The product has no
cache, but in the last two rows: there each query is new, or drawn from the click log. All take
turns in several rounds of a few seconds. Printed are the medians over rounds and the percentiles
over the requests of all rounds.
"""

import json
import os
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
from pebr_tf.release.release import find_release

# Clients, and queries per request.
LOADS = ((1, 1), (8, 1), (64, 1), (8, 32))
COLD, LOG = "each query new, cache on", "traffic of the log, cache on"
PERCENTILES = (50, 99, 99.9)
OURS, GRPC = "pebr serve", "pebr serve, gRPC"


@dataclass
class LoadFigures:
    """Measurements of one service under one load, over all rounds."""

    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    timings: list[dict[str, float]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Queries per second."""
        return statistics.median(self.rates)

    def percentiles(self) -> list[float]:
        """Latency of a request in milliseconds."""
        return [float(each) * 1e3 for each in np.percentile(self.latencies, PERCENTILES)]


@contextmanager
def plain_service(release: Path, top_k: int, handler: str, workers: int) -> Iterator[str]:
    """The baseline; yields its URL when all processes can answer."""
    command = [sys.executable, "-m", "benchmarks.plain_service", "--release", str(release)]
    command += ["--top-k", str(top_k), handler, "--workers", str(workers)]
    with terminated(command, stdout=subprocess.PIPE) as process:
        ports = [int(process.stdout.readline()) for _ in range(workers)]
        yield f"http://127.0.0.1:{ports[0]}"


def load(url: str, queries: Path, clients: int, batch: int, seconds: float) -> dict:
    """One round."""
    process = closed_loop(url, queries, clients, batch=batch, seconds=seconds, warm_up=1)
    result: dict = json.loads(process.communicate()[0])
    if result["failures"]:
        raise SystemExit(f"every request must be answered. Received: {result['failures']}.")
    return result


def average_items(url: str, texts: list[str]) -> float:
    """Mean number of items per query that our service returns."""
    body = json.dumps({"queries": texts}).encode()
    request = urllib.request.Request(
        f"{url}/v1/retrieve", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return statistics.mean(each["count"] for each in json.load(answer)["results"])


def print_rates(console: Console, measured: dict) -> None:
    """Queries per second and latencies of all services."""
    columns = ("q/s", "p50 ms", "p99 ms", "p99.9 ms", "q/s ratio", "p99 ratio")
    table = Table("load", "service", *columns)
    for title, services in measured.items():
        plain = [name for name in services if name not in (OURS, GRPC)]
        rival = max(plain, key=lambda name: services[name].rate)
        for number, name in enumerate(each for each in (OURS, GRPC, rival) if each in services):
            each, other = services[name], services[rival]
            ratios = ["", ""]
            if name != rival:
                ratios = [
                    f"{each.rate / other.rate:.2f}",
                    f"{each.percentiles()[1] / other.percentiles()[1]:.2f}",
                ]
            figures = [f"{value:.1f}" for value in each.percentiles()]
            first = title if number == 0 else ""
            table.add_row(first, name, f"{each.rate:,.0f}", *figures, *ratios)
    console.print(table)


def print_stages(console: Console, measured: dict) -> None:
    """Latency of our service by stage."""
    table = Table("load", "stage", *(f"p{each:g} ms" for each in PERCENTILES))
    lines = []
    for title, services in measured.items():
        ours = services[OURS]
        names = list(ours.timings[0])
        columns = {name: [each[name] for each in ours.timings] for name in names}
        columns["client"] = [seconds * 1e3 for seconds in ours.latencies]
        for number, (name, values) in enumerate(columns.items()):
            first = title if number == 0 else ""
            table.add_row(first, name, *(f"{v:.2f}" for v in np.percentile(values, PERCENTILES)))
        total = sum(each["total"] for each in ours.timings)
        useful = sum(each["encode"] + each["search"] for each in ours.timings)
        lines.append(
            f"{title}: {1 - useful / total:.0%} of a request's time in the service is not encode "
            "or search"
        )
    console.print(table)
    console.print("\n".join(lines))


def hit_rates(url: str) -> dict[str, float]:
    """Share of the queries and responses that our service had in its caches."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    counts: dict[str, dict[str, float]] = {}
    for family in families:
        for sample in family.samples:
            if sample.name == "pebr_cache_total":
                counts.setdefault(sample.labels["cache"], {})[sample.labels["outcome"]] = (
                    sample.value
                )
    return {name: each["hit"] / sum(each.values()) for name, each in counts.items()}


@click.command()
@click.option("--release", type=click.Path(path_type=Path, exists=True), default="demo/releases")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    default="demo/data",
    help="Folder with queries.parquet and clicks/, as `pebr generate` writes it.",
)
@click.option("--rounds", type=int, default=3, show_default=True)
@click.option("--seconds", type=float, default=5.0, show_default=True, help="Length of a round.")
def main(release: Path, data: Path, rounds: int, seconds: float) -> None:
    """Print rates, latencies by stage, and the share that is neither encoding nor search."""
    console = Console(width=130)
    directory = find_release(release).resolve()
    generator = np.random.default_rng(0)
    texts = pq.read_table(data / "queries.parquet", columns=["query"])["query"].to_pylist()
    texts = generator.permutation(texts).tolist()
    clicked = pq.read_table(data / "clicks", columns=["query"])["query"].to_pylist()
    traffic = {
        "queries": texts,
        COLD: [f"{text} {number}" for number in range(25) for text in texts],
        LOG: [clicked[row] for row in generator.permutation(len(clicked))[:200_000]],
    }
    workers = min(len(os.sched_getaffinity(0)), 4)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for number, (name, lines) in enumerate(traffic.items()):
            path = Path(folder) / f"{number}.txt"
            path.write_text("\n".join(lines), encoding="utf-8")
            traffic[name] = path
        cached, _, _ = stack.enter_context(pebr_serve("--release", str(directory)))
        config = Path(folder) / "pebr.yaml"
        config.write_text("serving:\n  cache: {queries: 0, responses: 0}\n")
        options = ("--release", str(directory), "--config", str(config))
        url, address, _ = stack.enter_context(pebr_serve(*options))
        top_k = round(average_items(url, texts[:250]))
        console.print(f"{len(texts):,} queries; {top_k} items per query; {workers} processes")
        plain = {}
        for name, handler in (("threads", "--in-threads"), ("loop", "--on-loop")):
            for count in sorted({1, workers}):
                process = plain_service(directory, top_k, handler, count)
                plain[f"plain, {name} x {count}"] = stack.enter_context(process)
        measured: dict[str, dict[str, LoadFigures]] = {}
        rows = [
            (f"{clients} clients x {batch}", clients, batch, "queries", {OURS: url, GRPC: address})
            for clients, batch in LOADS
        ]
        rows += [(f"64 clients, {name}", 64, 1, name, {OURS: cached}) for name in (COLD, LOG)]
        for _ in range(rounds):
            for title, clients, batch, name, ours in rows:
                for service, target in {**ours, **plain}.items():
                    result = load(target, traffic[name], clients, batch, seconds)
                    services = measured.setdefault(title, {})
                    into = services.setdefault(service, LoadFigures())
                    into.rates.append(result["queries"] / result["seconds"])
                    into.latencies += result["latencies"]
                    into.timings += result["timings"]
        rates = hit_rates(cached)
    print_rates(console, measured)
    print_stages(console, measured)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in rates.items())
    console.print(f"found in the caches, in both rows with a cache: {shares}")
