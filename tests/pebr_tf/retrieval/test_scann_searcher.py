"""The ScaNN searcher against the exact one.

An index that is made to look everywhere must find exactly what the exact searcher finds; as it was
tuned it may miss some, but may never return an item that is below its threshold.
"""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from searcher_cases import assert_same

from pebr_tf.retrieval.tune import recall
from pebr_tf.retrieval.vectors import unit_vectors

NAMES = [
    "plane", "text ids", "many", "long vectors", "duplicates", "antipodal", "identical",
]  # fmt: skip
# What `Searcher.search` promises.
TOLERANCE = 6e-7

SLOW = [HealthCheck.too_slow]
property_test = settings(deadline=None, max_examples=25, suppress_health_check=SLOW)
SHARES = st.floats(0, 1) | st.floats(0, 0.02)
names = st.sampled_from(NAMES)
seeds = st.integers(0, 2**32 - 1)
EXAMPLE_TUNINGS = st.sampled_from(["tuned", "everywhere", "narrow"])


def searcher_of(sample, tuning):
    if tuning == "narrow":
        return sample.searcher.with_tuning(
            dataclasses.replace(sample.searcher.tuning, cover=0.3, min_leaves=1, margin=0.002)
        )
    return sample.searcher if tuning == "tuned" else sample.everywhere


def true_scores(sample, queries):
    """[B, N] scores of all items, in the order of their ids."""
    best = sample.exact.search(queries, top_k=len(sample.ids))
    scores = np.empty((len(queries), len(sample.ids)), np.float32)
    scores[best.rows(), np.searchsorted(np.sort(sample.ids), best.item_ids)] = best.scores
    return scores


def assert_valid(result, sample, queries):
    """Nothing below a threshold, true scores, best first, of equal scores the smaller id first."""
    rows, thresholds = result.rows(), result.thresholds[result.rows()]
    positions = np.searchsorted(np.sort(sample.ids), result.item_ids)
    true = true_scores(sample, queries)[rows, positions]
    assert (true >= thresholds).all()
    assert (result.scores >= thresholds).all()
    np.testing.assert_allclose(result.scores, true, rtol=0, atol=TOLERANCE)
    assert len(np.unique(rows * len(sample.ids) + positions)) == len(rows)
    order = np.lexsort((result.item_ids, -result.scores, rows))
    np.testing.assert_array_equal(order, np.arange(len(rows)))
    assert result.scores.dtype == np.float32
    assert result.thresholds.dtype == np.float32
    assert result.expected_counts.dtype == np.float32
    assert result.truncated.dtype == bool
    assert result.item_ids.dtype == sample.exact.ids.dtype


def scores_to_cut_at(sample, queries, shares):
    """[B] scores of items, each at this share of its query's ranking."""
    best = sample.exact.search(queries, top_k=len(sample.ids))
    ranks = np.minimum((np.array(shares) * len(sample.ids)).astype(int), len(sample.ids) - 1)
    return best.scores[best.row_splits[:-1] + ranks]


@property_test
@given(names, seeds, st.lists(SHARES, min_size=1, max_size=8), st.booleans())
def test_looking_everywhere_finds_what_exact_search_finds(sample_of, name, seed, shares, above):
    """Thresholds at the very scores of items, which >= includes, and just above, which do not."""
    sample = sample_of(name)
    queries = sample.queries(len(shares), seed)
    thresholds = scores_to_cut_at(sample, queries, shares)
    if above:
        thresholds = np.nextafter(thresholds, np.float32(2))
    result = sample.everywhere.search(queries, thresholds)
    expected = sample.exact.search(queries, thresholds)
    np.testing.assert_array_equal(result.row_splits, expected.row_splits)
    for row in range(len(queries)):
        assert set(result.row(row)[0]) == set(expected.row(row)[0])
    np.testing.assert_array_equal(result.truncated, expected.truncated)
    assert_valid(result, sample, queries)


