"""Real worker processes on loopback that find each other through TF_CONFIG."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Only to end a hang: seconds after which a worker is given up.
PATIENCE = 600
# Below what systems give to clients, so that none of them gets it before the worker does.
PORTS = range(20_000, 32_000)


class Worker:
    """A process that runs a script as one of several workers."""

    def __init__(self, script, arguments, folder, addresses, index):
        self.temporary = folder / f"temporary{index}"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self._output = {name: folder / f"{name}{index}" for name in ("stdout", "stderr")}
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {
            **os.environ,
            "PYTHONPATH": f"{Path(script).parent}:{ROOT}",
            "TF_CONFIG": json.dumps(cluster),
            "TMPDIR": str(self.temporary),
        }
        with contextlib.ExitStack() as files:
            outputs = {n: files.enter_context(p.open("w")) for n, p in self._output.items()}
            self._process = subprocess.Popen(
                [sys.executable, str(script), *map(str, arguments)], env=environment, **outputs
            )

    def ended(self):
        """Its exit code and what it wrote to stderr, once it has ended."""
        return self._process.wait(PATIENCE), self._output["stderr"].read_text()

    def answer(self):
        code, errors = self.ended()
        assert code == 0, errors
        return json.loads(self._output["stdout"].read_text().splitlines()[-1])

    def stop(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)


@contextlib.contextmanager
def workers(script, folder, *arguments):
    """Yields two workers at work, the chief first; none outlives this."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    started = []
    try:
        for index in range(2):
            started.append(Worker(script, (*arguments, index), folder, addresses, index))
        yield started
    finally:
        for worker in started:
            worker.stop()


def free_ports(count):
    found = []
    for port in random.SystemRandom().sample(PORTS, 1_000):
        # All addresses, as TensorFlow's server does.
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"{count} ports of {PORTS} must be free.")
