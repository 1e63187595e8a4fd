"""`pebr serve`: its options, and a real process from start to signal."""

import signal
import socket

import grpc
import httpx
import pytest
from click.testing import CliRunner
from service_helpers import PATIENCE, ServeProcess

from pebr_tf.errors import UserError
from serving.cli.serve import _settings, serve
from serving.proto import retrieval_pb2_grpc
from serving.proto.retrieval_pb2 import RetrieveRequest


def run(*arguments):
    result = CliRunner().invoke(serve, [str(argument) for argument in arguments])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


@pytest.fixture
def start():
    started = []

    def start(*arguments):
        started.append(ServeProcess(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_exactly_one_source_that_has_a_release(releases, tmp_path):
    sentence = r"exactly one of --release and --releases must be given\. Received: {}\."
    with pytest.raises(UserError, match=sentence.format("neither")):
        run()
    with pytest.raises(UserError, match=sentence.format("both")):
        run("--release", releases, "--releases", releases)
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
