"""A searcher behind gRPC answers, refuses and fails as it should; all over real connections."""

import contextlib
import socket
import subprocess
import sys

import grpc
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from searcher_cases import (
    BAD_REQUESTS,
    assert_concurrent_callers_are_served,
    assert_same,
    assert_same_searcher,
    corpora,
    raises,
    random_corpus,
    requests,
    texts,
)
from troubled_searchers import DeadSearcher, FailingSearcher, StuckSearcher

from pebr_tf.retrieval import shard_pb2, wire
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.remote import RemoteSearcher
from pebr_tf.retrieval.searcher import Searcher
from pebr_tf.retrieval.shard_server import serve_shard
from pebr_tf.retrieval.sharded import ShardedSearcher, ShardUnavailable, split

# Longer than any test takes: a deadline that is not under test must not end one.
PATIENT = 60.0
FIRST, SECOND = ExactSearcher(np.eye(4)[:2], [0, 1]), ExactSearcher(np.eye(4)[2:], [2, 3])
SERVER = """
import signal
import numpy as np
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.shard_server import serve_shard
server = serve_shard(ExactSearcher(np.eye(4)[2:], [2, 3]))
print(server.address, flush=True)
signal.pause()
"""


class ChangingSearcher(Searcher):
    """Is whatever searcher it holds; counts the calls."""

    def __init__(self, inner):
        self.inner = inner
        self.calls = []

    dimension = property(lambda self: self.inner.dimension)
    id_dtype = property(lambda self: self.inner.id_dtype)

    @property
    def background(self):
        self.calls.append("background")
        return self.inner.background

    def __len__(self):
        return len(self.inner)

    def _search(self, request):
        self.calls.append(len(request))
        return self.inner._search(request)

    def _expected_count(self, queries, thresholds):
        self.calls.append(len(queries))
        return self.inner._expected_count(queries, thresholds)


@contextlib.contextmanager
def remote(searcher, **options):
    """A client of a server of a searcher."""
    options = {"timeout_seconds": PATIENT, **options}
    with serve_shard(searcher) as server, RemoteSearcher(server.address, **options) as client:
        yield client


