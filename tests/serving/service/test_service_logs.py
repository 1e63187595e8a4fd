"""The log: one JSON object a line, readable lines on a terminal, and no query text unasked."""

import io
import json
import logging
import re
import threading

import pytest
from service_helpers import poll, served

from serving.proto.retrieval_pb2 import RetrieveRequest
from serving.service import logs

SECRET = "xylophone"


@pytest.fixture
def stream():
    stream = io.StringIO()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    logs.configure(stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)
    logs.LOGGER.setLevel(logging.NOTSET)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def requests(stream):
    return [line for line in lines(stream) if line["event"] == "request"]


def test_an_event_is_a_line(stream):
    logs.event("ready", release=3, reason='a "quote"\n')
    logs.event("exposed", logging.WARNING, without=["serving.tls"])
    # As the modules of the service log, too.
    logging.getLogger("pebr.releases").info("swapped", extra={"release": 4, "before": 3})
    first, second, third = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {"level": "info", "event": "ready", "release": 3, "reason": 'a "quote"\n'}
    assert second["level"] == "warning"
    assert (third["event"], third["release"], third["before"]) == ("swapped", 4, 3)


def test_warnings_of_libraries_are_lines_too(stream):
    logging.getLogger("uvicorn.error").warning("bad %s", "request")
    logging.getLogger("uvicorn.error").info("not this")
    (line,) = lines(stream)
    assert (line["event"], line["logger"]) == ("log", "uvicorn.error")
    assert line["message"] == "bad request"


def test_text_cannot_steer_a_terminal(stream, monkeypatch):
    monkeypatch.setattr(stream, "isatty", lambda: True)
    logs.configure(stream)
    logs.event("rejected", logging.ERROR, reason="steer\x1b[31m")
    line = stream.getvalue().strip()
    assert re.fullmatch(r"\d\d:\d\d:\d\d  error  rejected  reason='steer\\x1b\[31m'", line)


def test_a_slow_reader_of_the_log_delays_no_request(stream, monkeypatch):
    """Nothing can be written until both lines are logged; then they come whole and in order."""
    logged, write = threading.Event(), stream.write
    monkeypatch.setattr(stream, "write", lambda text: logged.wait() and write(text))
    with logs.written_apart():
        logs.event("first")
        try:
            raise ValueError("reason")
        except ValueError:
            logs.RequestRecord("grpc", "Retrieve", "id-1").log_exception()
        assert not stream.getvalue()
        logged.set()
    first, second = lines(stream)
    assert first["event"] == "first"
    assert (second["level"], second["event"], second["request_id"]) == ("error", "failed", "id-1")
    assert second["traceback"].endswith("ValueError: reason")


def test_the_servers_trouble_is_loud(stream):
    levels = {"INVALID_ARGUMENT": "info", "UNAVAILABLE": "warning", "INTERNAL": "error"}
    for status in levels:
        logs.RequestRecord("grpc", "Retrieve", "id-1", status=status).write()
    assert {line["status"]: line["level"] for line in lines(stream)} == levels


def test_one_line_for_each_request_with_text_only_if_configured(retriever, stream):
    with served(retriever.release.directory) as service:
        service.post({"queries": [SECRET, "phone"], "top_k": 3}, headers={"x-request-id": "a"})
        service.stub.Retrieve(RetrieveRequest(queries=[SECRET]), metadata=[("x-request-id", "b")])
        service.post({"queries": [SECRET], "recall": 7}, headers={"x-request-id": "c"})
        service.post({"queries": SECRET}, headers={"x-request-id": "d"})
        service.post({"queries": ["a"], "fields": [SECRET]}, headers={"x-request-id": "e"})
        service.http.get(f"/v1/explain?query={SECRET}", headers={"x-request-id": "f"})
        service.http.get("/healthz", headers={"x-request-id": "quiet"})
        service.http.get("/readyz")
        service.http.get("/metrics")
        poll(lambda: len(requests(stream)) == 6)
    by_id = {line["request_id"]: line for line in requests(stream)}
    first = by_id["a"]
    stages = first.pop("stages")
    assert list(stages) == ["queue", "encode", "search", "lookup"]
    assert 0 < sum(stages.values()) <= first.pop("milliseconds")
    first.pop("time")
    assert first == {
        "level": "info",
        "event": "request",
        "request_id": "a",
        "api": "http",
        "method": "POST /v1/retrieve",
        "status": "OK",
        "queries": 2,
        "items": 6,
        "release": retriever.release.version,
    }
    assert (by_id["b"]["api"], by_id["b"]["method"]) == ("grpc", "Retrieve")
    assert by_id["b"]["queries"] == 1
    for name, field in (("c", "recall"), ("d", "queries"), ("e", "fields")):
        assert (by_id[name]["status"], by_id[name]["field"]) == ("INVALID_ARGUMENT", field)
    assert by_id["f"]["method"] == "GET /v1/explain"
    assert SECRET not in stream.getvalue()
    assert "quiet" not in stream.getvalue()
    with served(retriever.release.directory, log_queries=True) as service:
        service.post({"queries": [SECRET, "phone"]})
        poll(lambda: len(requests(stream)) == 7)
    assert requests(stream)[-1]["texts"] == [SECRET, "phone"]
