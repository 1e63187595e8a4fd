"""A base with updates answers as a fresh build from the live items does."""

import re
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pebr_tf.retrieval import updates
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.result import RangeResult
from pebr_tf.retrieval.searcher import Request
from pebr_tf.retrieval.updates import UpdatableSearcher, load_updates

DIMENSION = 4
# Directions that many items share, so that scores tie and a few items cannot be told by score.
DIRECTIONS = np.array(
    [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, -1], [-1, 0, 0, 0], [3, 1, 2, 5]], float
)


def refused(message):
    """Expects a ValueError of exactly this text."""
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def fresh(live, text):
    """An exact searcher of {id: direction}."""
    ids = np.array(list(live), None if live else ("U1" if text else np.int64))
    return ExactSearcher(DIRECTIONS[list(live.values())].reshape(-1, DIMENSION), ids)


def assert_same_answers(found, expected):
    """Rows, ids, scores, thresholds and flags are equal to the last bit."""
    for name in ("row_splits", "item_ids", "scores", "thresholds", "truncated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.partial == expected.partial


def random_corpus(size, dimension=8, seed=0):
    """Unit vectors [size, dimension]."""
    vectors = np.random.default_rng(seed).normal(size=(size, dimension)).astype(np.float32)
    return ExactSearcher(vectors).vectors


class RecordingBase(ExactSearcher):
    """Remembers what it is asked, and may run into a cap on work."""

    def __init__(self, *arguments, work_cap=lambda request: np.zeros(len(request), bool)):
        """`work_cap` maps a request to the rows [B] that the base did not finish."""
        super().__init__(*arguments)
        self.asked: list[Request] = []
        self.work_cap = work_cap

    def _search(self, request):
        self.asked.append(request)
        result = super()._search(request)
        return replace(result, truncated=result.truncated | self.work_cap(request))


class UpdatesAgainstFreshBuilds(RuleBasedStateMachine):
    """Any sequence of updates, compared with a fresh build after each of them."""

    ITEMS = st.dictionaries(st.integers(0, 40), st.integers(0, len(DIRECTIONS) - 1), max_size=12)

    @initialize(
        items=st.dictionaries(st.integers(0, 25), st.integers(0, len(DIRECTIONS) - 1)),
        text=st.booleans(),
    )
    def build(self, items, text):
        self.text = text
        self.live = self.named(items)
        self.given = set()
        self.base = fresh(self.live, text)
        self.searcher = UpdatableSearcher(self.base)

    def named(self, items):
        # Ids above 9 are longer texts than any in some bases.
        return {(f"n{key}" if self.text else key): value for key, value in items.items()}

    @rule(items=ITEMS)
    def upsert(self, items):
        items = self.named(items)
        self.searcher.upsert(list(items), DIRECTIONS[list(items.values())].reshape(-1, DIMENSION))
        self.live |= items
        self.given |= items.keys()

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def remove(self, data):
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.live)), unique=True))
        self.searcher.remove(chosen)
        self.live = {key: value for key, value in self.live.items() if key not in chosen}
        self.given -= set(chosen)

    @precondition(lambda self: self.live)
    @rule()
    def remove_all(self):
        self.searcher.remove(list(self.live))
        self.live, self.given = {}, set()

    @rule(known=st.booleans())
    def remove_unknown(self, known):
        unknown = "unknown" if self.text else 1_000
        ids = [*list(self.live)[:known], unknown]
        with refused(f"ids must be in the index. Received: row {len(ids) - 1} ({unknown!r})."):
            self.searcher.remove(ids)

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "updates.npz"
            self.searcher.save(path)
            self.searcher = load_updates(self.base, path)

    @rule(
        thresholds=st.lists(
            st.sampled_from([-1, -0.5, 0, 0.5, 1, 2]),
            min_size=len(DIRECTIONS),
            max_size=len(DIRECTIONS),
        ),
        top_k=st.none() | st.integers(1, 12),
        max_results=st.integers(1, 12) | st.just(10_000),
        first_extra=st.sampled_from([1, 2, 64]),
    )
    def search(self, thresholds, top_k, max_results, first_extra):
        with mock.patch.multiple(updates, FIRST_EXTRA=first_extra, GROWTH=2):
            found = self.searcher.search(DIRECTIONS, thresholds, top_k, max_results)
        expected = fresh(self.live, self.text).search(DIRECTIONS, thresholds, top_k, max_results)
        assert_same_answers(found, expected)
        if self.live:
            np.testing.assert_array_equal(
                found.expected_counts, self.searcher.expected_count(DIRECTIONS, thresholds)
            )

    @invariant()
    def counts(self):
        assert len(self.searcher) == len(self.live)
        ids, vectors = self.searcher.items()
        order, expected = np.argsort(ids), fresh(self.live, self.text)
        np.testing.assert_array_equal(ids[order], np.sort(expected.ids))
        np.testing.assert_array_equal(vectors[order], expected.vectors[np.argsort(expected.ids)])
        removed = set(self.base.ids.tolist()) - self.live.keys()
        assert self.searcher.pending == len(self.given | removed)
        assert len(self.searcher.background) or not self.live


