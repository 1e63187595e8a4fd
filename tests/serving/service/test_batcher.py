"""Batches, bounds, deadlines and the stop, with an answer that waits until it is told to go on."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pebr_tf.config.serving import Batching
from serving.errors import DeadlineError, OverloadError, UnavailableError
from serving.retrieval import RetrievalRequest
from serving.service.batcher import Batcher

pytestmark = pytest.mark.anyio


class Answers:
    """Answers each call with its queries; holds batches back while the gate is closed."""

    def __init__(self):
        self.batches = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, batch):
        self.entered.set()
        assert self.gate.wait(60)
        self.batches.append([pending.request.queries for pending in batch])
        return [pending.request.queries for pending in batch]


@pytest.fixture
def answers():
    return Answers()


@pytest.fixture
def batcher_of(answers):
    def make(**settings):
        settings = {"max_size": 4, "max_delay_milliseconds": 0, "queue_limit": 8, **settings}
        # In a thread, so that a batch can be held back.
        return Batcher(Batching(**settings), answers, executor=executor)

    executor = ThreadPoolExecutor(1)
    yield make
    answers.gate.set()
    executor.shutdown()


def call(*queries, seconds=float("inf")):
    return RetrievalRequest(queries, deadline=time.monotonic() + seconds)


def submit(batcher, *queries):
    return asyncio.create_task(batcher.submit(call(*queries)))


async def held(batcher, answers):
    answers.gate.clear()
    answers.entered.clear()
    task = submit(batcher, "first")
    await asyncio.to_thread(answers.entered.wait, 60)
    return task


async def admitted(batcher, queries):
    while batcher.queries != queries:
        await asyncio.sleep(0)


async def test_what_gathers_during_a_batch_is_the_next_in_order_and_whole_calls(
    batcher_of, answers
):
    batcher = batcher_of()
    first = await held(batcher, answers)
    tasks = [submit(batcher, *texts) for texts in ("a", "bc", "de", "f")]
    await admitted(batcher, 6)
    answers.gate.set()
    replies = await asyncio.gather(first, *tasks)
    assert replies == [("first",), ("a",), ("b", "c"), ("d", "e"), ("f",)]
    # d and e would be the fourth and fifth query.
    assert answers.batches == [[("first",)], [("a",), ("b", "c")], [("d", "e"), ("f",)]]


async def test_a_call_larger_than_a_batch_is_a_batch_of_its_own(batcher_of, answers):
    assert await batcher_of().submit(call(*"abcdef")) == tuple("abcdef")
    assert answers.batches == [[tuple("abcdef")]]


async def test_a_call_that_does_not_fit_whole_is_rejected(batcher_of, answers):
    batcher = batcher_of()
    first = await held(batcher, answers)
    waiting = submit(batcher, *"abcdef")
    await admitted(batcher, 6)
    with pytest.raises(OverloadError, match=r"room for 3 more queries\. Received: 6 of 8 waiting"):
        await batcher.submit(call(*"xyz", seconds=0))
    answers.gate.set()
    await asyncio.gather(first, waiting)


async def test_a_call_that_is_late_or_whose_caller_has_gone_costs_nothing(batcher_of, answers):
    batcher = batcher_of()
    first = await held(batcher, answers)
    gone = submit(batcher, "gone")
    await admitted(batcher, 1)
    gone.cancel()
    await asyncio.wait([gone])
    with pytest.raises(DeadlineError, match=r"the deadline passed before the response was"):
        await batcher.submit(call("late", seconds=0.01))
    answers.gate.set()
    await first
    assert await batcher.submit(call("next")) == ("next",)
    assert answers.batches == [[("first",)], [("next",)]]
    # Neither keeps its place in the queue.
    assert batcher.queries == 0


async def test_a_batch_waits_for_those_who_have_just_been_answered(batcher_of, answers):
    batcher = batcher_of(max_delay_milliseconds=1_000)
    first = await held(batcher, answers)
    tasks = [submit(batcher, text) for text in "abc"]
    await admitted(batcher, 3)
    answers.gate.set()
    await asyncio.gather(first, *tasks)
    # As if that batch had taken long: three are expected back.
    batcher._until += 60.0
    later = []
    for text in "def":
        later.append(submit(batcher, text))
        await admitted(batcher, len(later) % 3)
    assert await asyncio.gather(*later) == [("d",), ("e",), ("f",)]
    assert answers.batches == [[("first",)], [("a",), ("b",), ("c",)], [("d",), ("e",), ("f",)]]


async def test_stop_answers_what_was_admitted_and_rejects_the_rest(batcher_of, answers):
    batcher = batcher_of()
    first = await held(batcher, answers)
    waiting = submit(batcher, "waiting")
    await admitted(batcher, 1)
    stopped = asyncio.create_task(batcher.stop())
    rejection = None
    while rejection is None:
        try:
            await batcher.submit(call("new", seconds=0))
        except UnavailableError as error:
            rejection = str(error)
        except (DeadlineError, OverloadError):
            pass
    assert rejection == "the service is stopping."
    answers.gate.set()
    await stopped
    assert await asyncio.gather(first, waiting) == [("first",), ("waiting",)]


async def test_without_a_thread_the_loop_answers_what_its_sockets_brought():
    threads, batches, counted = set(), [], []

    def answer(batch):
        threads.add(threading.get_ident())
        batches.append([pending.request.queries for pending in batch])
        return [pending.request.queries for pending in batch]

    batcher = Batcher(Batching(max_size=4, queue_limit=8), answer, counted.append)
    assert await batcher.submit(call("alone")) == ("alone",)
    replies = await asyncio.gather(*(batcher.submit(call(text)) for text in "abcdef"))
    assert replies == [(text,) for text in "abcdef"]
    assert batches == [[("alone",)], [(text,) for text in "abcd"], [("e",), ("f",)]]
    assert threads == {threading.get_ident()}
    await batcher.stop()
    assert counted == batches
