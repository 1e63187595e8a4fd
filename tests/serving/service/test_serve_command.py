"""`pebr serve`: its options, and a real process from start to signal."""

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import httpx
import pytest
from click.testing import CliRunner
from service_helpers import PATIENCE

from pebr_tf.errors import UserError
from serving.cli.serve import _settings, serve
from serving.proto import retrieval_pb2_grpc
from serving.proto.retrieval_pb2 import RetrieveRequest

# Above what a start takes on a busy machine.
START = 120


def run(*arguments):
    result = CliRunner().invoke(serve, [str(argument) for argument in arguments])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


class Process:
    """A running `pebr serve`, and its log."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "pebr_tf.cli.main", "serve", "--grpc-port", "0"]
        self.process = subprocess.Popen(
            [*command, "--http-port", "0", *map(str, arguments)],
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        self.lines, self._over = [], False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(json.loads(line) if line[0] == "{" else {"event": line})
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def event(self, name):
        """The first such event, as soon as it is there."""
        with self._changed:
            self._changed.wait_for(lambda: self._first(name) or self._over, START)
        assert self._first(name), self.lines
        return self._first(name)

    def _first(self, name):
        return next((line for line in self.lines if line["event"] == name), None)

    def ended(self):
        """The exit code, all of the log being read."""
        code = self.process.wait(START)
        self._reader.join()
        return code


@pytest.fixture
def start():
    started = []

    def start(*arguments):
        started.append(Process(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.process.stderr.close()


def test_exactly_one_source(releases):
    sentence = r"exactly one of --release and --releases must be given\. Received: {}\."
    with pytest.raises(UserError, match=sentence.format("neither")):
        run()
    with pytest.raises(UserError, match=sentence.format("both")):
        run("--release", releases, "--releases", releases)


def test_options_that_click_refuses(releases, tmp_path):
    for arguments, text in [
        (["--release", tmp_path / "none"], "does not exist"),
        (["--releases", releases, "--http-port", 65_536], "65536 is not in the range"),
        (["--releases", releases, "--config", tmp_path / "none"], "does not exist"),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2
        assert text in result.output


def test_a_folder_without_a_release(tmp_path):
    with pytest.raises(UserError, match="must be a release or a folder of releases"):
        run("--releases", tmp_path)


def test_settings_are_the_releases_unless_a_file_or_an_option_says_otherwise(releases, tmp_path):
    assert _settings(releases, None, {}).http_port == 8601
    changed = _settings(releases, None, {"http_port": 0, "host": "::1"})
    assert (changed.http_port, changed.grpc_port, changed.host) == (0, 8600, "::1")
    path = tmp_path / "pebr.yaml"
    path.write_text("serving:\n  http_port: 7\n  drain_seconds: 2\n")
    assert _settings(releases, path, {}).http_port == 7
    assert _settings(releases, path, {"http_port": 9}).drain_seconds == 2
    with pytest.raises(UserError, match=r"serving\.http_port must differ from grpc_port"):
        _settings(releases, path, {"grpc_port": 7})


@pytest.mark.slow
def test_a_process_answers_and_finishes_its_calls_on_sigterm(start, releases, tmp_path):
    config = tmp_path / "pebr.yaml"
    # A call waits for a batch as large as the last, so that the signal finds it under way.
    config.write_text("serving:\n  batching:\n    max_delay_milliseconds: 1000\n")
    server = start("--releases", releases, "--config", config)
    listening = server.event("listening")
    (release,) = (int(path.name) for path in releases.iterdir() if path.name.isdecimal())
    assert server.event("ready")["release"] == release
    assert listening["http"] == f"http://127.0.0.1:{listening['http_port']}/"
    assert httpx.get(listening["http"] + "readyz", timeout=PATIENCE).status_code == 200
    with grpc.insecure_channel(listening["grpc"]) as channel:
        stub = retrieval_pb2_grpc.RetrievalStub(channel)
        stub.Retrieve(RetrieveRequest(queries=["phone"] * 8), timeout=PATIENCE)
        call = stub.Retrieve.future(RetrieveRequest(queries=["phone"] * 3), timeout=PATIENCE)
        # The request is there when the metrics say that its queries wait.
        url = listening["http"] + "metrics"
        while "pebr_queue_queries 3.0" not in httpx.get(url, timeout=PATIENCE).text:
            if call.done():
                break
        server.process.send_signal(signal.SIGTERM)
        assert len(call.result().results) == 3
    assert server.ended() == 0
    events = [line["event"] for line in server.lines]
    assert [each for each in events if each not in ("request", "log")] == [
        "start",
        "ready",
        "listening",
        "drain",
        "stop",
    ]
    assert server.event("drain")["signal"] == "SIGTERM"
    assert server.event("stop")["finished"] is True
    assert events.count("log") == 0, server.lines


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(start, releases, tmp_path):
    config = tmp_path / "pebr.yaml"
    config.write_text("serving:\n  deadline_milliseconds: 600000\n  drain_seconds: 600\n")
    server = start("--releases", releases, "--config", config)
    listening = server.event("listening")
    # A request whose body does not come keeps its connection, and with it the drain.
    with socket.create_connection(("127.0.0.1", listening["http_port"])) as connection:
        connection.sendall(
            b"POST /v1/retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 9\r\n\r\n{"
        )
        httpx.get(listening["http"] + "healthz", timeout=PATIENCE)
        server.process.send_signal(signal.SIGINT)
        server.event("drain")
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 1
    assert server.event("stop")["finished"] is False
