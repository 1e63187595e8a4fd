"""A pool of processes answers as one searcher does, and outlives its workers."""

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from searcher_cases import (
    BAD_REQUESTS,
    assert_concurrent_callers_are_served,
    assert_same,
    assert_same_searcher,
    raises,
    random_corpus,
    requests,
)
from troubled_searchers import (
    FailingSearcher,
    FatalSearcher,
    HeldSearcher,
    ProcessSearcher,
    die,
    load_file,
)

from pebr_tf.config import Index
from pebr_tf.retrieval import pool_worker
from pebr_tf.retrieval.artifact import load_index
from pebr_tf.retrieval.build import build_index
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.pool import ROWS_A_SLICE, ProcessPool
from pebr_tf.retrieval.scann_searcher import ScannSearcher
from pebr_tf.retrieval.sharded import ShardUnavailable

WHOLE = random_corpus(text=True)
PARENT = """
import functools, signal
import numpy as np
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.pool import ProcessPool
if __name__ == "__main__":
    pool = ProcessPool(functools.partial(ExactSearcher, np.eye(2)), 2)
    print(*pool.process_ids, flush=True)
    signal.pause()
"""


@pytest.fixture(scope="module")
def pool():
    """Three processes over a corpus of text ids."""
    load = functools.partial(ExactSearcher, WHOLE.vectors, WHOLE.ids)
    with ProcessPool(load, 3) as pool:
        yield pool


def pool_of(kind, processes=1, vectors=None):
    """A pool of a troubled searcher."""
    return ProcessPool(
        functools.partial(kind, np.eye(4) if vectors is None else vectors), processes
    )


def kill(process_id):
    """Kills a process and waits until it is dead; its parent still has to notice."""
    os.kill(process_id, signal.SIGKILL)
    os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)


def assert_gone(process_id):
    """Neither running nor a zombie."""
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


@settings(max_examples=60, deadline=None)
@given(request=requests(most=40))
def test_a_pool_answers_as_one_searcher(pool, request):
    assert_same_searcher(pool, WHOLE, request)


@pytest.mark.parametrize("rows", [1, 23, 24, 100])
def test_slices_come_back_in_order(pool, rows):
    queries = np.random.default_rng(7).normal(size=(rows, 4))
    assert_same(pool.search(queries, 0.5), WHOLE.search(queries, 0.5))


def test_what_a_pool_tells_of_the_index(pool):
    np.testing.assert_array_equal(pool.background, WHOLE.background)
    result = pool.search(np.eye(4), 0.5)
    for array in (result.item_ids, result.scores, result.truncated):
        assert array.flags.writeable


def test_concurrent_callers(pool):
    assert_concurrent_callers_are_served(pool)


@pytest.mark.parametrize("problem", BAD_REQUESTS)
def test_a_bad_request_is_refused_with_the_same_words(pool, problem):
    with pytest.raises(ValueError, match=r"Received: ") as expected:
        WHOLE.search(**BAD_REQUESTS[problem])
    with raises(ValueError, str(expected.value)):
        pool.search(**BAD_REQUESTS[problem])


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
def test_arrays_of_all_sizes_travel(size):
    ours, theirs = pool_worker.SPAWN.Pipe()
    value = {"number": size, "arrays": [np.arange(size), np.full(size, "ä"), np.eye(3).T]}
    with ours, theirs, ThreadPoolExecutor(1) as thread:
        sent = thread.submit(pool_worker.send, ours, value)
        received = pool_worker.receive(theirs)
        sent.result()
    assert received["number"] == size
    for left, right in zip(received["arrays"], value["arrays"], strict=True):
        np.testing.assert_array_equal(left, right)
        assert left.dtype == right.dtype


@pytest.mark.slow
def test_a_pool_of_scann_indexes(tmp_path):
    chance = np.random.default_rng(6)
    build_index(tmp_path / "index", chance.normal(size=(3_000, 16)), config=Index(exact_below=0))
    alone = load_index(tmp_path / "index")
    assert isinstance(alone, ScannSearcher)
    queries, thresholds = chance.normal(size=(64, 16)), chance.uniform(0.2, 0.6, 64)
    with ProcessPool(functools.partial(load_index, tmp_path / "index"), 2) as pool:
        result, expected = pool.search(queries, thresholds), alone.search(queries, thresholds)
    # Predictions come from float32 products, whose last bits depend on the size of the batch.
    np.testing.assert_allclose(result.expected_counts, expected.expected_counts, rtol=1e-3)
    assert_same(replace(result, expected_counts=expected.expected_counts), expected)


def test_large_batches_are_shared_and_small_ones_are_not():
    with pool_of(ProcessSearcher, 2, np.ones((1, 4))) as pool:

        def who_answers(rows):
            return np.unique(pool.search(np.ones((rows, 4)), 0.5).item_ids).tolist()

        both = sorted(pool.process_ids)
        assert len(set(both)) == 2
        assert len(who_answers(1)) == len(who_answers(2 * ROWS_A_SLICE - 1)) == 1
        assert who_answers(2 * ROWS_A_SLICE) == who_answers(1000) == both
        assert [who_answers(1), who_answers(1)] in ([both[:1], both[1:]], [both[1:], both[:1]])


