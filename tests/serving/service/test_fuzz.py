"""A thousand requests to each API of one process, most of them invalid; then signals end it.

HTTP: 64 cases by schemathesis, half within the OpenAPI document and half against it, and 15
mutations of the bytes of each. gRPC: 64 messages by Hypothesis over the descriptor of the proto,
and 15 mutations of the bytes of each. No response may be an internal error.
"""

import json
import random
import signal
import socket

import grpc
import httpx
import hypothesis
import psutil
import pytest
import schemathesis
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies
from schemathesis import GenerationMode
from service_helpers import PARTIAL_POST, PATIENCE, START, ServeProcess, poll

from serving.proto import retrieval_pb2

pytestmark = pytest.mark.slow

CASES = 64
MUTATIONS = 15
REQUESTS = CASES * (1 + MUTATIONS)
WARM_UP = 250
# Far above the noise of an allocator, half a megabyte; 750 requests that leak 10 kB are more.
GROWTH = 7 * 2**20
EXAMPLES = {
    "derandomize": True,
    "database": None,
    "deadline": None,
    "phases": [hypothesis.Phase.generate],
    "suppress_health_check": list(hypothesis.HealthCheck),
}
# All that hold for any server but `not_a_server_error`, for a deadline may be over (504), and
# `positive_data_acceptance`, for the limit of a release is not in the document.
CHECKS = [
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_headers_conformance,
    schemathesis.checks.response_schema_conformance,
    schemathesis.checks.negative_data_rejection,
    schemathesis.checks.unsupported_method,
]
REJECTED = (413, 422)
MOMENTS = ("start", "ready", "listening", "drain", "stop")


@pytest.fixture(scope="module")
def server(tmp_path_factory, releases):
    folder = tmp_path_factory.mktemp("fuzz")
    config = folder / "pebr.yaml"
    config.write_text(
        "serving:\n  workers: 1\n  deadline_milliseconds: 600000\n  drain_seconds: 600\n"
        "  batching:\n    max_delay_milliseconds: 0\n"
    )
    server = ServeProcess(folder / "log", "--releases", releases, "--config", config)
    server.url = server.event("listening")["http"]
    yield server
    server.process.kill()
    server.process.wait()


def memory_of(server):
    (worker,) = psutil.Process(server.process.pid).children()
    return worker.memory_info().rss


def mutated(content, source):
    """`content` with a few bytes changed, cut, doubled or put in."""
    content = bytearray(content)
    for _ in range(source.randint(1, 2)):
        place = source.randint(0, len(content))
        kind = source.randrange(5)
        if kind == 0:
            content[place:place] = source.randbytes(source.randint(1, 8))
        elif kind == 1:
            del content[place : place + source.randint(1, 8)]
        elif kind == 2:
            content[place : place + 1] = source.randbytes(1)
        elif kind == 3:
            del content[place:]
        else:
            content += content[place : place + 50]
    return bytes(content)


def check_http(response, content):
    answer = response.json()
    if response.status_code == 200:
        assert answer["results"], content
    elif response.status_code == 504:
        assert b"deadline_milliseconds" in content
    else:
        assert response.status_code in REJECTED, (response.status_code, answer, content)
        assert answer["error"]["message"].endswith("."), answer


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        yield client