TestSequences = UpdatesAgainstFreshBuilds.TestCase
TestSequences.settings = settings(deadline=None, max_examples=60, stateful_step_count=20)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 600),
    top_k=st.none() | st.integers(1, 100),
    max_results=st.integers(1, 100) | st.just(10_000),
)
def test_random_corpora_answer_as_a_fresh_build(seed, size, top_k, max_results):
    generator = np.random.default_rng(seed)
    base = ExactSearcher(random_corpus(size, seed=seed), generator.permutation(10 * size)[:size])
    searcher = UpdatableSearcher(base)
    for _ in range(4):
        ids, _ = searcher.items()
        searcher.remove(generator.permutation(ids)[: generator.integers(len(ids))])
        more = generator.permutation(10 * size)[: generator.integers(1, 50)]
        searcher.upsert(more, generator.normal(size=(len(more), 8)))
    queries, thresholds = generator.normal(size=(20, 8)), generator.uniform(-1, 1, 20)
    ids, vectors = searcher.items()
    expected = ExactSearcher(vectors, ids).search(queries, thresholds, top_k, max_results)
    assert_same_answers(searcher.search(queries, thresholds, top_k, max_results), expected)


def test_without_updates_the_base_is_asked_as_it_is():
    base = RecordingBase(np.eye(DIMENSION))
    searcher = UpdatableSearcher(base)
    result = searcher.search(np.eye(DIMENSION), 0.5, top_k=7, max_results=3)
    assert_same_answers(result, base.search(np.eye(DIMENSION), 0.5, top_k=7, max_results=3))
    assert [(asked.top_k, asked.max_results) for asked in base.asked] == [(7, 3), (7, 3)]
    assert searcher.pending == 0
    assert searcher.dimension == DIMENSION
    assert searcher.id_dtype == np.int64


def test_a_few_removals_cost_one_search_for_a_few_more_items():
    base = RecordingBase(random_corpus(2_000))
    searcher = UpdatableSearcher(base)
    searcher.remove(np.arange(10))
    searcher.search(random_corpus(30), 0.0, max_results=100)
    # One more than the cap shows whether it cuts.
    assert [(len(asked), asked.limit) for asked in base.asked] == [(30, 100 + 1 + 10)]
    base.asked.clear()
    searcher.search(random_corpus(30), 0.0, top_k=100)
    assert [(len(asked), asked.limit) for asked in base.asked] == [(30, 100 + 10)]


def test_only_the_rows_that_lost_too_many_ask_again():
    directions = np.eye(4, dtype=np.float32)
    base = RecordingBase(
        np.repeat(directions, [1_000, 30, 1_000, 4_000], axis=0),
        # Only the largest request is too much, and only for the last direction.
        work_cap=lambda request: (request.queries[:, 3] == 1) & (request.limit > 2_000),
    )
    searcher = UpdatableSearcher(base)
    searcher.remove([*range(1_030, 1_230), *range(2_030, 5_030)])
    thresholds = [0.3, 0.4, 0.5, 0.6]
    result = searcher.search(directions, thresholds, top_k=20)
    # The first row lost none, the second was all there, the third and the last lost 200 and 3,000.
    assert [(asked.queries.argmax(axis=1).tolist(), asked.limit) for asked in base.asked] == [
        ([0, 1, 2, 3], 20 + 64),
        ([2, 3], 20 + 1_024),
        ([3], 20 + 3_200),
    ]
    expected = ExactSearcher(*searcher.items()[::-1]).search(directions, thresholds, top_k=20)
    assert_same_answers(result, replace(expected, truncated=np.array([0, 0, 0, 1], bool)))
    np.testing.assert_array_equal(
        result.expected_counts, searcher.expected_count(directions, thresholds)
    )


