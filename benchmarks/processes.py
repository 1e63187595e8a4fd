"""Processes that the benchmarks start: measurements apart, the service, and its clients."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEBIBYTE = 2**20


def measure_apart(*arguments: str) -> dict:
    """Runs `python -m benchmarks ARGUMENTS` in a new process, so that peak memory is its own.

    Returns:
      The JSON object on the last line of its output.
    """
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks", *arguments]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict = json.loads(output.splitlines()[-1])
    return result


def peak_bytes() -> int:
    """The largest resident set of this process so far."""
    # Linux counts kibibytes, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def pebr_serve(*options: str) -> Iterator[tuple[str, str, subprocess.Popen]]:
    """Runs `pebr serve` on free ports; yields its URL, the address of its gRPC, and the process."""
    command = [sys.executable, "-m", "pebr_tf.cli.main", "serve", *options]
    command += ["--http-port", "0", "--grpc-port", "0"]
    with terminated(command, stderr=subprocess.PIPE) as process:
        events = (json.loads(line) for line in process.stderr if line.startswith("{"))
        listening = next((event for event in events if event.get("event") == "listening"), None)
        if listening is None:
            raise SystemExit("pebr serve must listen. Received: no event `listening`.")
        # The service blocks unless its log is read.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        yield f"http://127.0.0.1:{listening['http_port']}", listening["grpc"], process
    drain.wait()


@contextmanager
def terminated(command: list[str], **streams: int) -> Iterator[subprocess.Popen]:
    """A running process without output except `streams`; terminated at the end."""
    silent = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **streams}
    process = subprocess.Popen(command, text=True, **silent)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def closed_loop(url: str, queries: Path, clients: int, **options: float) -> subprocess.Popen:
    """Starts clients that load the service at `url`; see `benchmarks.closed_loop`."""
    target = f"{url}/v1/retrieve" if url.startswith("http") else url
    command = [sys.executable, "-m", "benchmarks.closed_loop", target]
    command += ["--queries", str(queries), "--clients", str(clients)]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
