"""Shards, asked as one, answer as an exact searcher of all their items does."""

import threading

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
)
from troubled_searchers import DeadSearcher, FailingSearcher

from pebr_tf.retrieval.exact import BACKGROUND_SAMPLE, ExactSearcher
from pebr_tf.retrieval.sharded import (
    ShardedSearcher,
    ShardUnavailable,
    combined_sample,
    shard_of,
    split,
)

MODES = ["error", "partial"]
FIRST, SECOND = ExactSearcher(np.eye(4)[:2], [0, 1]), ExactSearcher(np.eye(4)[2:3], [2])
DEAD = DeadSearcher(np.eye(4)[3:], [3])


class AbsentSearcher(ExactSearcher):
    """Not even its dimension is known, while it is away."""

    away = True

    @property
    def dimension(self):
        if self.away:
            raise ShardUnavailable("Away.")
        return super().dimension

    def __len__(self):
        if self.away:
            raise ShardUnavailable("Away.")
        return super().__len__()


def sharded(ids, vectors, shards):
    """A sharded searcher of exact ones."""
    parts = split(ids, vectors, shards)
    return ShardedSearcher([ExactSearcher(vectors, ids) for ids, vectors in parts])


@settings(max_examples=200, deadline=None)
@given(corpus=corpora(), request=requests(), shards=st.integers(1, 4))
def test_shards_answer_as_one(corpus, request, shards):
    ids, vectors = corpus
    assert_same_searcher(sharded(ids, vectors, shards), ExactSearcher(vectors, ids), request)


def test_concurrent_callers():
    whole = random_corpus()
    assert_concurrent_callers_are_served(sharded(whole.ids, whole.vectors, 3))


