"""The gRPC API over a real channel: every field, every rejection, health and reflection."""

import grpc
import pytest
from service_helpers import PATIENCE, GatedEngine, poll, rejection, served

from serving.proto import retrieval_pb2
from serving.proto.retrieval_pb2 import GetReleaseRequest, RetrieveRequest
from serving.service.rendering import describe_release

PACKAGE = "pebr.retrieval.v1"
SERVICE = f"{PACKAGE}.Retrieval"


@pytest.fixture(scope="module")
def service(retriever):
    with served(retriever.release.directory, limits__queries_per_call=8) as service:
        yield service


def raw_method(service, name="Retrieve"):
    return service.channel.unary_unary(f"/{SERVICE}/{name}")


def test_a_bad_value_is_named(service):
    """`limits`, the retriever and the knobs are tested by themselves; here is one case."""
    before = service.count("grpc", "INVALID_ARGUMENT")
    request = RetrieveRequest(queries=["a"], budget=float("inf"))
    message = "budget must be a number from 1 to 150. Received: inf."
    assert rejection(service.stub.Retrieve, request) == ("INVALID_ARGUMENT", message)
    poll(lambda: service.count("grpc", "INVALID_ARGUMENT") == before + 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # A group that ends and never began.
        (
            b"\x0c\x0a\x01a",
            f"request must be a {PACKAGE}.RetrieveRequest. Received: 4 bytes that are not one.",
        ),
        # A text that is not UTF-8.
        (
            b"\x0a\x01a\x0a\x02\xc3\x28",
            f"request must be a {PACKAGE}.RetrieveRequest. Received: 7 bytes that are not one.",
        ),
        # Field 2 with the type of a text.
        (
            b"\x0a\x01a\x12\x010",
            f"{PACKAGE}.RetrieveRequest must have only the fields that this server knows. "
            "Received: field number 2.",
        ),
        # Field 2 inside fields.
        (
            b"\x0a\x01a\x3a\x02\x10\x01",
            f"{PACKAGE}.Fields must have only the fields that this server knows. "
            "Received: field number fields.2.",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Unexpected end-group tag")
def test_bytes_that_are_no_request_are_the_callers_mistake(service, body, message):
    assert rejection(raw_method(service), body) == ("INVALID_ARGUMENT", message)


def test_a_large_message_is_rejected(service):
    request = RetrieveRequest(queries=["x" * 2_000_000])
    code, message = rejection(service.stub.Retrieve, request)
    assert code == "RESOURCE_EXHAUSTED"
    assert "larger than max" in message


def test_the_request_id_is_the_callers_if_it_can_be_printed(service):
    def ids(*metadata):
        response, call = service.stub.Retrieve.with_call(
            RetrieveRequest(queries=["phone"]), metadata=metadata
        )
        return response.request_id, dict(call.trailing_metadata())["x-request-id"]

    assert ids(("x-request-id", "abc-1:/+=._Z")) == ("abc-1:/+=._Z",) * 2
    first, second = ids(("x-request-id", "x" * 129))
    assert first == second
    assert len(first) == 32
    with pytest.raises(grpc.RpcError) as caught:
        service.stub.Retrieve(RetrieveRequest(), metadata=[("x-request-id", "mine")])
    trailing = dict(caught.value.trailing_metadata())
    assert (trailing["x-request-id"], trailing["pebr-field"]) == ("mine", "queries")


def test_get_release(service, retriever):
    release = service.stub.GetRelease(GetReleaseRequest())
    assert release == retrieval_pb2.Release(**describe_release(retriever))


def test_deadlines_of_the_caller_and_of_the_server(retriever):
    directory = retriever.release.directory
    with served(directory, kind=GatedEngine, deadline_milliseconds=50) as service:
        request = RetrieveRequest(queries=["phone"])
        message = "the deadline passed before the response was ready."
        status, _ = rejection(service.stub.Retrieve, request, timeout=0.05)
        assert status == "DEADLINE_EXCEEDED"
        # Without one of its own the server's counts; the client would wait for ever.
        found = rejection(service.stub.Retrieve, request, timeout=None)
        assert found == ("DEADLINE_EXCEEDED", message)
        answer = service.post({"queries": ["phone"], "deadline_milliseconds": 20})
        assert answer.status_code == 504
        error = answer.json()["error"]
        assert (error["status"], error["message"]) == ("DEADLINE_EXCEEDED", message)
        service.engine.gate.set()


def test_a_full_queue_rejects_at_once(retriever):
    directory = retriever.release.directory
    sizes = {"batching__max_size": 1, "batching__queue_limit": 2, "limits__queries_per_call": 2}
    with served(directory, kind=GatedEngine, **sizes) as service:
        held = [service.stub.Retrieve.future(RetrieveRequest(queries=["phone"]))]
        assert service.engine.waiting.wait(PATIENCE)
        two = RetrieveRequest(queries=["phone", "phone"])
        held.append(service.stub.Retrieve.future(two))
        poll(lambda: service.engine._batcher.queries == 2)
        assert rejection(service.stub.Retrieve, RetrieveRequest(queries=["phone"])) == (
            "RESOURCE_EXHAUSTED",
            "the queue must have room for 1 more queries. Received: 2 of 2 waiting.",
        )
        answer = service.post({"queries": ["phone"]})
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
        service.engine.gate.set()
        assert [len(each.result(PATIENCE).results) for each in held] == [1, 2]


def test_a_caller_who_hangs_up_is_counted_as_such(retriever):
    with served(retriever.release.directory, kind=GatedEngine) as service:
        call = service.stub.Retrieve.future(RetrieveRequest(queries=["phone"]))
        assert service.engine.waiting.wait(PATIENCE)
        call.cancel()
        poll(lambda: service.count("grpc", "CANCELLED") == 1)
        service.engine.gate.set()
        assert service.stub.Retrieve(RetrieveRequest(queries=["phone"])).results
