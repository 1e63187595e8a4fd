"""Bearer tokens: what is accepted, in both APIs, and what needs none."""

import base64

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from service_helpers import PATIENCE, poll, rejection, served

from pebr_tf.errors import UserError
from serving.errors import AuthenticationError
from serving.proto.retrieval_pb2 import GetReleaseRequest, RetrieveRequest
from serving.service.access import Access

NOTHING = "authorization must be Bearer and a token. Received: nothing."
ANOTHER = "authorization must be Bearer and an accepted token. Received: another."
REQUEST = RetrieveRequest(queries=["phone"])


def basic(token, user="anyone"):
    return "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


@pytest.fixture(scope="module")
def service(retriever, tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text("# of the web shop\nfirst-token\n\n  second-token  \n")
    with served(retriever.release.directory, token_file=str(path)) as service:
        yield service


def test_any_of_the_tokens_is_accepted():
    access = Access(["first", "se:cond="])
    for accepted in ("Bearer first", "bearer  first ", "BEARER se:cond=", basic("se:cond=")):
        access.check(accepted)
    for rejected, message in [
        (None, NOTHING),
        ("Bearer ", ANOTHER),
        ("Bearer firs", ANOTHER),
        ("Bearer firstt", ANOTHER),
        ("Bearer f\u00efrst\ud800", ANOTHER),
        ("Digest first", ANOTHER),
        ("Basic !!!", ANOTHER),
        (basic("", user="first"), ANOTHER),
    ]:
        with pytest.raises(AuthenticationError) as caught:
            access.check(rejected)
        assert str(caught.value) == message
    assert not Access.from_file(None).required
    Access.from_file(None).check(None)


def test_files_of_tokens(tmp_path):
    path = tmp_path / "tokens"
    for content, sentence in (
        (None, f"must be a readable file. Received: {path} (No such file or directory)."),
        (b"\xff\xfe", f"must be a readable file. Received: {path} (not a text file)."),
        (b"# none\n\n", f"must hold a token. Received: none in {path}."),
        (
            b"good\nse cret\n",
            "must hold one token per line, of printable ASCII without spaces. "
            f"Received: something else in line 2 of {path}.",
        ),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(UserError) as caught:
            Access.from_file(str(path))
        assert str(caught.value) == f"serving.token_file {sentence}"


def test_http_asks_for_a_token(service):
    for path in ("/v1/release", "/metrics", "/", "/docs", "/report", "/nowhere"):
        answer = service.http.get(path)
        assert answer.status_code == 401
        assert answer.json()["error"]["message"] == NOTHING
        assert answer.json()["error"]["status"] == "UNAUTHENTICATED"
        schemes = ["Bearer", 'Basic realm="token as password"']
        assert answer.headers.get_list("www-authenticate") == schemes
    before = service.count("http", "UNAUTHENTICATED")
    answer = service.post({"queries": ["phone"]}, headers={"authorization": "Bearer third"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (401, ANOTHER)
    poll(lambda: service.count("http", "UNAUTHENTICATED") == before + 1)
    for accepted in ("Bearer first-token", "Bearer second-token", basic("first-token")):
        headers = {"authorization": accepted}
        assert service.post({"queries": ["phone"]}, headers=headers).status_code == 200


def test_grpc_asks_for_a_token(service):
    assert rejection(service.stub.Retrieve, REQUEST) == ("UNAUTHENTICATED", NOTHING)
    assert rejection(service.stub.GetRelease, GetReleaseRequest()) == ("UNAUTHENTICATED", NOTHING)
    another = [("authorization", "Bearer third")]
    found = rejection(service.stub.Retrieve, REQUEST, metadata=another)
    assert found == ("UNAUTHENTICATED", ANOTHER)
    accepted = [("authorization", "Bearer second-token")]
    assert service.stub.Retrieve(REQUEST, metadata=accepted).results[0].count
    assert service.stub.GetRelease(GetReleaseRequest(), metadata=accepted).items == 200
    poll(lambda: service.count("grpc", "UNAUTHENTICATED") >= 2)
    stub = reflection_pb2_grpc.ServerReflectionStub(service.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")

    def listed(requests, **options):
        return list(stub.ServerReflectionInfo(requests, **options))

    assert rejection(listed, iter([request])) == ("UNAUTHENTICATED", NOTHING)
    (answer,) = listed(iter([request]), metadata=accepted, timeout=PATIENCE)
    services = [each.name for each in answer.list_services_response.service]
    assert "pebr.retrieval.v1.Retrieval" in services


def test_probes_need_none(service):
    for path in ("/healthz", "/readyz"):
        assert service.http.get(path).status_code == 200
    stub = health_pb2_grpc.HealthStub(service.channel)
    status = stub.Check(health_pb2.HealthCheckRequest()).status
    assert status == health_pb2.HealthCheckResponse.SERVING
