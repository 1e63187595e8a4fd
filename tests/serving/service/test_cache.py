"""The caches: what comes from them equals what was computed, and their sizes hold."""

import asyncio
from dataclasses import fields, replace

import numpy as np
import pytest
from service_helpers import loaded, service_settings

from pebr_tf.release.release import find_release
from pebr_tf.retrieval.encoded import ENCODED_FIELDS, TOWER_FIELDS
from serving.retrieval import RetrievalRequest
from serving.service import cache
from serving.service.cache import CachedEncoder, LeastRecentlyUsed
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.rendering import to_json

pytestmark = pytest.mark.anyio


class CountingEncoder:
    def __init__(self, encoder):
        self.encoder, self.asked = encoder, []

    def encode(self, queries, deadline=float("inf"), with_law=True):
        self.asked.append(list(queries))
        return self.encoder.encode(queries, deadline, with_law)


@pytest.fixture
def engine_of(two_versions):
    def engine_of(**sizes):
        retriever = loaded(find_release(two_versions))
        settings = service_settings(**{f"cache__{name}": size for name, size in sizes.items()})
        return Engine(retriever, settings, Metrics())

    return engine_of


def counted(engine, name):
    sample = engine._metrics.registry.get_sample_value
    outcomes = ({"cache": name, "outcome": outcome} for outcome in ("hit", "miss"))
    return tuple(int(sample("pebr_cache_total", each) or 0) for each in outcomes)


def same(response, other):
    """Whether two responses say the same, to the bit."""
    texts = (to_json(each, "id", 0).partition(b'"timings"')[0] for each in (response, other))
    return len(set(texts)) == 1


def test_the_least_recently_used_goes_first():
    kept = LeastRecentlyUsed(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert [kept.get(key) for key in "abc"] == [1, None, 3]


@pytest.mark.parametrize("with_law", [False, True])
def test_only_new_queries_are_encoded(retriever, with_law):
    counts = []
    counting = CountingEncoder(retriever.encoder)
    encoder = CachedEncoder(counting, 3, lambda *count: counts.append(count))
    encoder.encode(["phone", "cable"], with_law=with_law)
    found = encoder.encode(["tablet", "phone", "tablet", "cable"], with_law=with_law)
    assert counting.asked == [["phone", "cable"], ["tablet"]]
    assert counts == [("queries", 0, 2), ("queries", 2, 2)]
    expected = retriever.encoder.encode(["tablet", "phone", "tablet", "cable"], with_law=with_law)
    for name in ENCODED_FIELDS if with_law else TOWER_FIELDS:
        ours, theirs = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7, err_msg=name)
        assert ours.dtype == theirs.dtype
    # A view would keep the arrays of its batch.
    assert encoder._kept.get(("cable", with_law)).embedding.base is None
    # What one signature says, the other has not said.
    encoder.encode(["phone"], with_law=not with_law)
    assert counting.asked[2:] == [["phone"]]


async def test_a_response_is_kept_by_everything_in_its_request_but_the_deadline(engine_of):
    engine = engine_of(responses=100, queries=0)
    different = [
        RetrievalRequest(("phone",)),
        RetrievalRequest(("phone", "cable")),
        RetrievalRequest(("Phone",)),
        RetrievalRequest(("phone",), "recall", 0.5),
        RetrievalRequest(("phone",), "recall", 0.6),
        RetrievalRequest(("phone",), "share", 0.5),
        RetrievalRequest(("phone",), limit=2),
        RetrievalRequest(("phone",), fields=()),
    ]
    # A new field of requests must be compared, too.
    names = {"queries", "knob", "value", "limit", "fields", "deadline"}
    assert {each.name for each in fields(RetrievalRequest)} == names
    first = [await engine.retrieve(request) for request in different]
    assert counted(engine, "responses") == (0, len(different))
    again = [replace(request, deadline=1e9) for request in different]
    for request, before in zip(again, first, strict=True):
        response = await engine.retrieve(request)
        assert same(response, before)
        assert vars(response.seconds) == dict.fromkeys(vars(response.seconds), 0.0)
    assert counted(engine, "responses") == (len(different), len(different))


async def test_responses_are_those_of_an_engine_without_caches(engine_of):
    plain, kept = engine_of(queries=0, responses=0), engine_of(queries=4, responses=2)
    texts = ["red phone", "phone", "cable", "phone", "phone", "white charger", "red phone"]
    for text in texts * 2:
        request = RetrievalRequest((text,))
        assert same(await kept.retrieve(request), await plain.retrieve(request))
    assert counted(plain, "queries") == counted(plain, "responses") == (0, 0)
    hits, misses = counted(kept, "responses")
    assert hits > 0
    assert hits + misses == len(texts) * 2
    assert counted(kept, "queries")[0] > 0


async def test_long_responses_are_not_kept(engine_of, monkeypatch):
    monkeypatch.setattr(cache, "MOST_ITEMS", 3)
    engine = engine_of(responses=10, queries=0)
    for _ in range(2):
        await engine.retrieve(RetrievalRequest(("phone",), "top_k", 4))
        await engine.retrieve(RetrievalRequest(("phone",), "top_k", 3))
    assert counted(engine, "responses") == (1, 3)


async def test_a_service_that_stops_answers_nothing_from_its_cache(engine_of):
    engine = engine_of(responses=10)
    await engine.retrieve(RetrievalRequest(("phone",)))
    await engine.stop()
    (outcome,) = await asyncio.gather(
        engine.retrieve(RetrievalRequest(("phone",))), return_exceptions=True
    )
    assert str(outcome) == "the service is stopping."
