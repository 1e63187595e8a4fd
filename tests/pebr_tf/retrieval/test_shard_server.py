"""The server of a shard: what it refuses, how it starts, and how it stops."""

import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
from searcher_cases import raises
from troubled_searchers import StuckSearcher

from pebr_tf.errors import UserError
from pebr_tf.retrieval import shard_pb2, wire
from pebr_tf.retrieval.build import build_index
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.remote import RemoteSearcher
from pebr_tf.retrieval.shard_server import serve_shard
from pebr_tf.retrieval.sharded import ShardUnavailable

# Longer than any test takes: a deadline that is not under test must not end one.
PATIENT = 60.0
SEARCHER = ExactSearcher(np.eye(4)[:2], [0, 1])
MUST = "The address must be HOST:PORT, free and of this machine. Received:"


def command(*arguments):
    """The server in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "pebr_tf.retrieval.shard_server", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("queries", "problem"),
    [
        (shard_pb2.Queries(vectors=b"123", dimension=4), "3 bytes of dimension 4, 0 bytes"),
        (shard_pb2.Queries(vectors=b"", dimension=0), "0 bytes of dimension 0, 0 bytes"),
        (shard_pb2.Queries(dimension=4, thresholds=b"12"), "0 bytes of dimension 4, 2 bytes"),
    ],
)
def test_a_message_that_no_client_of_ours_sends(queries, problem):
    with serve_shard(SEARCHER) as server, grpc.insecure_channel(server.address) as channel:
        search = channel.unary_unary(
            f"/{wire.SERVICE}/Search",
            request_serializer=shard_pb2.SearchRequest.SerializeToString,
        )
        with pytest.raises(grpc.RpcError) as caught:
            search(shard_pb2.SearchRequest(queries=queries, max_results=1), timeout=PATIENT)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert caught.value.details() == (
            "queries must be rows of float32, as long as the dimension, with float32 thresholds. "
            f"Received: {problem} of thresholds."
        )


def test_a_server_that_stops_ends_its_calls_first():
    stuck = StuckSearcher(np.eye(4))
    server = serve_shard(stuck)
    with RemoteSearcher(server.address, PATIENT) as client, ThreadPoolExecutor(2) as threads:
        answer = threads.submit(client.search, np.eye(4), 0.5)
        assert stuck.asked.wait(PATIENT)
        stopped = threads.submit(server.stop)
        try:
            with (
                RemoteSearcher(server.address, PATIENT) as late,
                raises(ShardUnavailable, f"{server.address} cannot be reached."),
            ):
                # The first of them may still come before the stop.
                while True:
                    late.expected_count(np.eye(4), 0.5)
            assert not stopped.done()
        finally:
            stuck.go_on.set()
        assert list(answer.result().item_ids) == [0, 1, 2, 3]
        stopped.result()


def test_an_address_that_cannot_be_served_at():
    with (
        serve_shard(SEARCHER) as server,
        raises(UserError, f"{MUST} {server.address} (Address already in use)."),
    ):
        serve_shard(SEARCHER, server.address)
    serve_shard(SEARCHER, server.address).stop()
    with raises(UserError, f"{MUST} 192.0.2.1:0 (Cannot assign requested address)."):
        serve_shard(SEARCHER, "192.0.2.1:0")
    for address in ("localhost", ":0", "127.0.0.1:70000", "127.0.0.1:-1", "127.0.0.1:http"):
        with raises(UserError, f"{MUST} {address} (not HOST:PORT)."):
            serve_shard(SEARCHER, address)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_it_is_told_to_end(tmp_path, end):
    index = tmp_path / "index"
    build_index(index, np.eye(4))
    with command(index) as process:
        try:
            line = process.stdout.readline()
            start = f"4 items of {index} are served at "
            assert line.startswith(start)
            with RemoteSearcher(line[len(start) :].strip(), PATIENT) as client:
                assert list(client.search(np.eye(4), 0.5).item_ids) == [0, 1, 2, 3]
            process.send_signal(end)
            assert process.communicate() == ("", "")
            assert process.returncode == 0
        finally:
            process.kill()


def test_the_command_refuses_in_one_sentence(tmp_path):
    name = "python -m pebr_tf.retrieval.shard_server"
    with serve_shard(SEARCHER) as server, command(tmp_path, "--address", server.address) as process:
        assert process.communicate() == (
            "",
            f"{name}: {MUST} {server.address} (Address already in use).\n",
        )
        assert process.returncode == 2
    file = tmp_path / "file"
    file.touch()
    for directory in (tmp_path / "nowhere", file):
        with command(directory) as process:
            sentence = f"{directory} must be an index folder with index.json."
            assert process.communicate() == ("", f"{name}: {sentence}\n")
            assert process.returncode == 2


def test_the_generated_code_is_that_of_the_proto_file():
    path = Path(shard_pb2.__file__).with_name("shard.proto")
    written = {}
    for name, body in re.findall(r"message (\w+) \{(.*?)\n\}", path.read_text(), re.DOTALL):
        written[name] = sorted(re.findall(r"(\w+) (\w+) = (\d+);", body))
    kinds = {3: "int64", 8: "bool", 12: "bytes", 13: "uint32"}
    generated = {
        name: sorted(
            (
                field.message_type.name if field.message_type else kinds[field.type],
                field.name,
                str(field.number),
            )
            for field in message.fields
        )
        for name, message in shard_pb2.DESCRIPTOR.message_types_by_name.items()
    }
    assert generated == written
    service = shard_pb2.DESCRIPTOR.services_by_name["Shard"]
    assert service.full_name == wire.SERVICE
    assert {
        method.name: (method.input_type.name, method.output_type.name) for method in service.methods
    } == {
        name: (request.DESCRIPTOR.name, response.DESCRIPTOR.name)
        for name, (request, response) in wire.METHODS.items()
    }
