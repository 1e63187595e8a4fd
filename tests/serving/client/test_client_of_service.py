"""The client against the service itself."""

import asyncio
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import pytest
from service_helpers import PATIENCE, Authority, GatedEngine, served

from pebr_tf.release.release import latest_release
from serving.client import (
    AsyncRetrievalClient,
    InvalidRequest,
    Overloaded,
    RetrievalClient,
    TlsFiles,
    Unauthenticated,
    Unavailable,
)

QUERIES = ["red phone", "phone", "手机"]


@pytest.fixture(scope="module")
def service(releases):
    """A server whose batches can be made to wait, with a short queue."""
    limits = {"batching__max_size": 4, "batching__queue_limit": 4, "limits__queries_per_call": 4}
    with served(latest_release(releases), kind=GatedEngine, **limits) as served_:
        yield served_


@pytest.fixture(scope="module")
def client(service):
    with RetrievalClient(f"127.0.0.1:{service.server.grpc_port}", timeout=PATIENCE) as client:
        yield client


def test_answers_are_those_of_the_release(client, retriever):
    for knob, value in (("recall", 0.5), ("top_k", 9)):
        results = client.retrieve(QUERIES, **{knob: value})
        expected = retriever.retrieve(QUERIES, knob, value)
        assert (results.release, results.knob, results.value) == (expected.release, knob, value)
        for row, result in enumerate(results):
            found = [
                {"item_id": item.item_id, "score": item.score, **item.fields} for item in result
            ]
            assert found == [
                {**item, "score": pytest.approx(item["score"], abs=1e-6)}
                for item in expected.rows(row)
            ]
            assert (result.query, result.stratum) == (QUERIES[row], expected.stratum(row))
            assert result.truncated == expected.items.truncated[row]
            assert result.tau == pytest.approx(float(expected.tau[row]))
            assert (result.expected_recall is not None) == (knob == "recall")
        assert results.timings.total >= results.timings.search > 0
    (result,) = client.retrieve(["phone"], top_k=9, limit=2, fields=[])
    assert [dict(item.fields) for item in result] == [{}, {}]
    assert result.truncated


def test_the_async_client_gets_the_same(client, service):
    async def ask():
        address = f"127.0.0.1:{service.server.grpc_port}"
        async with AsyncRetrievalClient(address, timeout=PATIENCE) as other:
            return (
                await other.retrieve(QUERIES, top_k=3),
                await other.release(),
                await other.healthy(),
            )

    results, release, healthy = asyncio.run(ask())
    mine = client.retrieve(QUERIES, top_k=3)
    assert [[item.item_id for item in each] for each in results] == [
        [item.item_id for item in each] for each in mine
    ]
    assert release == client.release()
    assert healthy is client.healthy() is True


def test_what_the_server_rejects_is_named(client):
    for field, arguments in (
        ("recall", {"recall": 1.5}),
        ("top_k", {"top_k": 0}),
        ("limit", {"limit": 151}),
        ("fields", {"fields": ["price"]}),
        ("queries", {"queries": []}),
        ("queries[0]", {"queries": [" "]}),
    ):
        with pytest.raises(InvalidRequest, match=field.partition("[")[0]) as caught:
            client.retrieve(**{"queries": ["phone"], "request_id": "r-1", **arguments})
        assert (caught.value.field, caught.value.status) == (field, "INVALID_ARGUMENT")
        assert caught.value.request_id == "r-1"


def test_a_full_queue(client, service):
    address = f"127.0.0.1:{service.server.grpc_port}"
    with (
        RetrievalClient(address, timeout=PATIENCE, retries=0) as hasty,
        ThreadPoolExecutor(9) as pool,
    ):
        service.engine.gate.clear()
        service.engine.waiting.clear()
        try:
            first = pool.submit(client.retrieve, QUERIES)
            assert service.engine.waiting.wait(PATIENCE)
            others = [pool.submit(hasty.retrieve, ["phone"]) for _ in range(8)]
            wait(others, PATIENCE, FIRST_EXCEPTION)
        finally:
            service.engine.gate.set()
        assert len(first.result()) == 3
        refusals = [error for each in others if (error := each.exception()) is not None]
        assert 0 < len(refusals) < 8
        assert {type(error) for error in refusals} == {Overloaded}


def test_tokens_and_mutual_tls(releases, tmp_path):
    ours, theirs = (Authority(tmp_path, name) for name in ("ours", "theirs"))
    certificate, key = ours.issue("server")
    (tmp_path / "tokens").write_text("s3cret\n")
    settings = {
        "tls__certificate": certificate,
        "tls__key": key,
        "tls__mutual": True,
        "tls__client_authority": theirs.path,
        "token_file": str(tmp_path / "tokens"),
    }
    mine = dict(zip(("certificate", "key"), theirs.issue("client"), strict=True))
    with served(latest_release(releases), **settings) as service:
        address = f"127.0.0.1:{service.server.grpc_port}"
        tls = TlsFiles(authority=ours.path, **mine)
        with RetrievalClient(address, "s3cret", tls, timeout=PATIENCE) as client:
            assert len(client.retrieve(["phone"], top_k=3)[0]) == 3
        by_name = f"dns:///localhost:{service.server.grpc_port}"
        named = TlsFiles(authority=ours.path, server_name="127.0.0.1", **mine)
        with RetrievalClient(by_name, "s3cret", named, timeout=PATIENCE) as client:
            assert client.healthy()
        for token in (None, "other"):
            with (
                RetrievalClient(address, token, tls, timeout=PATIENCE) as client,
                pytest.raises(Unauthenticated),
            ):
                client.retrieve(["phone"])
        # Without a certificate, by an authority that did not sign the server, and in the clear.
        for other in (TlsFiles(ours.path), TlsFiles(theirs.path, **mine), None):
            with (
                RetrievalClient(address, "s3cret", other, timeout=PATIENCE, retries=0) as client,
                pytest.raises(Unavailable),
            ):
                client.retrieve(["phone"])