def test_many_removals_are_asked_past_in_steps():
    base = RecordingBase(np.ones((5_000, 2)))
    searcher = UpdatableSearcher(base)
    searcher.remove(np.arange(4_000))
    result = searcher.search([[1, 1]], 0.5, top_k=3)
    assert result.item_ids.tolist() == [4_000, 4_001, 4_002]
    assert [asked.limit for asked in base.asked] == [3 + 64, 3 + 1_024, 3 + 4_000]


def test_the_base_is_asked_for_no_more_than_it_holds():
    base = RecordingBase(np.ones((100, 2)))
    searcher = UpdatableSearcher(base)
    searcher.remove(np.arange(99))
    assert searcher.search([[1, 1]], 0.5, top_k=90).item_ids.tolist() == [99]
    assert [asked.limit for asked in base.asked] == [100]


def test_a_base_without_live_items_is_not_asked():
    base = RecordingBase(np.eye(2))
    searcher = UpdatableSearcher(base)
    searcher.remove([0, 1])
    assert searcher.search(np.eye(2), -1).counts.tolist() == [0, 0]
    searcher.upsert([1], [[1, 1]])
    assert searcher.search(np.eye(2), -1).item_ids.tolist() == [1, 1]
    assert searcher.expected_count(np.eye(2), -1).tolist() == [1, 1]
    assert base.asked == []


@pytest.mark.parametrize("dead", [0, 5, 100])
@pytest.mark.parametrize(
    ("top_k", "max_results", "cut"), [(None, 300, False), (None, 299, True), (299, 299, False)]
)
def test_truncated_tells_the_cap_and_the_work_of_the_base(dead, top_k, max_results, cut):
    # 300 live items of one direction: 290 + dead in the base, of which some die, and 10 beside it.
    queries = np.array([[1, 0], [0, 1]], np.float32)
    vectors = np.repeat([queries[0]], 290 + dead, axis=0)
    for work_capped in (False, True):
        base = RecordingBase(
            vectors, work_cap=lambda request, flag=work_capped: (request.queries[:, 0] == 1) & flag
        )
        searcher = UpdatableSearcher(base)
        searcher.remove(np.arange(dead))
        searcher.upsert(np.arange(1_000, 1_010), np.repeat([queries[0]], 10, axis=0))
        result = searcher.search(queries, 0.5, top_k, max_results)
        assert result.counts.tolist() == [min(300, max_results), 0]
        assert result.truncated.tolist() == [cut or work_capped, False]


def test_the_answers_of_a_base_with_a_part_missing_stay_partial():
    class PartialBase(ExactSearcher):
        def _search(self, request) -> RangeResult:
            return replace(super()._search(request), partial=True)

    searcher = UpdatableSearcher(PartialBase(np.ones((200, 2))))
    searcher.remove(np.arange(150))
    assert searcher.search([[1, 1]], 0.5, top_k=2).partial


def test_longer_texts_are_not_cut():
    searcher = UpdatableSearcher(ExactSearcher(np.eye(3), ["abc", "abd", "b"]))
    searcher.upsert(["abcdefgh", "abc"], [[1, 0, 0], [1, 1, 1]])
    assert searcher.id_dtype == np.dtype("U8")
    result = searcher.search([[1, 0, 0]], 0.1)
    assert result.item_ids.tolist() == ["abcdefgh", "abc"]
    with refused("ids must be in the index. Received: row 0 ('abdefgh')."):
        searcher.remove(["abdefgh"])
    searcher.remove(["abcdefgh"])
    assert sorted(searcher.items()[0].tolist()) == ["abc", "abd", "b"]


