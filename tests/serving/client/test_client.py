"""The client, in both kinds, against a server that answers by a script."""

import asyncio
import dataclasses
import pickle
import subprocess
import sys
import threading

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from scripted_server import HANG, RELEASE, Script, serving

from serving.client import (
    AsyncRetrievalClient,
    DeadlineExceeded,
    InvalidRequest,
    Item,
    Overloaded,
    ReleaseInfo,
    RetrievalClient,
    RetrievalError,
    Timings,
    TlsFiles,
    Unauthenticated,
    Unavailable,
)

STATUS = grpc.StatusCode
# For calls that are to get an answer, on a machine that is busy.
PATIENT = 60.0


class Waiting:
    """The async client with the surface of the other, so that tests can take either."""

    def __init__(self, *arguments, **keywords):
        self._loop = asyncio.new_event_loop()
        self._client = AsyncRetrievalClient(*arguments, **keywords)

    def __getattr__(self, name):
        method = getattr(self._client, name)
        return lambda *arguments, **keywords: self._loop.run_until_complete(
            method(*arguments, **keywords)
        )

    def __enter__(self):
        self._loop.run_until_complete(self._client.__aenter__())
        return self

    def __exit__(self, *error):
        self._loop.run_until_complete(self._client.__aexit__(*error))
        self._loop.close()


@pytest.fixture(scope="module")
def shared():
    script = Script()
    with serving(script) as address:
        yield script, address


@pytest.fixture
def script(shared):
    script = shared[0]
    script.steps, script.calls = [], []
    return script


@pytest.fixture(params=[RetrievalClient, Waiting], ids=["sync", "async"])
def kind(request):
    return request.param


@pytest.fixture
def client(shared, kind):
    with kind(shared[1], timeout=PATIENT) as client:
        yield client


def test_an_answer_has_types(client, script):
    results = client.retrieve(["gift", "iphone 16"], recall=0.9)
    assert len(results) == 2
    assert (results.release, results.knob, results.value) == (20261116145733, "recall", 0.9)
    assert results.timings == Timings(queue=1, encode=2, search=3, lookup=4, total=11)
    assert results.request_id == "abc"
    first, second = results
    assert results[0] is first
    assert first.query == "gift"
    assert first.items == (Item("a", 0.75, {"title": "A"}), Item("b", 0.5, {}))
    assert [item.item_id for item in first] == ["a", "b"]
    assert len(first) == 2
    assert (first.threshold, first.expected_recall, first.truncated) == (0.25, 0.875, True)
    assert (first.tau, first.alpha, first.beta, first.level) == (0.125, 8, 2, -3)
    assert (first.stratum, second.stratum) == ("head", "tail")
    assert (second.query, second.items, second.truncated) == ("iphone 16", (), False)
    assert second.threshold is None
    assert second.expected_recall is None
    assert second, "an empty answer is an answer"
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.truncated = False
    assert pickle.loads(pickle.dumps(results)) == results


def test_what_is_asked_arrives(client, script):
    client.retrieve(["gift"], top_k=5, limit=3, fields=["title"], request_id="mine")
    client.retrieve(("gift",), budget=12.5, fields=())
    client.retrieve(["gift"], score=-1)
    client.retrieve(["gift"])
    requests = [call[0] for call in script.calls]
    assert [request.WhichOneof("knob") for request in requests] == [
        *("top_k", "budget", "score"),
        None,
    ]
    assert (requests[0].top_k, requests[1].budget, requests[2].score) == (5, 12.5, -1)
    assert (requests[0].limit, requests[0].fields.names) == (3, ["title"])
    assert not requests[1].HasField("limit")
    assert requests[1].HasField("fields")
    assert requests[1].fields.names == []
    assert not requests[3].HasField("fields")
    assert script.calls[0][1]["x-request-id"] == "mine"
    assert "x-request-id" not in script.calls[1][1]
    assert "authorization" not in script.calls[0][1]


def test_the_release_and_the_health_of_the_server(client, script):
    assert client.release() == ReleaseInfo(**RELEASE)
    for status in (HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING):
        script.health.set("", status)
        assert client.healthy() is (status == HealthCheckResponse.SERVING)


@pytest.mark.parametrize(
    ("arguments", "field", "text"),
    [
        ({"queries": "gift"}, "queries", "queries must be a list of texts. Received: 'gift'."),
        ({"queries": ["\udcff"]}, "queries", "queries must be a list of texts. Received: ['\\udc"),
        ({"fields": "title"}, "fields", "fields must be a list of texts. Received: 'title'."),
        ({"recall": "0.9"}, "recall", "recall must be a number. Received: '0.9'."),
        ({"top_k": 2.5}, "top_k", "top_k must be a whole number of at least 0. Received: 2.5."),
        ({"limit": -1}, "limit", "limit must be a whole number of at least 0. Received: -1."),
        (
            {"recall": 0.9, "top_k": 5},
            "top_k",
            "at most one of recall, share, budget, top_k, score may be given. "
            "Received: recall, top_k.",
        ),
    ],
)
def test_mistakes_are_named_before_anything_is_sent(client, script, arguments, field, text):
    with pytest.raises(InvalidRequest) as caught:
        client.retrieve(**{"queries": ["gift"], **arguments})
    assert str(caught.value).startswith(text)
    assert (caught.value.field, caught.value.status) == (field, "INVALID_ARGUMENT")
    assert script.calls == []


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (STATUS.INVALID_ARGUMENT, InvalidRequest),
        (STATUS.UNAUTHENTICATED, Unauthenticated),
        (STATUS.DEADLINE_EXCEEDED, DeadlineExceeded),
        (STATUS.INTERNAL, RetrievalError),
    ],
)
def test_what_another_try_would_not_mend_is_tried_once(client, script, step, error):
    metadata = (("x-request-id", "r1"), ("pebr-field", "recall"))
    script.steps = [(step, "It must not.", *metadata), STATUS.INTERNAL]
    with pytest.raises(RetrievalError) as caught:
        client.retrieve(["gift"])
    assert type(caught.value) is error
    assert str(caught.value) == "It must not."
    assert (caught.value.status, caught.value.request_id) == (step.name, "r1")
    if error is InvalidRequest:
        assert caught.value.field == "recall"
    assert len(script.calls) == 1


