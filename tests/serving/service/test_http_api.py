"""The HTTP API over a real socket: every field, every rejection, probes, pages and headers."""

import json
import socket
from itertools import product

import pytest
from google.protobuf import json_format
from service_helpers import PARTIAL_POST, PATIENCE, poll, rejection, served

from serving.proto.retrieval_pb2 import Fields, RetrieveRequest, RetrieveResponse
from serving.service.engine import Engine
from serving.service.rendering import describe_release

KNOWN = "queries, recall, share, budget, top_k, score, limit, fields, deadline_milliseconds"


class FailingEngine(Engine):
    async def retrieve(self, call):
        raise KeyError(f"a secret about {call.queries}")


@pytest.fixture(scope="module")
def service(retriever):
    sizes = {"limits__queries_per_call": 8, "limits__request_bytes": 20_000}
    with served(retriever.release.directory, **sizes) as service:
        yield service


def error_of(answer):
    """Code, status, field and sentence of a rejection; its form is the same for all."""
    content = answer.json()
    assert list(content) == ["error"]
    assert list(content["error"]) == ["status", "message", "field", "request_id"]
    assert content["error"]["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    error = content["error"]
    return answer.status_code, error["status"], error["field"], error["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"recall": 0.75, "fields": ["title"], "score": None, "deadline_milliseconds": 20_000},
        {"score": -1, "limit": 2, "fields": []},
        {},
    ],
)
def test_both_apis_answer_alike(service, body):
    body = {"queries": ["red phone", "phone", "手机 \u0000"], **body}
    answer = service.post(body, headers={"x-request-id": "my-id"})
    assert answer.status_code == 200, answer.text
    given = {name: value for name, value in body.items() if value is not None}
    given.pop("deadline_milliseconds", None)
    if "fields" in given:
        given["fields"] = Fields(names=given["fields"])
    message = service.stub.Retrieve(RetrieveRequest(**given), metadata=[("x-request-id", "my-id")])
    content = answer.json()
    assert answer.headers["x-request-id"] == "my-id"
    assert len(content["results"]) == 3
    # Nothing else may differ.
    content["timings"] = json_format.MessageToDict(message.timings)
    assert json_format.ParseDict(content, RetrieveResponse()) == message


# What `limits`, the retriever and the knobs check is tested there; here one case of each.
INVALID = [
    ({}, "queries", "queries must be given. Received: nothing."),
    ({"queries": "phone"}, "queries", "queries must be a list of texts. Received: 'phone'."),
    ({"queries": ["phone", 3]}, "queries[1]", "queries[1] must be a text. Received: 3."),
    ({"recall": "0.9"}, "recall", "recall must be a number. Received: '0.9'."),
    ({"top_k": 2.0}, "top_k", "top_k must be a whole number. Received: 2.0."),
    ({"limit": True}, "limit", "limit must be a whole number. Received: true."),
    ({"fields": [None]}, "fields[0]", "fields[0] must be a text. Received: null."),
    ({"fields": ["price"]}, "fields", "fields must be among title. Received: 'price'."),
    (
        {"deadline_milliseconds": 0},
        "deadline_milliseconds",
        "deadline_milliseconds must be a whole number from 1 to 600000. Received: 0.",
    ),
    ({"topk": 3}, "topk", f"topk must be one of the known keys, {KNOWN}. Received: 3."),
    ([1], "body", "body must be a JSON object. Received: [1]."),
]


def test_a_bad_value_is_named(service):
    before = service.count("http", "INVALID_ARGUMENT")
    for body, field, message in INVALID:
        if body and "queries" not in body and isinstance(body, dict):
            body = {"queries": ["phone"], **body}
        assert error_of(service.post(body)) == (422, "INVALID_ARGUMENT", field, message)
    poll(lambda: service.count("http", "INVALID_ARGUMENT") == before + len(INVALID))


def test_a_body_that_is_not_json(service):
    for body, received in (
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b'{"queries": ["a"', "EOF while parsing a list at line 1 column 16"),
        (b'{"queries": ["\xff"]}', "invalid unicode code point at line 1 column 15"),
        (b'{"queries": ["\\ud800"]}', "unexpected end of hex escape at line 1 column 21"),
    ):
        answer = service.post_bytes(body, "application/json; charset=utf-8")
        expected = (422, "INVALID_ARGUMENT", "body", f"body must be JSON. Received: {received}.")
        assert error_of(answer) == expected


def test_values_that_are_not_finite_numbers(service):
    names = ("recall", "share", "budget", "top_k", "score", "limit", "deadline_milliseconds")
    for name, number in product(names, ("NaN", "-Infinity", "1e999", "9" * 400)):
        body = f'{{"queries": ["phone"], "{name}": {number}}}'
        answer = service.post_bytes(body)
        code, status, field, message = error_of(answer)
        assert (code, status, field) == (422, "INVALID_ARGUMENT", name)
        assert message.startswith(f"{name} must be a ")


def test_many_errors_are_not_listed(service):
    body = {"queries": ["phone"], **{f"key{place}": 1 for place in range(200)}}
    expected = f"body must hold only {KNOWN}. Received: 200 errors."
    assert error_of(service.post(body)) == (422, "INVALID_ARGUMENT", "body", expected)


