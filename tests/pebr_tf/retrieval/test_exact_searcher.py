"""The exact searcher against brute force in plain Python.

Vectors of one 1 or of four halves have cosines that floats hold exactly, in multiples of 1/4: full
of ties, and comparable without a tolerance. Random vectors are compared within 3e-7.
"""

import math
import random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from searcher_cases import assert_same, raises, rows_of

from pebr_tf.retrieval.exact import ExactSearcher, cosines, sample_of
from pebr_tf.retrieval.searcher import DEFAULT_LIMIT

THRESHOLDS = [-2.0, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, math.inf, -math.inf]
# The oracle of the others keeps more than the 5e-7 that every searcher promises.
CLOSE = 3e-7
ONE_EACH = "thresholds must be one number or 2, one per query."
ABOVE_ONE = np.nextafter(np.float32(1), np.float32(2))


def sparse_vectors(chance, size, dimension):
    """[size, dimension] unit vectors: one place of 1 or four of 1/2, each with a sign."""
    # Few places, so that many vectors are equal, opposite or orthogonal.
    places = [*range(min(dimension, 7) - 1), dimension - 1]
    vectors = np.zeros((size, dimension))
    for vector in vectors:
        if dimension < 4 or chance.random() < 0.3:
            vector[chance.choice(places)] = chance.choice([-1.0, 1.0])
        else:
            vector[chance.sample(places, 4)] = [chance.choice([-0.5, 0.5]) for _ in range(4)]
    return vectors


def random_ids(chance, size, text):
    numbers = chance.sample(range(-10_000, 10_000), size)
    return [f"item {number}" for number in numbers] if text else numbers


def brute_force(query, items, ids, threshold, top_k, limit):
    """Pairs (id, score), best first, and whether the limit cut some."""
    scores = (items * query).sum(axis=1).tolist()
    found = [pair for pair in zip(ids, scores, strict=True) if pair[1] >= threshold]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    wanted = len(found) if top_k is None else min(len(found), top_k)
    return found[: min(wanted, limit)], wanted > limit


def result_pairs(result):
    return rows_of(result)[0]


SIZES = st.integers(0, 30) | st.integers(200, 500)
DIMENSIONS = st.integers(2, 8) | st.integers(9, 256)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=SIZES,
    dimension=DIMENSIONS,
    text=st.booleans(),
    thresholds=st.lists(st.sampled_from(THRESHOLDS), min_size=1, max_size=4),
    top_k=st.none() | st.integers(1, 6) | st.integers(1, 6_000),
    limit=st.integers(1, 6) | st.integers(1, 6_000) | st.just(DEFAULT_LIMIT),
)
def test_every_item_at_or_above_the_threshold_best_first(
    seed, size, dimension, text, thresholds, top_k, limit
):
    chance = random.Random(seed)
    items = sparse_vectors(chance, size, dimension)
    queries = sparse_vectors(chance, len(thresholds), dimension)
    ids = random_ids(chance, size, text)
    searcher = ExactSearcher(items, np.array(ids, "U12" if text else np.int64))
    result = searcher.search(queries, thresholds, top_k, limit)

    for row, (query, threshold) in enumerate(zip(queries, thresholds, strict=True)):
        expected, cut = brute_force(query, items, ids, threshold, top_k, limit)
        assert rows_of(result)[row] == expected
        assert result.truncated[row] == cut
        # The flag turns exactly where the limit begins to cut.
        passed = len(brute_force(query, items, ids, threshold, None, size + 1)[0])
        for other in {max(1, passed - 1), max(1, passed), passed + 1}:
            limited = searcher.search(query[None], threshold, limit=other)
            assert limited.truncated.tolist() == [passed > other]
            assert limited.counts.tolist() == [min(passed, other)]
    assert result.item_ids.dtype == searcher.ids.dtype
    assert result.scores.dtype == np.float32


