"""The OpenAPI document and its page: true, complete, and without anything from elsewhere."""

import re

import pytest
import schemathesis
from service_helpers import served

from serving.service.http_schema import RetrieveRequestBody, RetrieveResponseBody


@pytest.fixture(scope="module")
def service(retriever):
    sizes = {"limits__queries_per_call": 9, "limits__query_characters": 99}
    with served(retriever.release.directory, **sizes) as service:
        yield service


@pytest.fixture(scope="module")
def document(service):
    return service.http.get("/openapi.json").json()


def request_schema(document):
    body = document["paths"]["/v1/retrieve"]["post"]["requestBody"]
    assert body["required"] is True
    return body["content"]["application/json"]["schema"]


def test_it_has_every_operation_and_every_status(document):
    assert document["openapi"] == "3.0.3"
    schema = schemathesis.openapi.from_dict(document)
    assert all(result.ok() for result in schema.get_all_operations())
    operations = {
        (path, method): sorted(operation["responses"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert operations[("/v1/retrieve", "post")] == [
        "200", "401", "413", "415", "422", "429", "500", "503", "504",
    ]  # fmt: skip
    assert operations[("/v1/release", "get")] == ["200", "401", "500", "503"]
    assert operations[("/healthz", "get")] == ["200"]
    assert operations[("/readyz", "get")] == ["200", "503"]
    assert operations[("/metrics", "get")] == ["200", "401", "500"]
    assert len(operations) == 5


def test_bounds_of_a_request(document):
    schema = request_schema(document)
    assert schema["required"] == ["queries"]
    assert schema["additionalProperties"] is False
    queries = schema["properties"]["queries"]
    assert (queries["minItems"], queries["maxItems"]) == (1, 9)
    assert queries["items"] == {"type": "string", "minLength": 1, "maxLength": 99}
    recall = schema["properties"]["recall"]
    assert recall["type"] == "number"
    assert recall["nullable"] is True
    assert (recall["minimum"], recall["exclusiveMinimum"]) == (0, True)
    assert (recall["maximum"], recall["exclusiveMaximum"]) == (1, True)


def test_the_example_is_answered_as_documented(service, document):
    example = request_schema(document)["example"]
    RetrieveRequestBody.model_validate(example)
    answer = service.post(example)
    assert answer.status_code == 200
    RetrieveResponseBody.model_validate_json(answer.content, strict=True, extra="forbid")


def test_nothing_comes_from_elsewhere(service):
    page = service.http.get("/docs").text
    assert "://" not in page
    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert service.http.get(address).status_code == 200
    assert "<script>" not in page
    assert "://" not in service.http.get("/docs/start.js").text
    assert "://" not in service.http.get("/openapi.json").text
