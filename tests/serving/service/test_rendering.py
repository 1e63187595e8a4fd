"""Responses as JSON and as messages, against messages that are built field by field."""

import json
from dataclasses import replace

import numpy as np
import pytest
from google.protobuf import json_format

from pebr_tf.metrics.strata import STRATA
from serving.proto import retrieval_pb2
from serving.retrieval import StageSeconds
from serving.service.rendering import describe_release, to_json, to_message

SECONDS = StageSeconds(queue=0.001, encode=0.25, search=0.5, lookup=0.125)


def message_of(response, request_id, total):
    """The RetrieveResponse of a response, item by item: slow, plain and independent."""
    message = retrieval_pb2.RetrieveResponse()
    message.release, message.request_id = response.release, request_id
    message.knob, message.value = response.knob, response.value
    for name in ("queue", "encode", "search", "lookup"):
        setattr(message.timings, name, 1e3 * getattr(response.seconds, name))
    message.timings.total = 1e3 * total
    message.notes.extend(response.notes)
    for row in range(len(response)):
        result = message.results.add()
        begin, end = response.items.row_splits[row : row + 2]
        for index in range(begin, end):
            item = result.items.add()
            item.item_id = str(response.items.item_ids[index])
            item.score = response.items.scores[index]
            for name, value in response.fields[index].items():
                item.fields[name] = value
        result.count, result.truncated = end - begin, response.items.truncated[row]
        if response.items.thresholds[row] >= -1:
            result.threshold = response.items.thresholds[row]
        if not np.isnan(response.expected_recall[row]):
            result.expected_recall = response.expected_recall[row]
        for name in ("tau", "alpha", "beta", "level", "unfamiliar"):
            setattr(result, name, getattr(response.encoded, name)[row].item())
        result.stratum = STRATA[response.encoded.stratum[row]]
        result.level_source = response.level_source
    return message


@pytest.fixture(params=["default", "score", "gaps", "whole_ids", "empty"])
def response(request, retriever):
    knob = ("score", -1.0) if request.param == "score" else ()
    plain = retriever.retrieve(["red phone", "phone", "qq phone"], *knob)
    plain = replace(plain, release=20_260_101_000_000, seconds=SECONDS)
    items, count = plain.items, len(plain.items.scores)
    assert count > 3
    if request.param == "gaps":
        gaps = ({}, {"price": ""}, {"price": "värde 手机", "title": "x" * 200})
        return replace(plain, fields=[gaps[index % 3] for index in range(count)])
    if request.param == "whole_ids":
        return replace(plain, items=replace(items, item_ids=np.arange(count) * 10**15))
    if request.param == "empty":
        return replace(plain, items=items.keep(np.zeros(count, bool)), fields=[])
    return plain


def test_both_forms_say_the_same(response):
    message = message_of(response, "an-id", 0.75)
    assert to_message(response, "an-id", 0.75) == message
    content = json.loads(to_json(response, "an-id", 0.75))
    # protobuf's own parser of JSON; `test_openapi` checks the types of JSON.
    assert json_format.ParseDict(content, retrieval_pb2.RetrieveResponse()) == message
    fields = [field.name for field in retrieval_pb2.QueryResult.DESCRIPTOR.fields]
    assert all(sorted(result) == sorted(fields) for result in content["results"])


def test_a_release_is_described(retriever):
    description = describe_release(retriever)
    assert description == {
        "version": retriever.release.version,
        "created": retriever.release.manifest.created,
        "items": 200,
        "dimension": 8,
        "default_knob": "recall",
        "default_value": 0.9,
        "floor": 1,
        "limit": 150,
        "fields": ["title"],
    }
    assert retrieval_pb2.Release(**description).items == 200