def test_a_failing_server_is_tried_again_a_few_times(client, script):
    script.steps = [STATUS.UNAVAILABLE, STATUS.RESOURCE_EXHAUSTED]
    assert len(client.retrieve(["gift", "phone"])) == 2
    script.steps = [STATUS.RESOURCE_EXHAUSTED] * 2
    with pytest.raises(Overloaded) as caught:
        client.retrieve(["gift"])
    assert caught.value.status == "RESOURCE_EXHAUSTED"
    assert len(script.calls) == 5
    script.steps = [(STATUS.UNAVAILABLE, f"No {number}.") for number in range(9)]
    with pytest.raises(Unavailable, match=r"^No 2\.$"):
        client.retrieve(["gift"])
    assert len(script.calls) == 8


def test_the_retry_budget_and_the_token_of_a_client(shared, script, kind):
    with kind(shared[1], token="s3cret", timeout=PATIENT) as client:
        script.steps = [STATUS.UNAVAILABLE] * 1_000
        for _ in range(20):
            with pytest.raises(Unavailable):
                client.retrieve(["gift"])
        # Ten retries are saved up, and a tenth of the calls may have more.
        assert 20 + 10 <= len(script.calls) <= 20 + 12
    assert {call[1]["authorization"] for call in script.calls} == {"Bearer s3cret"}


def test_a_server_that_hangs_costs_the_time_of_the_call(client, script):
    script.steps = [HANG]
    with pytest.raises(DeadlineExceeded) as caught:
        client.retrieve(["gift"], timeout=0.2)
    assert caught.value.status == "DEADLINE_EXCEEDED"
    assert len(script.calls) == 1
    assert script.calls[0][2] < 1, "the server knows how long it has"
    script.steps = [HANG]
    with pytest.raises(DeadlineExceeded):
        client.release(timeout=0.2)
    assert len(client.retrieve(["gift", "phone"])) == 2


def test_nobody_at_the_address(kind):
    with serving(Script()) as address:
        pass
    with kind(address, timeout=PATIENT, retries=1) as client:
        with pytest.raises(Unavailable) as caught:
            client.retrieve(["gift"])
        assert caught.value.status == "UNAVAILABLE"
        assert caught.value.request_id is None
        assert client.healthy() is False


def test_a_request_that_is_too_large_is_a_mistake(kind):
    script = Script()
    with serving(script, max_receive_message_length=1_000) as address:
        with kind(address, timeout=PATIENT) as client, pytest.raises(InvalidRequest) as caught:
            client.retrieve(["x" * 2_000])
        assert caught.value.status == "RESOURCE_EXHAUSTED"
        assert caught.value.field is None
    assert script.calls == []


def test_a_cancelled_task_stays_cancelled(shared, script):
    script.steps = [HANG]

    async def ask():
        async with AsyncRetrievalClient(shared[1], timeout=PATIENT) as client:
            task = asyncio.create_task(client.retrieve(["gift"]))
            while not script.calls:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(ask())
    assert len(script.calls) == 1


def test_closing_ends_calls_under_way(shared, script):
    script.steps = [HANG]
    client = RetrievalClient(shared[1], timeout=PATIENT)

    def close_when_asked():
        while not script.calls:
            pass
        client.close()

    closer = threading.Thread(target=close_when_asked)
    closer.start()
    with pytest.raises(RetrievalError) as caught:
        client.retrieve(["gift"])
    assert caught.value.status == "CANCELLED"
    closer.join()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"address": ""}, r"^address must be host:port\. Received: ''\.$"),
        ({"token": "two words"}, r"^token must be printable ASCII without spaces\.$"),
        ({"token": "ключ"}, r"^token must be printable ASCII without spaces\.$"),
        ({"timeout": 0}, r"^timeout must be a number of seconds above 0\. Received: 0\.$"),
        ({"timeout": float("inf")}, r"^timeout must be a number of seconds above 0\. Received: i"),
        ({"retries": -1}, r"^retries must be at least 0\. Received: -1\.$"),
    ],
)
def test_settings_that_cannot_be(kind, tmp_path, arguments, text):
    with pytest.raises(ValueError, match=text):
        kind(**{"address": "localhost:1", **arguments})
    with kind("localhost:1") as client, pytest.raises(ValueError, match=r"^timeout must be a num"):
        client.retrieve(["gift"], timeout=-1)
    with pytest.raises(ValueError, match=r"^certificate and key must be given together\. Received"):
        TlsFiles(certificate="a.pem")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.pem"):
        kind("localhost:1", tls=TlsFiles(authority=tmp_path / "nowhere.pem"))


def test_the_client_imports_nothing_heavy():
    command = [sys.executable, "-X", "importtime", "-c", "import serving.client"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert "grpc" in imported
    heavy = {"tensorflow", "numpy", "pyarrow", "scann", "tfx", "apache_beam", "pandas"}
    assert not imported & heavy