def test_shards_are_asked_at_once():
    """Each waits in its search until all are there."""
    all_asked = threading.Barrier(3, timeout=30)

    class Waiting(ExactSearcher):
        def _search(self, request):
            all_asked.wait()
            return super()._search(request)

    shards = ShardedSearcher([Waiting(np.eye(3)[[number]], [number]) for number in range(3)])
    assert list(shards.search(np.ones((1, 3)), 0.5).item_ids) == [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("problem", BAD_REQUESTS)
def test_a_bad_request_is_refused_as_by_one(mode, problem):
    shards = ShardedSearcher([FIRST, DEAD, SECOND], mode)
    with pytest.raises(ValueError, match=r"Received: ") as expected:
        FIRST.search(**BAD_REQUESTS[problem])
    with raises(ValueError, str(expected.value)):
        shards.search(**BAD_REQUESTS[problem])


def test_what_a_shard_refuses_is_refused():
    shards = ShardedSearcher([FIRST, FailingSearcher(np.eye(4)[2:])], "partial")
    with raises(ValueError, "queries must be more than one. Received: 1."):
        shards.search(np.eye(4)[:1], 0.5)


def test_a_dead_shard_is_an_error():
    shards = ShardedSearcher([FIRST, DEAD, SECOND])
    text = "1 of 3 shards gave no answer. Shard 1: Nobody is at home."
    with raises(ShardUnavailable, text):
        shards.search(np.eye(4), 0.5)
    with raises(ShardUnavailable, text):
        shards.expected_count(np.eye(4), 0.5)


def test_a_dead_shard_makes_a_partial_answer():
    shards = ShardedSearcher([FIRST, DEAD, SECOND], "partial")
    result = shards.search(np.eye(4), 0.5)
    assert result.partial
    assert list(result.item_ids) == [0, 1, 2]
    assert list(result.counts) == list(result.expected_counts) == [1, 1, 1, 0]
    assert list(shards.expected_count(np.eye(4), 0.5)) == [1, 1, 1, 0]
    # A shard may itself be made of shards.
    outer = ShardedSearcher([shards, ExactSearcher(np.eye(4)[3:], [9])])
    assert outer.search(np.eye(4), 0.5).partial
    assert not ShardedSearcher([FIRST, SECOND], "partial").search(np.eye(4), 0.5).partial


@pytest.mark.parametrize("mode", MODES)
def test_all_shards_dead_is_an_error(mode):
    shards = ShardedSearcher([DEAD, DEAD], mode)
    with raises(
        ShardUnavailable,
        "2 of 2 shards gave no answer. Shard 0: Nobody is at home. Shard 1: Nobody is at home.",
    ):
        shards.search(np.eye(4), 0.5)


def test_a_shard_that_is_away_from_the_start():
    absent = AbsentSearcher(np.eye(4)[3:], [3])
    with raises(ShardUnavailable, "1 of 2 shards gave no answer. Shard 1: Away."):
        ShardedSearcher([FIRST, absent])
    with raises(ShardUnavailable, "2 of 2 shards gave no answer. Shard 0: Away. Shard 1: Away."):
        ShardedSearcher([absent, absent], "partial")
    shards = ShardedSearcher([absent, FIRST], "partial")
    assert (len(shards), shards.dimension, shards.id_dtype) == (2, 4, np.int64)
    np.testing.assert_array_equal(shards.background, FIRST.background)
    assert shards.search(np.eye(4), 0.5).partial
    absent.away = False
    assert len(shards) == 3
    np.testing.assert_array_equal(shards.background, np.eye(4)[[3, 0, 1]])
    result = shards.search(np.eye(4), 0.5)
    assert list(result.item_ids) == [0, 1, 3]
    assert not result.partial


def test_an_empty_shard_need_not_know_the_kind_of_ids():
    text = ExactSearcher(np.eye(4)[:2], ["a", "bcd"])
    shards = ShardedSearcher([ExactSearcher(np.empty((0, 4))), text])
    assert shards.id_dtype == "U3"
    for threshold in (0.5, 1.5):
        assert_same(shards.search(np.eye(4), threshold), text.search(np.eye(4), threshold))


def test_shards_that_do_not_fit():
    with raises(ValueError, "shards must be at least one searcher. Received: none."):
        ShardedSearcher([])
    with raises(ValueError, "dead_shard must be error or partial. Received: 'ignore'."):
        ShardedSearcher([FIRST], "ignore")
    with raises(ValueError, "shards must have one dimension. Received: 4, 3."):
        ShardedSearcher([FIRST, ExactSearcher(np.eye(3))])
    with raises(
        ValueError, "shards must all have text ids, or all integers. Received: int64, <U1."
    ):
        ShardedSearcher([FIRST, ExactSearcher(np.eye(4), list("abcd"))])


def test_the_background_of_small_shards_is_all_they_have():
    whole = random_corpus(50)
    shards = sharded(whole.ids, whole.vectors, 4)
    assert sorted(shards.background.tolist()) == sorted(whole.vectors.tolist())
    assert shards.background is shards.background
    assert ShardedSearcher([ExactSearcher(np.empty((0, 4)))] * 2).background.shape == (0, 4)


@given(
    sizes=st.lists(st.integers(0, 10**6), min_size=1, max_size=6),
    samples=st.lists(st.integers(1, 3_000), min_size=6, max_size=6),
)
def test_each_shard_has_the_share_of_its_items_in_the_background(sizes, samples):
    parts = [
        (size, np.full((min(size, sample), 1), number))
        for number, (size, sample) in enumerate(zip(sizes, samples, strict=False))
    ]
    combined = combined_sample(parts)
    np.testing.assert_array_equal(combined, combined_sample(parts))
    assert len(combined) <= max(BACKGROUND_SAMPLE, *(len(sample) for _, sample in parts), 0)
    for number, (size, sample) in enumerate(parts):
        share = (combined == number).sum()
        assert share <= len(sample)
        assert abs(share - size * len(combined) / max(1, sum(sizes))) <= 1.5


@given(corpus=corpora(), shards=st.integers(1, 5), data=st.data())
def test_an_item_lives_in_one_shard_whatever_the_others(corpus, shards, data):
    ids, vectors = corpus
    parts = split(ids, vectors, shards)
    assert len(parts) == shards
    home = {}
    for number, (part_ids, part_vectors) in enumerate(parts):
        assert part_ids.dtype == ids.dtype
        positions = [ids.tolist().index(item) for item in part_ids.tolist()]
        assert positions == sorted(positions)
        np.testing.assert_array_equal(part_vectors, vectors[positions])
        home |= dict.fromkeys(part_ids.tolist(), number)
    assert len(home) == len(ids)
    kept = data.draw(st.lists(st.sampled_from(ids.tolist()), unique=True)) if len(ids) else []
    fewer = np.array(kept, str if ids.dtype.kind == "U" else np.int64)
    assert shard_of(fewer, shards).tolist() == [home[item] for item in kept]


def plain_shard_of(item, shards):
    """The same hash, one id at a time in Python's integers."""
    word = 2**64
    if isinstance(item, str):
        mixed = 0
        for letter in item:
            mixed = (mixed ^ ord(letter)) * 0x100000001B3 % word if letter != "\0" else mixed
    else:
        mixed = item % word
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % word
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % word
    return (mixed ^ mixed >> 31) % shards


@given(corpus=corpora(), shards=st.integers(1, 1000))
def test_shards_of_ids_against_plain_python(corpus, shards):
    ids, _ = corpus
    assert shard_of(ids, shards).tolist() == [plain_shard_of(i, shards) for i in ids.tolist()]


def test_shards_of_ids_never_change():
    """An index on disk was split by these, in arrays of whatever width."""
    numbers = np.array([0, 1, 2, -1, 2**63 - 1])
    texts = np.array(["", "a", "ab", "ba", "長い", "𝔘"])
    assert shard_of(numbers, 1000).tolist() == [0, 789, 730, 67, 533]
    for dtype in ("<U2", ">U2", "<U30"):
        assert shard_of(texts.astype(dtype), 1000).tolist() == [0, 142, 286, 66, 208, 414]


@pytest.mark.parametrize("text", [False, True])
def test_shards_are_of_one_size(text):
    ids = np.arange(40_000)
    counts = np.bincount(shard_of(ids.astype(str) if text else ids, 4))
    # Five standard deviations of a fair draw.
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(40_000 * 0.25 * 0.75)


def test_a_split_that_cannot_be():
    with raises(ValueError, "ids must be 2 values, one a vector. Received: shape (3,)."):
        split([1, 2, 3], np.eye(2), 2)
    with raises(ValueError, "ids must be different. Received: row 1 (7)."):
        split([7, 7], np.eye(2), 2)
    with raises(ValueError, "shards must be a whole number of at least 1. Received: 0."):
        split([1, 2], np.eye(2), 0)
