"""Real worker processes on loopback that find each other through TF_CONFIG."""

import contextlib
import json
import random
import socket

import forked

# Below what systems give to clients, so that none of them gets it before the worker does.
PORTS = range(20_000, 32_000)


class Worker(forked.Running):
    """A process that calls a function as one of several workers."""

    def __init__(self, task, arguments, folder, addresses, index):
        self.temporary = folder / f"temporary{index}"
        self.temporary.mkdir(parents=True, exist_ok=True)
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {"TF_CONFIG": json.dumps(cluster), "TMPDIR": str(self.temporary)}
        super().__init__(task, *arguments, environment=environment)


@contextlib.contextmanager
def workers(task, folder, *arguments):
    """Yields two workers at work, the chief first; none outlives this."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    started = []
    try:
        for index in range(2):
            started.append(Worker(task, (*arguments, index), folder, addresses, index))
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