def unused_address():
    """Nobody listens here."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@settings(max_examples=60, deadline=None)
@given(corpus=corpora(), request=requests(), shards=st.integers(1, 4))
def test_remote_shards_answer_as_one_local_searcher(corpus, request, shards):
    ids, vectors = corpus
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(remote(ExactSearcher(part_vectors, part_ids)))
            for part_ids, part_vectors in split(ids, vectors, shards)
        ]
        assert_same_searcher(ShardedSearcher(clients), ExactSearcher(vectors, ids), request)


def test_what_a_client_tells_of_the_index():
    whole = random_corpus(text=True)
    with remote(whole) as client:
        np.testing.assert_array_equal(client.background, whole.background)
        result = client.search(np.eye(4), 0.5)
        for array in (client.background, result.item_ids, result.scores, result.truncated):
            assert array.flags.writeable


@pytest.mark.parametrize("text", [False, True])
def test_concurrent_callers(text):
    with remote(random_corpus(text=text)) as client:
        assert_concurrent_callers_are_served(client)


@pytest.mark.parametrize("problem", BAD_REQUESTS)
def test_a_bad_request_is_refused_with_the_same_words(problem):
    request = BAD_REQUESTS[problem]
    with pytest.raises(ValueError, match=r"Received: ") as expected:
        FIRST.search(**request)
    with remote(FIRST) as client, raises(ValueError, str(expected.value)):
        client.search(**request)


def test_what_the_server_refuses():
    with remote(FailingSearcher(np.eye(4))) as client:
        with raises(ValueError, "queries must be more than one. Received: 1."):
            client.search(np.eye(4)[:1], 0.5)
        assert list(client.search(np.eye(4)[:3], 0.5).item_ids) == [0, 1, 2]


def test_a_server_process_that_is_killed():
    with (
        subprocess.Popen(
            [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True
        ) as process,
        remote(FIRST) as alive,
    ):
        try:
            address = process.stdout.readline().strip()
            with RemoteSearcher(address, PATIENT) as victim:
                strict = ShardedSearcher([alive, victim])
                lenient = ShardedSearcher([alive, victim], "partial")
                assert list(strict.search(np.eye(4), 0.5).item_ids) == [0, 1, 2, 3]
                process.kill()
                process.wait()
                with raises(
                    ShardUnavailable,
                    f"1 of 2 shards gave no answer. Shard 1: {address} cannot be reached.",
                ):
                    strict.search(np.eye(4), 0.5)
                result = lenient.search(np.eye(4), 0.5)
                assert result.partial
                assert list(result.item_ids) == [0, 1]
        finally:
            process.kill()


def test_a_server_that_stops_and_comes_back():
    server = serve_shard(SECOND)
    with remote(FIRST) as alive, RemoteSearcher(server.address, PATIENT) as client:
        strict = ShardedSearcher([client, alive])
        lenient = ShardedSearcher([client, alive], "partial")
        everything = strict.search(np.eye(4), 0.5)
        server.stop()
        text = f"{server.address} cannot be reached."
        with raises(ShardUnavailable, f"1 of 2 shards gave no answer. Shard 0: {text}"):
            strict.search(np.eye(4), 0.5)
        with raises(ShardUnavailable, text):
            client.expected_count(np.eye(4), 0.5)
        assert lenient.search(np.eye(4), 0.5).partial
        with serve_shard(SECOND, server.address):
            grpc.channel_ready_future(client._channel).result(PATIENT)
            assert_same(strict.search(np.eye(4), 0.5), everything)


@pytest.mark.parametrize("mode", ["error", "partial"])
def test_nobody_listens(mode):
    address = unused_address()
    with (
        RemoteSearcher(address, PATIENT) as client,
        raises(
            ShardUnavailable,
            f"1 of 1 shards gave no answer. Shard 0: {address} cannot be reached.",
        ),
    ):
        ShardedSearcher([client], mode)


def test_a_deadline_that_passes():
    stuck = StuckSearcher(np.eye(4))
    with remote(stuck, timeout_seconds=0.25) as client:
        assert client.dimension == 4
        try:
            with raises(ShardUnavailable, f"{client.address} gave no answer within 0.25 seconds."):
                client.search(np.eye(4), 0.5)
        finally:
            stuck.go_on.set()


def test_a_server_that_fails():
    with (
        remote(FailingSearcher(np.eye(4))) as client,
        raises(
            ShardUnavailable,
            f"{client.address} failed, UNKNOWN: Exception calling application: one and two",
        ),
    ):
        client.search(np.eye(4)[:2], 0.5)


def test_a_server_that_depends_on_a_dead_one():
    with (
        remote(ShardedSearcher([FIRST, DeadSearcher(np.eye(4)[2:])])) as client,
        raises(
            ShardUnavailable,
            f"{client.address} failed, ABORTED: "
            "1 of 2 shards gave no answer. Shard 1: Nobody is at home.",
        ),
    ):
        client.search(np.eye(4), 0.5)


def test_a_partial_answer_stays_partial():
    half = ShardedSearcher([FIRST, DeadSearcher(np.eye(4)[2:])], "partial")
    with remote(half) as client:
        assert_same(client.search(np.eye(4), 0.5), half.search(np.eye(4), 0.5))
        assert client.search(np.eye(4), 0.5).partial


def test_an_index_that_grows_is_noticed():
    served = ChangingSearcher(ExactSearcher(np.empty((0, 4))))
    with remote(served) as client:
        assert len(client) == len(client.background) == 0
        assert list(client.search(np.eye(4), 0.5).item_ids) == []
        served.inner = ExactSearcher(np.eye(4), list("abcd"))
        assert list(client.search(np.eye(4), 0.5).item_ids) == list("abcd")
        assert (len(client), client.id_dtype) == (4, "U1")
        served.calls.clear()
        assert len(client.background) == len(client.background) == 4
        assert served.calls == ["background"]
        served.inner = ExactSearcher(np.eye(4)[:3], ["a", "b", "long"])
        client.expected_count(np.eye(4), 0.5)
        assert (len(client), client.id_dtype, len(client.background)) == (3, "U4", 3)


def test_an_index_that_is_replaced_by_another_model():
    served = ChangingSearcher(FIRST)
    with remote(served) as client:
        assert client.dimension == 4
        assert client.background.shape == (2, 4)
        served.inner = ExactSearcher(np.eye(3))
        with raises(ValueError, "queries must have dimension 3. Received: 4."):
            client.search(np.eye(4), 0.5)
        assert client.dimension == 3
        assert client.background.shape == (3, 3)
        assert list(client.search(np.eye(3), 0.5).item_ids) == [0, 1, 2]


def test_a_large_batch_is_asked_in_parts():
    whole = random_corpus(100)
    served = ChangingSearcher(whole)
    chance = np.random.default_rng(3)
    queries, thresholds = chance.normal(size=(10, 4)), chance.uniform(-1, 1, 10)
    # An item measures 12 bytes in an answer, a query 20 in a request.
    with remote(served, message_bytes=3 * 12 * 100) as client:
        assert_same(client.search(queries, thresholds), whole.search(queries, thresholds))
        assert served.calls == [3, 3, 3, 1]
        served.calls.clear()
        client.search(queries, thresholds, top_k=50)
        client.search(queries, thresholds, max_results=5)
        assert served.calls == [6, 4, 10]
    with remote(served, message_bytes=80) as client:
        served.calls.clear()
        counts = client.expected_count(queries, thresholds)
        np.testing.assert_array_equal(counts, whole.expected_count(queries, thresholds))
        assert served.calls == [4, 4, 2]
        served.calls.clear()
        assert_same(client.search(queries, thresholds), whole.search(queries, thresholds))
        assert served.calls == [1] * 10


@pytest.mark.slow
def test_the_largest_answer_fits():
    whole = ExactSearcher(np.random.default_rng(4).normal(size=(10_000, 2)))
    served = ChangingSearcher(whole)
    queries = np.random.default_rng(5).normal(size=(256, 2))
    with remote(served) as client:
        result = client.search(queries, -1.0, max_results=10_000)
    assert served.calls == [256]
    assert (result.counts == 10_000).all()
    assert not result.truncated.any()
    assert_same(result, whole.search(queries, -1.0))


@given(st.lists(texts()))
def test_text_ids_survive_the_journey(values):
    ids = np.array(values, str)
    back = wire.unpack_ids(shard_pb2.Ids.FromString(wire.pack_ids(ids).SerializeToString()))
    assert back.dtype == ids.dtype
    assert back.tolist() == ids.tolist()


@pytest.mark.parametrize(("text", "unit"), [("abc", 1), ("ÿ", 1), ("長い", 2), ("𝔘", 4)])
def test_text_ids_take_few_bytes(text, unit):
    assert len(wire.pack_ids(np.array([text, ""])).values) == 2 * unit * len(text)
