"""Swaps, killed workers and malformed calls under 64 clients: what is lost, is an answer wrong?

  python -m benchmarks soak --release demo/releases --queries demo/data/queries.parquet

Every answer is compared with the first one to the same query. A call is lost if its connection ends
before the answer; those of a killed worker are, and no others may be.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import click
import numpy as np
import pyarrow.parquet as pq
import uvloop
from rich.console import Console

from benchmarks.processes import pebr_serve
from pebr_tf.release.release import ReleaseManifest, find_release

CLIENTS = 64
MALFORMED = (b"", b"{", b'{"queries": 3}', b'{"queries": ["a"], "recall": 7}', b'{"querys": ["a"]}')
# A call that ends so soon after a kill was with the killed worker.
KILL_SECONDS = 1.0
# Scores this close may come in either order.
CLOSE = 1e-5
BEST = 3


@dataclass
class Soak:
    """What happened to the calls.

    Attributes:
      answers: Calls that were answered, by release.
      rejected: Malformed calls that were rejected as such.
      wrong: Answers that differ from the first to the same query, and other statuses.
      lost: Calls whose connections ended in the second after a kill.
      lost_otherwise: Calls whose connections ended at other times.
      latencies: Seconds of the answered calls, and the times of their ends.
      memory: MiB of all processes, what they share counted once, by the second.
    """

    answers: Counter[int] = field(default_factory=Counter)
    rejected: int = 0
    wrong: list[str] = field(default_factory=list)
    lost: int = 0
    lost_otherwise: int = 0
    latencies: list[tuple[float, float]] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)
    swaps: list[float] = field(default_factory=list)
    first: dict[str, dict[str, float]] = field(default_factory=dict)

    def check(self, query: str, body: bytes) -> None:
        """Counts an answer, and compares it with the first one to its query."""
        content = json.loads(body)
        self.answers[content["release"]] += 1
        (result,) = content["results"]
        best = {item["item_id"]: item["score"] for item in result["items"]}
        first = self.first.setdefault(query, best)
        last = list(first.values())[:BEST][-1] if first else 0.0
        expected = {item for item, score in first.items() if score > last + CLOSE}
        if not expected <= set(list(best)[:BEST]):
            self.wrong.append(f"{query}: {list(best)[:BEST]} instead of {list(first)[:BEST]}")

    def ended(self, now: float) -> None:
        """Counts a call whose connection ended before its answer."""
        if any(0 <= now - kill <= KILL_SECONDS for kill in self.kills):
            self.lost += 1
        else:
            self.lost_otherwise += 1


def push_again(release: Path, releases: Path, version: int) -> None:
    """Publishes the same release under another version, atomically."""
    scratch = releases / f".{version}"
    shutil.copytree(release, scratch, copy_function=os.link)
    manifest = ReleaseManifest.load(scratch)
    (scratch / manifest.FILE).unlink()
    replace(manifest, version=version).save(scratch)
    scratch.rename(releases / str(version))


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    return [
        int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def memory_of(process: int) -> float:
    """MiB of a process and its children; what several of them hold counts once."""
    total = 0
    for each in (process, *children(process)):
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


async def client(
    url: str, queries: list[str], end: float, soak: Soak, source: random.Random
) -> None:
    """One client, which connects again whenever its connection has ended."""
    parts = urlsplit(url)
    reader = writer = None
    while time.monotonic() < end:
        malformed = source.random() < 0.1
        query = source.choice(queries)
        body = source.choice(MALFORMED) if malformed else json.dumps({"queries": [query]}).encode()
        began = time.monotonic()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            head = f"POST /v1/retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            content = await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            soak.ended(time.monotonic())
            writer = None
            continue
        status = int(answer.split(b" ", 2)[1])
        if malformed and status == 422:
            soak.rejected += 1
        elif malformed or status != 200:
            soak.wrong.append(f"status {status}: {content[:200]!r}")
        else:
            soak.check(query, content)
            soak.latencies.append((time.monotonic(), time.monotonic() - began))
        if b"\r\nconnection: close" in answer:
            writer.close()
            writer = None
    if writer is not None:
        writer.close()


async def run(
    url: str,
    process: int,
    queries: list[str],
    seconds: float,
    swap_every: float,
    kill_every: float,
    push: Callable[[], None],
) -> Soak:
    """Loads the service for some seconds; `push` publishes a new version."""
    soak, begin = Soak(), time.monotonic()
    end = begin + seconds
    tasks = [
        asyncio.create_task(client(url, queries, end, soak, random.Random(number)))
        for number in range(CLIENTS)
    ]
    next_swap, next_kill = begin + swap_every, begin + kill_every
    while time.monotonic() < end:
        await asyncio.sleep(1)
        now = time.monotonic()
        soak.memory.append(memory_of(process))
        if now >= next_swap:
            push()
            soak.swaps.append(now)
            next_swap += swap_every
        if now >= next_kill:
            soak.kills.append(now)
            os.kill(random.choice(children(process)), signal.SIGKILL)
            next_kill += kill_every
    await asyncio.gather(*tasks)
    return soak


def soak_release(
    release: Path, texts: list[str], seconds: float, swap_every: float, kill_every: float
) -> tuple[Soak, int]:
    """Serves copies of a release under load; returns what happened, and the exit code."""
    version = ReleaseManifest.load(release).version
    with tempfile.TemporaryDirectory(dir=release.parent.parent) as folder:
        releases = Path(folder)
        config = releases / "serve.yaml"
        config.write_text("serving:\n  poll_seconds: 0.5\n")
        versions = iter(range(version, version + 1_000_000))
        push_again(release, releases, next(versions))
        options = ("--releases", str(releases), "--config", str(config))
        with pebr_serve(*options) as (url, _, server):
            soak = uvloop.new_event_loop().run_until_complete(
                run(
                    url,
                    server.pid,
                    texts,
                    seconds,
                    swap_every,
                    kill_every,
                    lambda: push_again(release, releases, next(versions)),
                )
            )
        return soak, server.returncode


@click.command()
@click.option("--release", type=click.Path(path_type=Path, exists=True), default="demo/releases")
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True),
    default="demo/data/queries.parquet",
    help="Parquet with the column `query`.",
)
@click.option("--seconds", type=float, default=600.0, show_default=True)
@click.option("--swap-every", type=float, default=20.0, show_default=True, help="Seconds.")
@click.option("--kill-every", type=float, default=30.0, show_default=True, help="Seconds.")
def main(
    release: Path, queries: Path, seconds: float, swap_every: float, kill_every: float
) -> None:
    """Print answers, losses, latencies and memory."""
    console = Console(width=110)
    texts = pq.read_table(queries, columns=["query"])["query"].to_pylist()[:2_000]
    directory = find_release(release).resolve()
    soak, code = soak_release(directory, texts, seconds, swap_every, kill_every)
    console.print(
        f"{sum(soak.answers.values()):,} answers from {len(soak.answers)} releases, "
        f"{soak.rejected:,} malformed calls rejected, {len(soak.wrong)} wrong; "
        f"{len(soak.swaps)} pushes, {len(soak.kills)} kills; "
        f"{soak.lost} calls lost with killed workers, {soak.lost_otherwise} otherwise; "
        f"exit code {code}"
    )
    for text in soak.wrong[:5]:
        console.print(f"  {text}")
    times, latencies = np.array(soak.latencies).T
    # A swap takes a few seconds after its push.
    swapping = np.zeros(len(times), bool)
    for push in soak.swaps:
        swapping |= (times >= push) & (times < push + swap_every / 2)
    for name, chosen in (("during swaps", swapping), ("at other times", ~swapping)):
        if chosen.any():
            p50, p99 = np.percentile(latencies[chosen], (50, 99)) * 1e3
            console.print(f"{name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    shown = ", ".join(f"{each:.0f}" for each in soak.memory[:: max(len(soak.memory) // 12, 1)])
    console.print(f"memory of all processes, MiB: {shown}")
