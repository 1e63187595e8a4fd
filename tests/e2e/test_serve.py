"""A release of the pipeline behind real servers: one result by all interfaces, and swaps."""

import contextlib
import json
import shutil
import subprocess
import threading
import time
from concurrent import futures
from dataclasses import dataclass, replace

import httpx
import pytest
from pebr_process import pebr
from tiny_world import PEBR

from pebr_tf.release.release import ReleaseManifest
from serving.client import RetrievalClient

pytestmark = pytest.mark.slow

QUERIES = ["phone", "red shoes", "black"]
# Seconds; far more than any step here takes.
LONGEST = 240


@dataclass
class ServedProcess:
    process: subprocess.Popen
    http: str
    grpc: str

    def ask(self, queries, **options):
        body = {"queries": queries, **options}
        answer = httpx.post(f"{self.http}v1/retrieve", json=body, timeout=LONGEST)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextlib.contextmanager
def serving(*arguments):
    """`pebr serve` on free ports until the end of the block, where SIGTERM must end it cleanly."""
    command = [PEBR, "serve", "--http-port", "0", "--grpc-port", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            event = json.loads(line)
            if event["event"] == "listening":
                break
        else:
            pytest.fail("".join(lines))
        # A full pipe would block the server.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield ServedProcess(process, event["http"], event["grpc"])
        process.terminate()
        assert process.wait(LONGEST) == 0
    finally:
        process.kill()
        process.wait()


def push_again(release, releases, version):
    """Publishes the same release under another version, in one step."""
    scratch = releases / f".{version}"
    shutil.copytree(release, scratch)
    replace(ReleaseManifest.load(scratch), version=version).save(scratch)
    scratch.rename(releases / str(version))


def wait_until(condition):
    end = time.monotonic() + LONGEST
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def any_done(clients):
    return any(client.done() for client in clients)


def test_all_interfaces_agree_and_no_request_is_lost_while_releases_change(base, tmp_path):
    (release,) = base.releases
    done = pebr(
        base.folder,
        *("query", "--release", str(release), "--recall", "0.7", "--json"),
        *("--limit", "10000", *QUERIES),
    )
    expected = [json.loads(line) for line in done.out.splitlines()]
    releases = tmp_path / "releases"
    releases.mkdir()
    first = int(release.name)
    push_again(release, releases, first)
    config = tmp_path / "serve.yaml"
    config.write_text("serving:\n  poll_seconds: 0.2\n  deadline_milliseconds: 60000\n")
    with serving("--releases", releases, "--config", config) as server:
        by_http = server.ask(QUERIES, recall=0.7)
        with RetrievalClient(server.grpc, timeout=LONGEST) as client:
            by_grpc = client.retrieve(QUERIES, recall=0.7)
        page = httpx.get(server.http).text
        report = httpx.get(f"{server.http}report").text

        seen, stop = set(), threading.Event()

        def ask_on():
            while not stop.is_set():
                seen.add(server.ask(QUERIES)["release"])

        with futures.ThreadPoolExecutor(3) as pool:
            clients = [pool.submit(ask_on) for _ in range(3)]
            for version in (first, first + 1, first + 2):
                if version > first:
                    push_again(release, releases, version)
                # Each version is in use before the next is pushed.
                wait_until(lambda version=version: version in seen or any_done(clients))
            stop.set()
        for client in clients:
            assert client.exception() is None
    assert by_http["release"] == by_grpc.release == first
    for line, http, grpc in zip(expected, by_http["results"], by_grpc, strict=True):
        ids = [item["item_id"] for item in line["items"]]
        assert ids == [item["item_id"] for item in http["items"]]
        assert ids == [item.item_id for item in grpc]
        assert http["threshold"] == pytest.approx(line["threshold"], abs=1e-5)
        assert grpc.threshold == pytest.approx(line["threshold"], abs=1e-5)
    assert "explorer" in page
    assert report == (release / "report.html").read_text(encoding="utf-8")
    assert seen == {first, first + 1, first + 2}