def test_shorter_texts_keep_the_dtype_of_the_index():
    searcher = UpdatableSearcher(ExactSearcher(np.eye(2), ["first", "second"]))
    searcher.remove(["first", "second"])
    searcher.upsert(["a"], [[1, 0]])
    assert searcher.search(np.eye(2), 0.5).item_ids.dtype == searcher.id_dtype == np.dtype("U6")


def test_an_empty_base_can_be_filled():
    searcher = UpdatableSearcher(ExactSearcher(np.empty((0, 2))))
    assert searcher.search(np.eye(2), -1).counts.tolist() == [0, 0]
    searcher.upsert([7, 3], np.eye(2))
    result = searcher.search(np.eye(2), 0)
    assert result.item_ids.tolist() == [7, 3, 3, 7]
    assert result.expected_counts.tolist() == [2, 2]
    assert searcher.expected_count(np.eye(2), 0).tolist() == [2, 2]
    searcher.remove([3])
    assert searcher.items()[0].tolist() == [7]


def test_the_background_is_of_the_base_or_of_what_was_added_to_an_empty_one():
    base = ExactSearcher(np.eye(2))
    searcher = UpdatableSearcher(base)
    searcher.upsert([7], [[1, 1]])
    assert searcher.background is base.background
    searcher = UpdatableSearcher(ExactSearcher(np.empty((0, 2))))
    assert searcher.background.shape == (0, 2)
    searcher.upsert([7], [[0, 2]])
    np.testing.assert_array_equal(searcher.background, [[0, 1]])


def test_expected_counts_leave_out_the_dead_share_of_the_base():
    searcher = UpdatableSearcher(ExactSearcher(np.repeat(np.eye(2), 50, axis=0)))
    searcher.remove(np.arange(25, 75))
    searcher.upsert(np.arange(200, 207), np.ones((7, 2)))
    result = searcher.search(np.eye(2), [0.9, 0.5])
    assert result.expected_counts.tolist() == [25, 25 + 7]
    assert searcher.expected_count(np.eye(2), [0.9, 0.5]).tolist() == [25, 25 + 7]
    assert result.expected_counts.dtype == np.float32


def test_an_empty_update_changes_nothing():
    for ids in ([0, 1], ["a", "b"]):
        searcher = UpdatableSearcher(ExactSearcher(np.eye(2), ids))
        searcher.upsert([], np.empty((0, 2)))
        searcher.remove([])
        assert (len(searcher), searcher.pending) == (2, 0)
        assert searcher.items()[0].tolist() == ids
        searcher.upsert(ids[:1], np.eye(2)[:1])
        searcher.upsert([], np.empty((0, 2)))
        assert searcher.id_dtype == np.array(ids).dtype


def test_the_caller_may_change_what_it_gave():
    ids, vectors = np.array([5]), np.array([[1, 0]], np.float32)
    searcher = UpdatableSearcher(ExactSearcher(np.empty((0, 2))))
    searcher.upsert(ids, vectors)
    ids[:], vectors[:] = 6, 0
    assert searcher.search([[1, 0]], 0.5).item_ids.tolist() == [5]


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        ([5, 6, 5], np.eye(3), "ids must be different. Received: row 2 (5)."),
        (
            ["a", "b", "c"],
            np.eye(3),
            "ids must be integers, as in the index. Received: <U1.",
        ),
        ([0.5], np.eye(3)[:1], "ids must be integers or text. Received: float64."),
        (None, np.eye(3), "ids must be 3 values, one a vector. Received: shape ()."),
        ([1, 2], np.eye(3), "ids must be 3 values, one a vector. Received: shape (2,)."),
        ([1, 2], np.eye(2), "vectors must have dimension 3. Received: 2."),
        ([1], [[np.nan, 0, 0]], "vectors must be finite. Received: row 0."),
        ([1], [[0, 0, 0]], "vectors must have a length above zero. Received: row 0."),
    ],
)
def test_bad_items_are_refused_and_change_nothing(ids, vectors, message):
    searcher = UpdatableSearcher(ExactSearcher(np.eye(3)))
    with refused(message):
        searcher.upsert(ids, vectors)
    assert (len(searcher), searcher.pending) == (3, 0)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "x", "y"], "ids must be in the index. Received: rows 1 ('x'), 2 ('y')."),
        (["b"], "ids must be in the index. Received: row 0 ('b')."),
        (["a", "a"], "ids must be different. Received: row 1 ('a')."),
        ([1], "ids must be text, as in the index. Received: int64."),
    ],
)
def test_unknown_items_are_refused_and_change_nothing(ids, message):
    searcher = UpdatableSearcher(ExactSearcher(np.eye(3), ["a", "b", "c"]))
    searcher.remove(["b"])
    with refused(message):
        searcher.remove(ids)
    assert (len(searcher), searcher.pending) == (2, 1)