def random_vectors(generator, size, dimension):
    """float64 vectors of many lengths, some of them repeated and some of them turned around."""
    vectors = generator.normal(size=(size, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if size >= 4:
        source = generator.integers(size, size=size // 4)
        target = generator.choice(size, size // 4, replace=False)
        vectors[target] = vectors[source] * generator.choice([-1, 1], size=(size // 4, 1))
    lengths = generator.choice([1, 1 + 9e-7, 1 - 9e-7, 1e-3, 50.0], size=(size, 1))
    return vectors * lengths


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=SIZES,
    dimension=DIMENSIONS,
    threshold=st.floats(-1.1, 1.1),
    top_k=st.none() | st.integers(1, 50),
)
def test_random_vectors_score_close_to_the_real_cosine(seed, size, dimension, threshold, top_k):
    generator = np.random.default_rng(seed)
    items = random_vectors(generator, size, dimension)
    query = random_vectors(generator, 1, dimension)[0]
    if size:
        query = generator.choice([query, items[0], -items[0]])
    real = {}
    for item_id, item in enumerate(items):
        lengths = math.sqrt(np.dot(item, item)) * math.sqrt(np.dot(query, query))
        real[item_id] = float(np.dot(item, query)) / lengths

    result = ExactSearcher(items).search(query[None], threshold, top_k)
    ids, scores = (array.tolist() for array in result.row(0))
    assert all(-1 <= score <= 1 for score in scores)
    assert all(abs(real[item_id] - score) <= CLOSE for item_id, score in result_pairs(result))
    assert result_pairs(result) == sorted(result_pairs(result), key=lambda p: (-p[1], p[0]))
    if threshold > -1:
        assert all(score >= np.float32(threshold) for score in scores)
    if top_k is None or len(ids) < top_k:
        left_out = [score for item_id, score in real.items() if item_id not in set(ids)]
        assert all(score < threshold + CLOSE for score in left_out)
    else:
        assert len(ids) == top_k
        rest = sorted(score for item_id, score in real.items() if item_id not in set(ids))
        assert not rest or rest[-1] <= scores[-1] + CLOSE
    assert not result.truncated.any()


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 400), dimension=st.integers(2, 256))
def test_a_threshold_at_an_exact_score_includes_it(seed, size, dimension):
    generator = np.random.default_rng(seed)
    searcher = ExactSearcher(random_vectors(generator, size, dimension))
    query = random_vectors(generator, 1, dimension)
    pairs = result_pairs(searcher.search(query, top_k=size))
    item_id, score = pairs[generator.integers(size)]
    at_score = searcher.search(query, np.float32(score))
    assert result_pairs(at_score) == [pair for pair in pairs if pair[1] >= score]
    above = searcher.search(query, np.nextafter(np.float32(score), np.float32(2)))
    assert result_pairs(above) == [pair for pair in pairs if pair[1] > score]
    assert item_id in at_score.item_ids
    assert item_id not in above.item_ids


@settings(deadline=None, max_examples=10)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 600),
    dimension=st.integers(2, 256),
    batch=st.integers(1, 30),
    top_k=st.none() | st.integers(1, 20),
)
def test_an_answer_does_not_depend_on_its_batch(seed, size, dimension, batch, top_k):
    generator = np.random.default_rng(seed)
    searcher = ExactSearcher(random_vectors(generator, size, dimension))
    queries = random_vectors(generator, batch, dimension)
    thresholds = generator.uniform(-0.5, 1, batch)
    whole = searcher.search(queries, thresholds, top_k)
    assert_same(whole, searcher.search(queries, thresholds, top_k))
    for row in range(batch):
        alone = searcher.search(queries[row : row + 1], thresholds[row], top_k)
        assert result_pairs(alone) == rows_of(whole)[row]
    backwards = searcher.search(queries[::-1], thresholds[::-1], top_k)
    assert rows_of(backwards)[::-1] == rows_of(whole)


def test_blocks_of_queries_and_of_pairs_make_no_difference(monkeypatch):
    generator = np.random.default_rng(0)
    searcher = ExactSearcher(random_vectors(generator, 300, 16))
    queries = random_vectors(generator, 20, 16)
    whole = searcher.search(queries, 0.1, top_k=50)
    for block in (1, 100, 1_000):
        monkeypatch.setattr("pebr_tf.retrieval.exact.BLOCK_SCORES", block)
        assert_same(searcher.search(queries, 0.1, top_k=50), whole)


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(2, 256))
def test_no_item_passes_a_threshold_above_one_and_every_item_minus_one(seed, dimension):
    vectors = random_vectors(np.random.default_rng(seed), 200, dimension)
    searcher = ExactSearcher(vectors)
    for threshold in (ABOVE_ONE, 2, math.inf):
        assert searcher.search(vectors, threshold).counts.tolist() == [0] * 200
    for threshold in (-1, -2, -math.inf):
        result = searcher.search(vectors[:9], threshold)
        assert result.counts.tolist() == [200] * 9
        assert result.thresholds.tolist() == [-math.inf] * 9


def test_an_empty_batch_gives_an_empty_result():
    searcher = ExactSearcher(np.eye(4), ["a", "b", "c", "d"])
    for thresholds in (0.5, [], None):
        result = searcher.search(np.empty((0, 4)), thresholds, top_k=3)
        assert len(result) == 0
        assert result.item_ids.dtype == searcher.ids.dtype
        assert result.thresholds.shape == result.truncated.shape == (0,)