def test_content_types(service):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
        assert error_of(service.post_bytes(b"{}", kind)) == (
            415,
            "INVALID_ARGUMENT",
            "content-type",
            f"content-type must be application/json. Received: {kind or 'nothing'}.",
        )
    content = b'{"queries": ["phone"]}'
    assert service.post_bytes(content, "Application/JSON ; charset=utf-8").status_code == 200


def test_a_body_is_read_up_to_the_limit(service):
    post = service.post_bytes
    body = json.dumps({"queries": ["phone"], "top_k": 3}).encode()
    assert post(body.ljust(20_000)).status_code == 200
    answer = post(body.ljust(20_001))
    message = "body must be at most 20000 bytes. Received: 20001."
    assert error_of(answer) == (413, "INVALID_ARGUMENT", "body", message)
    assert answer.headers["connection"] == "close"
    # In chunks nothing says the length beforehand.
    assert post(iter([body, b" " * 100])).status_code == 200
    code, _, _, message = error_of(post(iter([body, b" " * (20_001 - len(body))])))
    assert code == 413
    assert message == "body must be at most 20000 bytes. Received: at least 20001."


def test_other_paths_and_methods(service):
    answer = service.http.get("/v2/retrieve")
    message = "path must be one that /docs lists. Received: /v2/retrieve."
    assert error_of(answer) == (404, "NOT_FOUND", None, message)
    answer = service.http.put("/v1/retrieve")
    message = "method must be POST. Received: PUT."
    assert error_of(answer) == (405, "UNIMPLEMENTED", None, message)
    assert answer.headers["allow"] == "POST"
    for path in ("/static/docs/../../setup.py", "/static/docs/%2e%2e/__init__.py"):
        assert error_of(service.http.get(path))[0] == 404


def test_the_request_id_is_the_callers_if_it_can_be_printed(service):
    def request_id(given):
        headers = {} if given is None else {"x-request-id": given}
        return service.http.get("/healthz", headers=headers).headers["x-request-id"]

    assert request_id("abc-1") == "abc-1"
    for given in (None, "", "a b", "x" * 129, 'a"b'):
        assert len(request_id(given)) == 32


def test_headers_keep_browsers_in_check(service):
    for path in ("/", "/docs", "/v1/release", "/nowhere", "/openapi.json", "/v1/explain/start"):
        headers = service.http.get(path, headers={"origin": "http://evil.example"}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy or "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'unsafe" not in policy
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_release_and_probes(service, retriever):
    assert service.http.get("/v1/release").json() == describe_release(retriever)
    for path, text in (("/healthz", "ok\n"), ("/readyz", "ready\n")):
        answer = service.http.get(path)
        assert (answer.status_code, answer.text) == (200, text)
    assert service.http.get("/report").text == "<p>report</p>"
    assert 'pebr_requests_total{api="http",status="OK"}' in service.http.get("/metrics").text


def test_parameters_of_the_explorer_are_rejected_in_the_same_form(service):
    code, status, field, message = error_of(service.http.get("/v1/explain"))
    assert (code, status, field) == (422, "INVALID_ARGUMENT", "query")
    assert message == "query: field required. Received: nothing."
    code, _, field, _ = error_of(service.http.get("/v1/explain?query=phone&limit=x"))
    assert (code, field) == (422, "limit")


def test_a_body_that_never_comes(retriever):
    with served(retriever.release.directory, deadline_milliseconds=50) as service:
        address = ("127.0.0.1", service.server.http_port)
        with socket.create_connection(address, timeout=PATIENCE) as connection:
            connection.sendall(PARTIAL_POST)
            answer = connection.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 504 ")
        assert b"the body did not arrive before the deadline." in answer
        # A caller who hangs up in the middle is no trouble either.
        with socket.create_connection(address, timeout=PATIENCE) as connection:
            connection.sendall(PARTIAL_POST)
        statuses = ("INVALID_ARGUMENT", "DEADLINE_EXCEEDED")
        poll(lambda: sum(service.count("http", status) for status in statuses) == 2)
        body = {"queries": ["phone"], "deadline_milliseconds": 1_000 * PATIENCE}
        assert service.post(body).status_code == 200


def test_headers_have_a_limit(service):
    address = ("127.0.0.1", service.server.http_port)
    for endless in (b"x" * 10_000, b"x: y\r\n" * 2_000):
        with socket.create_connection(address, timeout=PATIENCE) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nlong: ")
            with pytest.raises(OSError, match=r"reset|pipe"):
                connection.sendall(endless * 10_000)
    # Twice on one connection: the count begins anew.
    for _ in range(2):
        headers = {"long": "x" * 60_000}
        assert service.http.get("/healthz", headers=headers).status_code == 200


def test_a_mistake_of_ours_says_nothing_of_itself(retriever, caplog):
    with served(retriever.release.directory, kind=FailingEngine) as service:
        message = "the server failed; its log has the reason under the request id."
        answer = service.post({"queries": ["phone"]}, headers={"x-request-id": "lost"})
        assert error_of(answer) == (500, "INTERNAL", None, message)
        request = RetrieveRequest(queries=["phone"])
        assert rejection(service.stub.Retrieve, request) == ("INTERNAL", message)
    failed = [record for record in caplog.records if record.getMessage() == "failed"]
    assert failed[0].request_id == "lost"
    assert len(failed) == 2
    assert all("a secret about" in str(record.exc_info[1]) for record in failed)
