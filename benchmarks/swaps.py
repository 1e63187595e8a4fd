"""A new release every few seconds under 64 clients: are requests lost, and does memory grow?

python -m benchmarks swaps --release demo/releases --queries demo/data/queries.parquet
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow.parquet as pq
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from benchmarks.processes import closed_loop, pebr_serve
from pebr_tf.release.release import ReleaseManifest, find_release

CLIENTS = 64


def push_again(release: Path, releases: Path, version: int) -> None:
    """Publishes the same release under another version, atomically."""
    scratch = releases / f".{version}"
    shutil.copytree(release, scratch, copy_function=os.link)
    manifest = ReleaseManifest.load(scratch)
    (scratch / manifest.FILE).unlink()
    replace(manifest, version=version).save(scratch)
    scratch.rename(releases / str(version))


def metric(url: str, name: str) -> float:
    """The value of a metric without labels."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return next(s.value for family in families for s in family.samples if s.name == name)


def memory(process: subprocess.Popen) -> int:
    """Resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


@click.command()
@click.option("--release", type=click.Path(path_type=Path, exists=True), default="demo/releases")
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True),
    default="demo/data/queries.parquet",
    help="Parquet with the column `query`.",
)
@click.option("--seconds", type=float, default=60.0, show_default=True)
@click.option("--every", type=float, default=5.0, show_default=True, help="Seconds between pushes.")
def main(release: Path, queries: Path, seconds: float, every: float) -> None:
    """Print answers, failures, swaps, latencies and memory."""
    console = Console()
    release = find_release(release).resolve()
    texts = pq.read_table(queries, columns=["query"])["query"].to_pylist()[:20_000]
    first = ReleaseManifest.load(release).version
    with tempfile.TemporaryDirectory(dir=release.parent) as folder:
        releases = Path(folder)
        listed = releases / "queries.txt"
        listed.write_text("\n".join(texts), encoding="utf-8")
        config = releases / "serve.yaml"
        config.write_text("serving:\n  poll_seconds: 0.5\n")
        push_again(release, releases, first)
        options = ("--releases", str(releases), "--config", str(config))
        with pebr_serve(*options) as (url, _, server):
            clients = closed_loop(url, listed, CLIENTS, seconds=seconds, warm_up=0)
            used, version = [memory(server)], first
            next_push = time.monotonic() + every
            output = ""
            while clients.poll() is None:
                try:
                    output, _ = clients.communicate(timeout=max(next_push - time.monotonic(), 0.1))
                except subprocess.TimeoutExpired:
                    version += 1
                    push_again(release, releases, version)
                    next_push += every
                    used.append(memory(server))
            swaps = metric(url, "pebr_release_swaps_total")
        code = server.returncode
    result = json.loads(output)
    p50, p99 = np.percentile(result["latencies"], (50, 99)) * 1e3
    console.print(
        f"{result['requests']:,} answers from {len(result['releases'])} releases, "
        f"{sum(result['failures'].values())} failures; {swaps:.0f} swaps, {version - first} pushes"
    )
    for name, count in result["failures"].items():
        console.print(f"  {count} x {name}")
    console.print(f"p50 {p50:.1f} ms, p99 {p99:.1f} ms; exit code {code}")
    console.print(f"memory, MiB, at each push: {', '.join(map(str, used))}")