def test_bad_queries_are_rejected_even_by_an_empty_index():
    for size in (0, 2):
        with raises(ValueError, "queries must have dimension 2. Received: 3."):
            ExactSearcher(np.eye(2)[:size]).search([[1, 0, 0]], 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "search requires thresholds, top_k or both. Received: neither."),
        ({"thresholds": [0.5]}, f"{ONE_EACH} Received: shape (1,)."),
        ({"thresholds": [0.5, np.nan]}, "thresholds must be numbers. Received: row 1."),
        ({"thresholds": np.nan}, "thresholds must be numbers. Received: rows 0, 1."),
        ({"top_k": 0}, "top_k must be a whole number of at least 1. Received: 0."),
        ({"top_k": 2.0}, "top_k must be a whole number of at least 1. Received: 2.0."),
        ({"top_k": True}, "top_k must be a whole number of at least 1. Received: True."),
        ({"top_k": 1, "limit": -1}, "limit must be a whole number of at least 1. Received: -1."),
    ],
)
def test_bad_options_are_rejected(options, message):
    with raises(ValueError, message):
        ExactSearcher(np.eye(2)).search(np.eye(2), **options)


def test_items_are_checked_unless_the_caller_has_checked_them():
    with raises(ValueError, "ids must be different. Received: row 1 (1)."):
        ExactSearcher(np.eye(2), [1, 1])
    with raises(ValueError, "vectors must have a length above zero. Received: row 1."):
        ExactSearcher([[1, 0], [0, 0]])
    searcher = ExactSearcher([[3, 4], [0, -2]], ["left", "down"])
    assert (len(searcher), searcher.dimension, searcher.ids.tolist()) == (2, 2, ["left", "down"])
    np.testing.assert_array_equal(searcher.vectors, np.array([[0.6, 0.8], [0, -1]], np.float32))
    again = ExactSearcher(searcher.vectors, searcher.ids, checked=True)
    assert again.vectors is searcher.vectors
    assert again.ids is searcher.ids


def test_a_small_corpus_is_its_own_background_and_its_counts_are_exact():
    vectors = random_vectors(np.random.default_rng(0), 500, 8)
    searcher = ExactSearcher(vectors)
    np.testing.assert_array_equal(searcher.background, searcher.vectors)
    result = searcher.search(vectors[:20], 0.3)
    np.testing.assert_array_equal(result.expected_counts, result.counts)
    assert result.expected_counts.dtype == np.float32


def test_the_background_of_a_large_corpus_predicts_its_counts():
    vectors = np.random.default_rng(0).normal(size=(5_000, 4))
    searcher = ExactSearcher(vectors)
    assert searcher.background.shape == (2_000, 4)
    assert len(np.unique(searcher.background, axis=0)) == 2_000
    np.testing.assert_array_equal(searcher.background, sample_of(searcher.vectors))
    result = searcher.search(vectors[:50], 0.2)
    # Five standard deviations of a share p = 0.4 in a sample of 2,000.
    allowed = 5 * 5_000 * math.sqrt(0.4 * 0.6 / 2_000)
    assert np.abs(result.expected_counts - result.counts).max() <= allowed


@pytest.mark.parametrize("dimension", [16, 64, 200])
def test_items_that_float32_cannot_order_are_ordered(dimension):
    # Scores so close that the first, float32 product ranks them by its own rounding.
    generator = np.random.default_rng(dimension)
    direction = generator.normal(size=dimension)
    searcher = ExactSearcher(direction + 1e-5 * generator.normal(size=(1_000, dimension)))
    queries = direction + 0.3 * generator.normal(size=(8, dimension))
    everything = searcher.search(queries, -1)
    for top_k in (1, 10, 300):
        best = searcher.search(queries, top_k=top_k)
        assert rows_of(best) == rows_of(everything.head(top_k))


def test_a_score_is_the_float32_nearest_to_the_real_cosine():
    generator = np.random.default_rng(0)
    left = random_vectors(generator, 300, 256)
    right = left + 0.03 * generator.normal(size=left.shape)
    left, right = ExactSearcher(left).vectors, ExactSearcher(right).vectors
    scores = cosines(left, right, np.arange(300), np.arange(300))
    for score, one, other in zip(scores, left.tolist(), right.tolist(), strict=True):
        # A product of two float32 is exact in float64; fsum rounds the sum once.
        assert score == np.float32(math.fsum(a * b for a, b in zip(one, other, strict=True)))


def test_the_answer_does_not_share_the_thresholds_of_the_caller():
    thresholds = np.array([0.5], np.float32)
    found = ExactSearcher(np.eye(2)).search([[1, 0]], thresholds)
    thresholds[0] = 0.9
    assert found.thresholds.tolist() == [0.5]