def test_errors_of_a_worker_are_those_of_the_call():
    with pool_of(FailingSearcher) as pool:
        (process_id,) = pool.process_ids
        with raises(ValueError, "queries must be more than one. Received: 1."):
            pool.search(np.eye(4)[:1], 0.5)
        with raises(RuntimeError, "UnportableError: one and two"):
            pool.search(np.eye(4)[:2], 0.5)
        assert list(pool.search(np.eye(4)[:3], 0.5).item_ids) == [0, 1, 2]
        assert pool.process_ids == [process_id]


def test_a_worker_that_dies_in_a_call():
    with pool_of(FatalSearcher, 2) as pool:
        before = pool.process_ids
        with pytest.raises(ShardUnavailable) as caught:
            pool.search(np.eye(4), 0.5)
        (dead,) = set(before) - set(pool.process_ids)
        number = before.index(dead) + 1
        assert str(caught.value) == (
            f"Worker {number} of 2 (process {dead}) ended with exit code -9 during a call."
        )
        assert_gone(dead)
        # Both are asked: the one that was there, and the one in the place of the dead.
        many = np.tile(np.eye(4), (10, 1))
        assert_same(pool.search(many, 0.5), ExactSearcher(np.eye(4)).search(many, 0.5))


def test_a_worker_that_died_between_calls(pool):
    for victim in pool.process_ids:
        kill(victim)
    queries = np.tile(np.eye(4), (10, 1))
    assert_same(pool.search(queries, 0.5), WHOLE.search(queries, 0.5))


def test_a_call_that_is_interrupted_leaves_no_answer_behind(pool, monkeypatch):
    real = pool_worker.receive

    def interrupted(connection):
        monkeypatch.setattr(pool_worker, "receive", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(pool_worker, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.search(np.eye(4)[:1], -1.0)
    for row in range(4):
        query = np.eye(4)[[row]]
        assert_same(pool.search(query, 0.5), WHOLE.search(query, 0.5))


def test_an_index_that_cannot_be_loaded():
    with raises(ValueError, "vectors must have a length above zero. Received: rows 0, 1."):
        pool_of(ExactSearcher, 2, np.zeros((2, 4)))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ProcessPool(functools.partial(load_file, "/nowhere"), 1)
    with pytest.raises(
        ShardUnavailable,
        match=r"^Worker 1 of 1 \(process \d+\) ended with exit code 3 "
        r"before it had loaded the index\.$",
    ):
        ProcessPool(die, 1)
    with raises(ValueError, "processes must be a whole number of at least 1. Received: 0."):
        ProcessPool(die, 0)


def test_an_index_that_cannot_be_loaded_again(tmp_path):
    path = tmp_path / "vectors.txt"
    np.savetxt(path, np.eye(4))
    with ProcessPool(functools.partial(load_file, path), 1) as pool:
        path.rename(tmp_path / "away")
        kill(pool.process_ids[0])
        with raises(ShardUnavailable, f"Worker 1 of 1 could not load the index: {path} not found."):
            pool.search(np.eye(4), 0.5)
        (tmp_path / "away").rename(path)
        # The process that was started at once may have looked before.
        with contextlib.suppress(ShardUnavailable):
            pool.search(np.eye(4), 0.5)
        assert list(pool.search(np.eye(4), 0.5).item_ids) == [0, 1, 2, 3]


def test_a_closed_pool_has_no_processes_and_takes_no_calls():
    pool = pool_of(ExactSearcher, 2)
    with pool:
        processes = pool.process_ids
        pool.search(np.eye(4), 0.5)
    for process_id in processes:
        assert_gone(process_id)
    pool.close()
    for rows in (1, 100):
        with raises(RuntimeError, "The pool must be open. Received: a closed one."):
            pool.search(np.ones((rows, 4)), 0.5)


def test_a_pool_that_closes_ends_its_calls_first(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    load = functools.partial(HeldSearcher, np.eye(4), pipe)
    with ProcessPool(load, 2) as pool, ThreadPoolExecutor(2) as threads:
        answer = threads.submit(pool.search, np.eye(4)[:1], 0.5)
        # Opened when the worker opens its end.
        with pipe.open("wb"):
            closed = threads.submit(pool.close)
            with raises(RuntimeError, "The pool must be open. Received: a closed one."):
                # The first of them may still come before the close.
                while True:
                    pool.search(np.eye(4), 0.5)
            assert not closed.done()
        assert list(answer.result().item_ids) == [0]
        closed.result()


def test_workers_do_not_outlive_their_parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        try:
            workers = [os.pidfd_open(int(worker)) for worker in parent.stdout.readline().split()]
        finally:
            parent.kill()
    assert len(workers) == 2
    for worker in workers:
        assert select.select([worker], [], [], 60)[0]
        os.close(worker)
