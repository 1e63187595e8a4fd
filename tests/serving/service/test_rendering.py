"""Replies as bytes: protobuf and JSON, against messages and dicts built field by field."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from pebr_tf.metrics import STRATA
from serving.proto import retrieval_pb2
from serving.retriever import Answer
from serving.service.call import Reply, Stages
from serving.service.heads import Heads, json_head, protobuf_head, varint
from serving.service.rendering import release_facts, reply_to_json, reply_to_protobuf

STAGES = Stages(queue=0.001, encode=0.25, search=0.5, lookup=0.125)


def message_of(reply, request_id, total):
    """The RetrieveResponse of a reply, by the message classes: slow, plain and independent."""
    answer, response = reply.answer, retrieval_pb2.RetrieveResponse()
    response.release, response.request_id = reply.version, request_id
    response.knob, response.value = answer.knob, answer.value
    for name in ("queue", "encode", "search", "lookup"):
        setattr(response.timings, name, 1e3 * getattr(reply.stages, name))
    response.timings.total = 1e3 * total
    for row in range(len(answer)):
        result = response.results.add()
        begin, end = answer.items.row_splits[row : row + 2]
        for place in range(begin, end):
            item = result.items.add()
            item.item_id = str(answer.items.item_ids[place])
            item.score = answer.items.scores[place]
            for name, values in reply.payload.items():
                if values[place] is not None:
                    item.fields[name] = values[place]
        result.count, result.truncated = end - begin, answer.items.truncated[row]
        if answer.items.thresholds[row] >= -1:
            result.threshold = answer.items.thresholds[row]
        if not np.isnan(answer.expected_recall[row]):
            result.expected_recall = answer.expected_recall[row]
        result.tau, result.alpha = answer.tau[row], answer.alpha[row]
        result.beta, result.level = answer.beta[row], answer.levels[row]
        result.stratum = STRATA[answer.strata[row]]
    return response


def content_of(message):
    """What the JSON answer must say if the message is right; numbers are float32 in the message."""

    def single(value):
        return np.float32(value) if isinstance(value, float) else value

    results = []
    for result in message.results:
        content = {field.name: single(value) for field, value in result.ListFields()}
        for name in ("threshold", "expected_recall"):
            content.setdefault(name, None)
        for name in ("count", "truncated"):
            content.setdefault(name, getattr(result, name))
        content["items"] = [
            {"item_id": item.item_id, "score": item.score, "fields": dict(item.fields)}
            for item in result.items
        ]
        results.append(content)
    return results


@dataclass(frozen=True)
class Sample:
    """What a reply is rendered from, with the columns of its items."""

    answer: Answer
    payload: dict
    version: int = 20_260_101_000_000
    stages: Stages = STAGES

    def reply(self, form):
        make = {"json": json_head, "protobuf": protobuf_head}[form]
        heads = [
            make(
                str(item_id),
                {name: v[place] for name, v in self.payload.items() if v[place] is not None},
            )
            for place, item_id in enumerate(self.answer.items.item_ids.tolist())
        ]
        return Reply(self.version, self.answer, heads, self.stages)


def reply_of(retriever, queries, **knob):
    name, value = next(iter(knob.items()), (None, None))
    answer = retriever.retrieve(queries, name, value)
    return Sample(answer, retriever.payload.values(answer.items.item_ids))


@pytest.fixture(
    params=["default", "top_k", "score", "no_fields", "gaps", "long", "whole_ids", "empty"]
)
def reply(request, retriever):
    queries = ["red phone", "phone", "laptop bag"]
    if request.param in ("top_k", "score"):
        return reply_of(
            retriever, queries, **{request.param: {"top_k": 7, "score": -1.0}[request.param]}
        )
    plain = reply_of(retriever, queries)
    count = len(plain.answer.items.scores)
    assert count > 3
    if request.param == "no_fields":
        return replace(plain, payload={})
    if request.param == "gaps":
        gaps = [(None, "", f"värde {place} 手机")[place % 3] for place in range(count)]
        return replace(plain, payload={"price": gaps, **plain.payload, "none": [None] * count})
    if request.param == "long":
        # Lengths around those where a varint needs one more byte, of the value or of its entry.
        sizes = [0, 1, 115, 116, 117, 118, 126, 127, 128, 129, 16_370, 16_383, 16_384, 70_000]
        texts = ["x" * sizes[place % len(sizes)] for place in range(count)]
        return replace(plain, payload={"title": texts, "n" * 200: texts})
    items = plain.answer.items
    if request.param == "whole_ids":
        whole = replace(items, item_ids=np.arange(count, dtype=np.int64) * 10**15)
        return replace(plain, answer=replace(plain.answer, items=whole))
    if request.param == "empty":
        none = items.keep(np.zeros(count, bool))
        return replace(plain, answer=replace(plain.answer, items=none), payload={"title": []})
    return plain


def test_protobuf_is_what_the_message_classes_write(reply):
    rendered = reply_to_protobuf(reply.reply("protobuf"), "an-id", 0.75)
    parsed = retrieval_pb2.RetrieveResponse.FromString(rendered)
    assert parsed == message_of(reply, "an-id", 0.75)
    assert not parsed.UnknownFields()


def test_json_says_the_same_as_protobuf(reply):
    message = message_of(reply, "an-id", 0.75)
    content = json.loads(reply_to_json(reply.reply("json"), "an-id", 0.75))
    results = content.pop("results")
    assert content == {
        "release": 20_260_101_000_000,
        "knob": reply.answer.knob,
        "value": reply.answer.value,
        "request_id": "an-id",
        "timings": {
            "queue": 1.0,
            "encode": 250.0,
            "search": 500.0,
            "lookup": 125.0,
            "total": 750.0,
        },
    }
    for result in results:
        for name, value in result.items():
            if isinstance(value, float):
                result[name] = np.float32(value)
    assert results == content_of(message)


def test_whole_numbers_are_written_in_groups_of_seven_bits():
    assert [varint(number) for number in (0, 1, 127, 128, 300, 16_384)] == [
        b"\x00", b"\x01", b"\x7f", b"\x80\x01", b"\xac\x02", b"\x80\x80\x01",
    ]  # fmt: skip


def test_a_release_says_what_it_is(retriever, config):
    facts = release_facts(retriever)
    assert facts == {
        "version": retriever.release.version,
        "created": retriever.release.manifest.created,
        "items": 200,
        "dimension": 8,
        "default_knob": config.cutoff.default_knob,
        "default_value": config.cutoff.default_value,
        "floor": 1,
        "limit": 150,
        "fields": ["title"],
    }
    assert retrieval_pb2.Release(**facts).items == 200


def test_heads_are_kept_and_let_go(retriever, monkeypatch):
    ids = retriever.searcher.ids
    asked = []
    payload = retriever.payload

    class Counting:
        def values(self, item_ids, fields):
            asked.append(len(item_ids))
            return payload.values(item_ids, fields)

    monkeypatch.setattr("serving.service.heads.KEPT_ITEMS", 6)
    heads = Heads(Counting())
    first = heads.of(ids[[0, 1, 1, 2]], "json", None)
    titles = payload.values(ids[:3])["title"]
    assert [json.loads(head + b"0}")["fields"]["title"] for head in first] == [
        titles[place] for place in (0, 1, 1, 2)
    ]
    assert heads.of(ids[[2, 0]], "json", None) == [first[3], first[0]]
    # Another form and other fields are other heads.
    assert heads.of(ids[:1], "protobuf", None) != first[:1]
    assert json.loads(heads.of(ids[:1], "json", ())[0] + b"0}")["fields"] == {}
    assert asked == [3, 1, 1]
    # Seven do not fit: all go, and the list is made anew.
    assert len(heads.of(ids[:7], "json", None)) == 7
    assert asked == [3, 1, 1, 7]