@property_test
@given(
    names,
    seeds,
    EXAMPLE_TUNINGS,
    st.lists(st.floats(-1.1, 1.1) | st.sampled_from([-1.0, 1.0, -np.inf, np.inf]), min_size=1),
    st.none() | st.integers(1, 30) | st.integers(1, 6_000),
    st.integers(1, 30) | st.integers(1, 6_000) | st.just(10_000),
)
def test_no_tuning_returns_an_item_below_its_threshold(
    sample_of, name, seed, tuning, thresholds, top_k, limit
):
    sample = sample_of(name)
    queries = sample.queries(len(thresholds), seed)
    result = searcher_of(sample, tuning).search(queries, thresholds, top_k, limit)
    assert_valid(result, sample, queries)
    limit = limit if top_k is None else min(top_k, limit)
    assert result.counts.max() <= limit
    passing = sample.exact.search(queries, thresholds).counts
    assert (result.counts <= passing).all()
    # What was cut was full, and only the caller's own top_k cuts without a word.
    assert (result.counts[result.truncated] == limit).all()
    if top_k is not None and top_k <= limit:
        assert not result.truncated.any()


def share_of_the_best(found, best):
    """How many of the best items were found; of ties at the end of a list any is as good."""
    last = best.scores[best.row_splits[1:] - 1] - TOLERANCE
    return (found.scores >= last[found.rows()]).sum() / len(best.scores)


@pytest.mark.parametrize("name", NAMES)
def test_the_best_items_are_the_best(sample_of, name):
    """Codes choose the candidates of a search for a few items, and may miss one."""
    sample = sample_of(name)
    queries = sample.queries(24, 0)
    for top_k in (1, 7, 100, 10**9):
        result = sample.everywhere.search(queries, top_k=top_k)
        best = sample.exact.search(queries, top_k=top_k)
        np.testing.assert_array_equal(result.row_splits, best.row_splits)
        assert share_of_the_best(result, best) >= (0.96 if top_k < len(sample.ids) else 1)
        assert_valid(result, sample, queries)
        assert not result.truncated.any()


@pytest.mark.parametrize("name", NAMES)
def test_open_ends(sample_of, name):
    sample = sample_of(name)
    queries = sample.queries(3, 2)
    everything = np.sort(sample.ids)
    for lowest in (-1, -7, -np.inf):
        result = sample.searcher.search(queries, lowest)
        assert result.counts.tolist() == [len(everything)] * 3
        for row in range(3):
            np.testing.assert_array_equal(np.sort(result.row(row)[0]), everything)
        np.testing.assert_array_equal(result.expected_counts, [len(everything)] * 3)
    for highest in (1.001, 1e30, np.inf):
        result = sample.searcher.search(queries, highest)
        assert result.counts.tolist() == [0, 0, 0]
        assert result.item_ids.dtype == sample.exact.ids.dtype
        assert not result.truncated.any()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_gets_what_its_queries_get_alone(sample_of, name):
    sample = sample_of(name)
    queries = sample.queries(24, 3)
    shares = np.random.default_rng(3).uniform(0, 0.05, 24)
    thresholds = scores_to_cut_at(sample, queries, shares)
    for top_k in (None, 10):
        whole = sample.searcher.search(queries, thresholds, top_k)
        assert_same(sample.searcher.search(queries, thresholds, top_k), whole, rtol=1e-3)
        for row in range(24):
            alone = sample.searcher.search(queries[row : row + 1], thresholds[row], top_k)
            ids, scores = whole.row(row)
            np.testing.assert_array_equal(alone.item_ids, ids)
            np.testing.assert_array_equal(alone.scores, scores)
            assert alone.truncated[0] == whole.truncated[row]
            assert alone.thresholds[0] == whole.thresholds[row]


def test_eight_callers_at_once_get_what_one_gets_alone(sample_of):
    sample = sample_of("many")
    asked = [(sample.queries(1 + number % 4, number), 0.4 + number / 50) for number in range(16)]
    alone = [sample.searcher.search(*request) for request in asked]
    together = threading.Barrier(8)

    def call(shift):
        together.wait()
        return [sample.searcher.search(*asked[(shift + n) % len(asked)]) for n in range(len(asked))]

    with ThreadPoolExecutor(8) as threads:
        for shift, results in enumerate(threads.map(call, range(8))):
            for step, result in enumerate(results):
                assert_same(result, alone[(shift + step) % len(asked)], rtol=1e-3)