def test_http(server, client):
    schema = schemathesis.openapi.from_dict(client.get("openapi.json").json())
    operation = schema["/v1/retrieve"]["POST"]
    source = random.Random(0)
    seen, memory = [], []

    def post(content):
        headers = {"content-type": "application/json"}
        response = client.post("v1/retrieve", content=content, headers=headers)
        check_http(response, content)
        seen.append(response.status_code)
        if len(seen) == WARM_UP:
            memory.append(memory_of(server))
        return response

    def fuzz(mode):
        @hypothesis.settings(max_examples=CASES // 2, **EXAMPLES)
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def run(case):
            content = case.body if isinstance(case.body, bytes) else json.dumps(case.body).encode()
            response = post(content)
            case.validate_response(response, CHECKS)
            for _ in range(MUTATIONS):
                post(mutated(content, source))

        run()

    fuzz(GenerationMode.POSITIVE)
    fuzz(GenerationMode.NEGATIVE)
    assert len(seen) >= REQUESTS
    assert seen.count(200) > 3
    assert seen.count(422) > 300
    check_whole(server, memory[0])


# Most of what is drawn is valid: a call that fails in its first field says nothing of the others.
SCALARS = {
    FieldDescriptor.CPPTYPE_STRING: strategies.sampled_from(["title"] * 12 + [" ", "x" * 513])
    | strategies.text(max_size=600),
    FieldDescriptor.CPPTYPE_DOUBLE: strategies.sampled_from([0.5, 0.9, 1.0, 20.0])
    | strategies.floats(0, 1)
    | strategies.floats(),
    FieldDescriptor.CPPTYPE_UINT32: strategies.sampled_from([1, 7, 150])
    | strategies.integers(1, 150)
    | strategies.integers(0, 2**32 - 1),
}


def messages(kind):
    """Messages of a kind, every field of it absent or anything that its type allows."""
    fields = {}
    for field in kind.DESCRIPTOR.fields:
        if field.message_type is not None:
            one = messages(field.message_type._concrete_class)
        else:
            one = SCALARS[field.cpp_type]
        repeated = field.label == FieldDescriptor.LABEL_REPEATED
        fields[field.name] = strategies.lists(one, max_size=6) if repeated else one
    return strategies.fixed_dictionaries({}, optional=fields).map(lambda given: kind(**given))


def test_grpc(server):
    source = random.Random(0)
    seen, memory = [], []
    with grpc.insecure_channel(server.event("listening")["grpc"]) as channel:
        retrieve = channel.unary_unary("/pebr.retrieval.v1.Retrieval/Retrieve")

        def call(body):
            metadata = [("x-request-id", source.choice(["mine", " ", "~" * 200]))]
            answer = retrieve.future(body, timeout=PATIENCE, metadata=metadata)
            seen.append(answer.code().name)
            if seen[-1] == "OK":
                assert retrieval_pb2.RetrieveResponse.FromString(answer.result()).results
            else:
                # With so long a deadline any other code would be a mistake of the server.
                assert seen[-1] == "INVALID_ARGUMENT", (answer.details(), body)
                assert answer.details().endswith(".")
            if len(seen) == WARM_UP:
                memory.append(memory_of(server))

        @hypothesis.settings(max_examples=CASES, **EXAMPLES)
        @hypothesis.given(request=messages(retrieval_pb2.RetrieveRequest))
        def run(request):
            body = request.SerializeToString()
            call(body)
            for _ in range(MUTATIONS):
                call(mutated(body, source))

        run()
    assert len(seen) >= REQUESTS
    assert seen.count("OK") > 3
    assert seen.count("INVALID_ARGUMENT") > 300
    check_whole(server, memory[0])


def check_whole(server, before):
    """That the server lives, has not grown, and has no mistake of its own in its log."""
    assert server.process.poll() is None
    assert httpx.get(f"{server.url}readyz", timeout=PATIENCE).status_code == 200
    assert memory_of(server) - before < GROWTH
    # The log is written by a thread.
    poll(lambda: len(server.lines("request")) >= REQUESTS)
    assert not [line for line in server.lines() if line["level"] == "error"]


def test_a_second_signal_ends_the_drain_at_once(server):
    listening = server.event("listening")
    # A request whose body does not come keeps its connection, and with it the drain.
    with socket.create_connection(("127.0.0.1", listening["http_port"])) as connection:
        connection.sendall(PARTIAL_POST)
        httpx.get(f"{server.url}healthz", timeout=PATIENCE)
        server.process.send_signal(signal.SIGINT)
        assert server.event("drain")["signal"] == "SIGINT"
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(START) == 1
    assert server.event("stop")["finished"] is False
    events = [line["event"] for line in server.lines() if line["event"] in MOMENTS]
    assert events == list(MOMENTS)