def test_a_base_that_cannot_list_its_items_is_refused():
    with refused("base must have ids and vectors. Received: UpdatableSearcher, without."):
        UpdatableSearcher(UpdatableSearcher(ExactSearcher(np.eye(2))))


class InterruptedBase(ExactSearcher):
    """Lets something happen while it searches."""

    def _search(self, request):
        self.meanwhile()
        return super()._search(request)


def test_an_update_during_a_search_is_not_seen_by_it():
    base = InterruptedBase(np.ones((300, 2)))
    searcher = UpdatableSearcher(base)
    searcher.remove(np.arange(100))
    searcher.upsert([-1, 1_000], np.ones((2, 2)))
    expected = ExactSearcher(*searcher.items()[::-1]).search([[1, 1]], 0.5, top_k=150)

    def update():
        ids, _ = searcher.items()
        searcher.remove(ids[::2])
        searcher.upsert(-1_000 - len(ids) - np.arange(50), np.ones((50, 2)))

    base.meanwhile = update
    assert_same_answers(searcher.search([[1, 1]], 0.5, top_k=150), expected)
    base.meanwhile = lambda: None
    after = searcher.search([[1, 1]], 0.5)
    np.testing.assert_array_equal(after.item_ids, np.sort(searcher.items()[0]))


def test_the_last_item_may_go_while_a_search_begins():
    searcher = UpdatableSearcher(ExactSearcher(np.eye(2), ["a", "b"]))
    searcher.remove(["a", "b"])
    # What `search` calls if it saw the items before they were removed.
    queries, thresholds = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
    result = searcher._search(Request(queries, thresholds, None, 10))
    assert result.counts.tolist() == [0, 0]
    assert result.item_ids.dtype == searcher.id_dtype
    assert searcher._expected_count(queries, thresholds).tolist() == [0, 0]


@pytest.fixture
def eager_threads():
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_together(*functions):
    """Runs each function in a thread of its own; raises what any of them raises."""
    errors = []
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.usefixtures("eager_threads")
def test_searches_during_updates_see_whole_updates():
    searcher = UpdatableSearcher(ExactSearcher(np.repeat(np.eye(2), 20, axis=0)))
    ids = np.arange(30)  # 20 of the first direction and 10 of the second.
    counts, done = set(), threading.Event()

    def write():
        try:
            for turn in range(150):
                searcher.upsert(ids, np.repeat(np.eye(2)[[turn % 2]], len(ids), axis=0))
                searcher.remove(ids[:5])
        finally:
            done.set()

    def read():
        while not done.is_set():
            result = searcher.search(np.eye(2), 0.5)
            assert len(set(result.row(0)[0].tolist())) == result.counts[0]
            counts.add(tuple(result.counts.tolist()))

    run_together(write, read, read)
    assert counts <= {(20, 20), (30, 10), (25, 10), (0, 40), (0, 35)}
    assert len(searcher) == 35


@pytest.mark.usefixtures("eager_threads")
def test_updates_of_several_threads_are_all_kept():
    searcher = UpdatableSearcher(ExactSearcher(np.tile(np.eye(2), (200, 1))))

    def writer(number):
        def write():
            for turn in range(40):
                searcher.upsert([1_000 * number + turn], [[1, 1]])
                searcher.remove([100 * (number - 1) + turn])

        return write

    run_together(*(writer(number) for number in (1, 2, 3, 4)))
    assert len(searcher) == 400
    expected = {i for i in range(400) if i % 100 >= 40}
    expected |= {1_000 * number + turn for number in (1, 2, 3, 4) for turn in range(40)}
    assert set(searcher.items()[0].tolist()) == expected