def test_everything_is_found_however_narrow_the_margin(sample_of):
    """Items opposite to a query have the lowest cosines and codes as wrong as any."""
    sample = sample_of("plane")
    narrow = dataclasses.replace(sample.searcher.tuning, margin=1e-6)
    queries = -unit_vectors("queries", sample.vectors[:50])
    found = sample.searcher.with_tuning(narrow).search(queries, -1)
    assert found.counts.tolist() == [len(sample.ids)] * 50


def capped(sample, most):
    searcher = sample.searcher.with_tuning(sample.searcher.tuning)
    searcher.max_leaves = most
    return searcher


def test_max_leaves_bounds_the_work_and_marks_truncated_lists(sample_of):
    sample = sample_of("many")
    queries = sample.queries(30, 6)
    thresholds = scores_to_cut_at(sample, queries, np.linspace(0, 0.2, 30))
    free = sample.searcher.search(queries, thresholds)
    tokens = np.load(sample.directory / "tokens.npy")
    leaf_of = dict(zip(sample.searcher.ids.tolist(), tokens.tolist(), strict=True))
    flagged = []
    for most in (1, 3, 10, len(sample.searcher.leaves)):
        result = capped(sample, most).search(queries, thresholds)
        alone = capped(sample, most).search(queries[:1], thresholds[:1])
        assert alone.truncated[0] == result.truncated[0]
        assert alone.truncated[0] or most > 1
        assert_valid(result, sample, queries)
        for row in range(30):
            ids, _ = result.row(row)
            assert len({leaf_of[item] for item in ids.tolist()}) <= most
            assert set(ids) <= set(free.row(row)[0])
            if not result.truncated[row]:
                np.testing.assert_array_equal(ids, free.row(row)[0])
        flagged.append(int(result.truncated.sum()))
    assert flagged[0] == max(flagged) > 0
    assert flagged[-1] == 0
    np.testing.assert_array_equal(result.item_ids, free.item_ids)


def test_max_leaves_marks_truncated_searches_for_the_best_items_too(sample_of):
    sample = sample_of("many")
    queries = sample.queries(10, 7)
    result = capped(sample, 1).search(queries, top_k=1_000)
    assert result.truncated.all()
    assert (result.counts < 1_000).all()
    assert not capped(sample, 1).search(queries, 1.5).truncated.any()


def test_a_list_cut_by_max_leaves_is_marked_beside_one_that_the_limit_cuts(sample_of):
    sample = sample_of("many")
    queries = sample.queries(30, 6)
    thresholds = scores_to_cut_at(sample, queries, np.linspace(0, 0.2, 30))
    whole = capped(sample, 3).search(queries, thresholds)
    limit = int(np.median(whole.counts))
    is_short = whole.truncated & (whole.counts <= limit)
    assert is_short.any()
    assert capped(sample, 3).search(queries, thresholds, limit=limit).truncated[is_short].all()


@pytest.mark.parametrize("name", NAMES)
def test_fresh_queries_are_answered_almost_as_well_as_the_target_says(sample_of, name):
    """With a few hundred items and a dozen answers each, one miss weighs a lot."""
    sample = sample_of(name)
    target = sample.manifest.config["recall_target"]
    generator = np.random.default_rng(1_000)
    queries = sample.vectors[generator.integers(len(sample.ids), size=200)]
    queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    noise = generator.normal(size=queries.shape) / queries.shape[1] ** 0.5
    queries = queries + generator.uniform(0.1, 1, (200, 1)) * noise
    shares = np.exp(generator.uniform(np.log(1 / len(sample.ids)), np.log(0.02), 200))
    thresholds = scores_to_cut_at(sample, queries, shares)
    found = sample.searcher.search(queries, thresholds)
    assert min(recall(found, sample.exact.search(queries, thresholds))) >= target - 0.06
    best = sample.exact.search(queries, top_k=100)
    assert share_of_the_best(sample.searcher.search(queries, top_k=100), best) >= target - 0.06


def test_expected_counts_are_near_the_true_ones(sample_of):
    """Over many queries; a single one may be far off."""
    sample = sample_of("many")
    queries = sample.queries(300, 9)
    thresholds = scores_to_cut_at(sample, queries, np.full(300, 0.01))
    expected = sample.searcher.search(queries, thresholds).expected_counts
    true = sample.exact.search(queries, thresholds).counts
    assert 0.5 < np.median(expected / true) < 2
