"""Calls to replies: what is batched together answers as if it had been alone."""

import asyncio
import itertools

import numpy as np
import pytest
from service_helpers import loaded, service_settings

from pebr_tf.release.release import find_release
from serving.errors import InvalidArgument, ServiceError
from serving.retrieval import RetrievalRequest
from serving.retriever import Retriever
from serving.service.engine import Engine
from serving.service.metrics import Metrics

pytestmark = pytest.mark.anyio

TEXTS = ["red phone", "phone", "blue laptop bag", "cable", "white charger"]
KNOBS = [(None, None), ("recall", 0.8), ("budget", 20), ("top_k", 7), ("score", 0.2)]


@pytest.fixture(scope="module")
def alone(two_versions):
    return Retriever.load(find_release(two_versions))


@pytest.fixture
def engine(two_versions):
    """An engine whose first batch waits for others, with a release that all tests share."""
    engine = Engine(
        loaded(find_release(two_versions)),
        service_settings(batching__max_delay_milliseconds=500),
        Metrics(),
    )
    yield engine
    asyncio.run(engine.stop())


async def ask(engine, *calls):
    return await asyncio.gather(*map(engine.retrieve, calls), return_exceptions=True)


async def test_a_mixed_batch_answers_like_each_call_alone(engine, alone):
    calls = [
        RetrievalRequest((first, second), knob, value, limit=limit, fields=fields)
        for (knob, value), first, second, (limit, fields) in zip(
            KNOBS * 4,
            itertools.cycle(TEXTS),
            itertools.cycle(TEXTS[2:]),
            itertools.cycle([(None, None), (3, ("title",)), (150, ())]),
            strict=False,
        )
    ]
    replies = await ask(engine, *calls)
    for call, found in zip(calls, replies, strict=True):
        expected = alone.retrieve(call.queries, call.knob, call.value, call.limit)
        assert (found.queries, found.knob) == (call.queries, expected.knob)
        for name in ("row_splits", "item_ids", "truncated"):
            np.testing.assert_array_equal(getattr(found.items, name), getattr(expected.items, name))
        for name in ("level", "tau", "alpha", "beta", "stratum"):
            ours, theirs = (getattr(each.encoded, name) for each in (found, expected))
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(found.expected_recall, expected.expected_recall, rtol=1e-5)
        np.testing.assert_allclose(found.items.scores, expected.items.scores, atol=1e-6)
        np.testing.assert_allclose(found.items.thresholds, expected.items.thresholds, atol=1e-5)
        titles = [row["title"] for i in range(2) for row in expected.rows(i)]
        assert found.fields == [{} if call.fields == () else {"title": each} for each in titles]
    largest = engine._metrics.registry.get_sample_value("pebr_batch_queries_bucket", {"le": "2.0"})
    assert largest < len(calls)


async def test_a_mistake_is_named_and_does_not_disturb_the_batch(engine):
    bad = RetrievalRequest(("a",), fields=("title", "price"))
    bad, good = await ask(engine, bad, RetrievalRequest(("phone",)))
    assert isinstance(bad, InvalidArgument)
    assert (bad.field, str(bad)) == ("fields", "fields must be among title. Received: 'price'.")
    assert len(good.items.scores) > 0


async def test_a_call_that_breaks_the_search_fails_alone(engine, monkeypatch, caplog):
    retriever = engine.retriever
    encode = retriever.encoder.encode

    def poisoned(queries, *options, **others):
        if "poison" in queries:
            raise RuntimeError("no")
        return encode(queries, *options, **others)

    monkeypatch.setattr(retriever.encoder, "encode", poisoned)
    # The fields of the last are no names, which the APIs would have rejected.
    calls = [("phone", None), ("poison", None), ("cable", None), ("phone", 7)]
    first, bad, last, worse = await ask(
        engine, *(RetrievalRequest((query,), fields=fields) for query, fields in calls)
    )
    assert isinstance(bad, ServiceError)
    assert str(bad) == "the search failed: RuntimeError."
    assert str(worse) == "the search failed: TypeError."
    assert (first.queries, last.queries) == (("phone",), ("cable",))
    assert [record.msg for record in caplog.records] == ["failed"] * 2


async def test_metrics_count_what_was_answered(engine):
    (reply,) = await ask(engine, RetrievalRequest(("phone", "cable"), "score", -1.0, limit=5))
    assert reply.items.truncated.tolist() == [True, True]
    # What is counted after an answer has been counted by then.
    await engine.stop()
    sample = engine._metrics.registry.get_sample_value
    assert sample("pebr_truncated_total") == 2
    assert sample("pebr_empty_total") == 0
    assert sample("pebr_results_sum") == 10
    assert sample("pebr_results_count") == 2
    assert sample("pebr_tau_sum") == pytest.approx(float(reply.encoded.tau.sum()))
    assert sample("pebr_stage_seconds_sum", {"stage": "encode"}) == pytest.approx(
        reply.seconds.encode
    )
