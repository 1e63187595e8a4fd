"""Swaps, rejections, rollbacks and deaths, with workers that only say who they are."""

import os
import shutil
import signal
import socket
from collections import Counter
from types import SimpleNamespace

import pytest
from prometheus_client import values
from service_helpers import PATIENCE, service_settings
from withdrawals import withdraw

from pebr_tf.errors import UserError
from pebr_tf.release.versions import restore
from serving.service import supervisor
from serving.service.supervisor import ReleaseSource, Supervisor
from serving.service.worker import CONNECTION, READY


def work(job, channel):
    """A worker that answers each connection with its version and process."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, supervisor.SIGNALS)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    broken = job.directory / "broken"
    if broken.exists():
        channel.sendall(broken.read_bytes())
        os._exit(0)
    channel.sendall(READY)
    while True:
        message, connections, _, _ = socket.recv_fds(channel, 1, 1)
        if message != CONNECTION:
            os._exit(0)
        with socket.socket(fileno=connections[0]) as connection:
            connection.sendall(f"{job.directory.name} {os.getpid()} {job.verify}".encode())


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch):
    monkeypatch.setattr(supervisor, "work", work)
    # `Metrics` of processes replaces it for the rest of the process.
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")


@pytest.fixture
def clock(monkeypatch):
    """The supervisor's own time, which stands still."""
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def root(tmp_path):
    """A folder with versions 1 and 2."""
    root = tmp_path / "releases"
    for version in (1, 2):
        (root / str(version)).mkdir(parents=True)
        (root / str(version) / "manifest.json").write_text("{}")
    return root


class Driven(Supervisor):
    """A supervisor whose steps a test makes."""

    def __init__(self, root, folder):
        folder.mkdir()
        settings = service_settings(workers=2, poll_seconds=3_600)
        super().__init__(ReleaseSource(root, follow=True), settings, folder)
        self.woken, self.wakeup = socket.socketpair()

    def until(self, condition):
        for _ in range(100 * PATIENCE):
            if condition():
                return
            # The step waits for events until then.
            self._next_poll = supervisor.time.monotonic() + 0.01
            self._step(self.woken)
        raise AssertionError("it never came to hold")

    def _poll(self):
        """Nothing is polled unless a test says so."""

    def poll(self):
        """Polls, and waits for what comes of it."""
        super()._poll()
        self.until(self.is_settled)

    def is_settled(self):
        if self._next is None and self._current is None:
            # The newest release has been rejected: an older one is looked for.
            super()._poll()
        return self._next is None and len(self._ready()) == 2

    def version(self):
        return self._current.version

    def ask(self):
        """Version, process, and whether it has verified its release."""
        with socket.create_connection(("127.0.0.1", self.http_port)) as connection:
            connection.setblocking(False)
            received = []

            def is_answered():
                try:
                    received.append(connection.recv(100))
                except BlockingIOError:
                    return False
                return True

            self.until(is_answered)
        version, process, verified = received[0].decode().split()
        return int(version), int(process), verified == "True"

    def value(self, name, **labels):
        return self._metrics.exported().get_sample_value(name, labels)

    def end(self):
        self.wakeup.send(bytes([signal.SIGTERM]))
        while self._step(self.woken):
            pass


@pytest.fixture
def driven(root, tmp_path):
    made = []

    def driven():
        made.append(Driven(root, tmp_path / f"metrics{len(made)}"))
        return made[-1]

    yield driven
    for each in made:
        each.end()
        assert each._finished
        each._listener.close()
        each._reserved.close()


def aside(root, version):
    """Takes a version out of sight, as if it had not been pushed yet."""
    hidden = root.parent / f"hidden{version}"
    shutil.move(root / str(version), hidden)
    return lambda: shutil.move(hidden, root / str(version))


def events(caplog, name):
    return [each for each in caplog.records if each.getMessage() == name]


def test_connections_are_given_in_turn_and_one_worker_verifies(driven):
    service = driven()
    service.poll()
    answers = [service.ask() for _ in range(6)]
    assert {version for version, _, _ in answers} == {2}
    assert set(Counter(process for _, process, _ in answers).values()) == {3}
    assert {verified for _, _, verified in answers} == {True, False}


def test_a_new_version_takes_over_and_the_old_workers_retire(root, driven, caplog):
    push = aside(root, 2)
    service = driven()
    service.poll()
    old = [each.process for each in service._current.workers]
    assert service.ask()[0] == 1
    push()
    with caplog.at_level("INFO", "pebr"):
        service.poll()
    assert service.ask()[0] == 2
    service.until(lambda: not service._retired)
    assert [process.exitcode for process in old] == [0, 0]
    (record,) = events(caplog, "swapped")
    assert (record.release, record.before) == (2, 1)
    assert service.value("pebr_release_version") == 2
    assert service.value("pebr_release_swaps_total") == 1


def test_a_broken_version_is_rejected_and_tried_again_after_its_pause(root, driven, clock, caplog):
    push = aside(root, 2)
    service = driven()
    service.poll()
    push()
    broken = root / "2" / "broken"
    broken.write_text("its payload differs.")
    service.poll()
    service.poll()
    assert service.ask()[0] == 1
    (record,) = events(caplog, "rejected")
    assert (record.release, record.reason) == (2, "its payload differs.")
    labels = {"version": "2", "reason": "its payload differs."}
    assert service.value("pebr_release_rejected", **labels) == 1
    assert service.value("pebr_release_rejections_total") == 1
    broken.unlink()
    clock.now += 299
    service.poll()
    assert service.ask()[0] == 1
    clock.now += 1
    service.poll()
    assert service.ask()[0] == 2
    assert service.value("pebr_release_rejected", **labels) == 0


def test_withdrawal_goes_back_and_restoring_forth(root, driven):
    service = driven()
    service.poll()
    withdraw(root, 2)
    service.poll()
    assert service.ask()[0] == 1
    restore(root, 2)
    service.poll()
    assert service.ask()[0] == 2


def test_at_the_start_a_broken_newest_version_is_passed_over(root, driven, clock):
    (root / "2" / "broken").write_text("no.")
    service = driven()
    service.poll()
    assert service.ask()[0] == 1
    assert service.value("pebr_release_swaps_total") == 0


def test_nothing_to_serve_is_one_sentence(root, driven, clock, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"/empty must hold a release to serve\.$"):
        Driven(tmp_path / "empty", tmp_path / "metrics").poll()
    for version in (1, 2):
        (root / str(version) / "broken").write_text(f"{version} is broken.")
    with pytest.raises(UserError, match=r"^2 is broken\.$"):
        driven().poll()


def test_a_worker_that_is_killed_is_replaced_without_verification(driven, caplog):
    service = driven()
    service.poll()
    before = {service.ask()[1] for _ in range(2)}
    killed = service._current.workers[0].process
    killed.kill()
    service.until(lambda: killed not in [each.process for each in service._workers()])
    service.until(lambda: len(service._ready()) == 2)
    after = {service.ask()[1:] for _ in range(2)}
    assert {process for process, _ in after} & before == before - {killed.pid}
    assert {process: verified for process, verified in after if process not in before}.values()
    (record,) = events(caplog, "worker_ended")
    assert (record.pid, record.reason) == (killed.pid, "a worker ended with exit code -9.")


def test_a_version_that_vanishes_goes_on_answering(root, driven):
    service = driven()
    service.poll()
    shutil.rmtree(root / "1")
    shutil.rmtree(root / "2")
    service.poll()
    assert service.ask()[0] == 2
