"""Cut-offs by level against TensorFlow's level, and against brute force over the whole corpus."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from level_oracle import level_of
from scipy.special import logsumexp

from pebr_tf.distributions.logit import cosine_of_logit, relevance_logit
from pebr_tf.retrieval import level
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.level import LevelCut, search_by_level
from pebr_tf.retrieval.vectors import unit_vectors

LEVEL_TEMPERATURES = [0.0, 0.3, 1.0, math.inf]
FAMILIES = ["beta", "exponential"]


class RecordingSearcher(ExactSearcher):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.requests = []

    def _search(self, request):
        self.requests.append(request)
        return super()._search(request)


def vectors_of(count, dimension=6, seed=0):
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(5, dimension))
    vectors = centres[generator.integers(5, size=count)] + generator.normal(size=(count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def temperatures(count):
    return np.geomspace(0.03, 0.5, count).astype(np.float32)


def logits_of(cosines, tau, family):
    scores = np.log((1 + cosines.astype(np.float64)) / 2) if family == "beta" else cosines
    return scores / tau.astype(np.float64)[:, None]


@pytest.fixture(scope="module")
def searcher():
    """3,000 items, of which 2,000 are the background."""
    return RecordingSearcher(vectors_of(3_000), np.random.default_rng(0).permutation(3_000))


@pytest.fixture(autouse=True, scope="module")
def _probes():
    """The catalogues of these tests are small enough for one pass; test_one_pass.py has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level, "ONE_PASS", 0)
        yield


@pytest.fixture(autouse=True)
def _forget(searcher):
    searcher.requests.clear()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("level_temperature", LEVEL_TEMPERATURES)
def test_thresholds_are_those_of_the_weighted_mean(searcher, level_temperature, family):
    """On the same probe and sample; floor 0, for a floor lowers a threshold."""
    queries, tau = unit_vectors("queries", vectors_of(40, seed=1)), temperatures(40)
    cut = LevelCut(-0.7, level_temperature, family, probe_size=50, floor=0)
    result = search_by_level(searcher, queries, tau, cut)

    probe = searcher.search(queries, top_k=50).scores.reshape(40, 50)
    sample = (queries.astype(np.float64) @ searcher.background.T).astype(np.float32)
    best, others = (
        relevance_logit(tf.constant(each, tf.float64), tau[:, None], family).numpy()
        for each in (probe, sample)
    )
    outside = sample < probe[:, -1:]
    weights = np.where(outside, 2_950 / outside.sum(axis=1, keepdims=True), 0)
    logits = np.concatenate([best, others], axis=1)
    weights = np.concatenate([np.ones_like(best), weights], axis=1)
    if level_temperature == 0:
        levels = best[:, 0]
    elif np.isinf(level_temperature):
        levels = np.sum(logits * weights, axis=1) / 3_000
    else:
        mass = logsumexp(logits / level_temperature, axis=1, b=weights / 3_000)
        levels = level_temperature * mass
    np.testing.assert_allclose(result.levels, levels, rtol=2e-5, atol=2e-5)
    thresholds = cosine_of_logit(levels - 0.7, tau, family)
    np.testing.assert_allclose(result.items.thresholds, thresholds, rtol=0, atol=3e-6)
    assert result.levels.dtype == result.items.thresholds.dtype == np.float32


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 400),
    probe_size=st.integers(1, 60),
    level_temperature=st.sampled_from(LEVEL_TEMPERATURES),
    family=st.sampled_from(FAMILIES),
    cutoff=st.floats(-6, 3),
)
def test_a_level_with_the_corpus_as_background_is_that_of_the_corpus(
    seed, count, probe_size, level_temperature, family, cutoff
):
    """The items are then those whose logit is the cut-off or more above it."""
    vectors = vectors_of(count, seed=seed)
    queries, tau = vectors_of(5, seed=seed + 1), temperatures(5)
    cut = LevelCut(cutoff, level_temperature, family, probe_size, floor=0)
    result = search_by_level(ExactSearcher(vectors), queries, tau, cut)
    logits = logits_of(queries @ vectors.T, tau, family)
    levels = level_of(logits, level_temperature)
    np.testing.assert_allclose(result.levels, levels, rtol=1e-4, atol=1e-4)
    levels = result.levels.astype(np.float64)
    for row in range(5):
        ids, _ = result.items.row(row)
        above = logits[row] - levels[row] - cutoff
        assert set(np.flatnonzero(above > 1e-4)) <= set(ids)
        assert set(ids) <= set(np.flatnonzero(above >= -1e-4))


@settings(deadline=None, max_examples=20)
@given(
    level_temperature=st.sampled_from(LEVEL_TEMPERATURES),
    family=st.sampled_from(FAMILIES),
    cutoff=st.sampled_from([-8.0, -2.0, -0.5, 0.0, 1.0, 5.0]),
    limit=st.sampled_from([10, 30, 10_000]),
)
def test_items_are_those_of_a_search_down_to_the_thresholds(
    searcher, level_temperature, family, cutoff, limit
):
    """Wherever the list ends, inside the probe or far behind it, capped or not."""
    queries, tau = vectors_of(30, seed=2), temperatures(30)
    cut = LevelCut(cutoff, level_temperature, family, probe_size=20, floor=0)
    items = search_by_level(searcher, queries, tau, cut, limit).items
    expected = searcher.search(queries, items.thresholds, limit=limit)
    for name in ("row_splits", "item_ids", "scores", "truncated", "thresholds"):
        np.testing.assert_array_equal(getattr(items, name), getattr(expected, name), name)
    assert items.expected_counts.shape == (30,)


def test_lists_that_end_inside_the_probe_cost_one_search(searcher):
    cut = LevelCut(-0.01, level_temperature=0.0, probe_size=100)
    result = search_by_level(searcher, vectors_of(20, seed=3), temperatures(20), cut)
    assert not result.extended.any()
    (request,) = searcher.requests
    assert len(request) == 20
    assert request.top_k == 100


def test_only_the_other_queries_are_searched_again(searcher):
    """Broad queries, of high temperature, need more than the probe."""
    queries, tau = vectors_of(20, seed=4), np.where(np.arange(20) % 3 == 1, 0.8, 0.02)
    cut = LevelCut(-1.0, level_temperature=0.6, probe_size=50)
    result = search_by_level(searcher, queries, tau, cut)
    again = np.flatnonzero(result.extended)
    assert 0 < len(again) < 20
    probe, extension = searcher.requests
    assert len(probe) == 20
    np.testing.assert_array_equal(extension.queries, probe.queries[again])
    np.testing.assert_array_equal(extension.thresholds, result.items.thresholds[again])
    assert (result.items.counts[again] > 50).all()
    assert (result.items.counts[~result.extended] <= 50).all()
    for row in range(20):
        alone = search_by_level(searcher, queries[[row]], tau[[row]], cut)
        np.testing.assert_array_equal(alone.items.item_ids, result.items.row(row)[0])
        np.testing.assert_array_equal(alone.items.scores, result.items.row(row)[1])
        assert alone.extended[0] == result.extended[row]


@pytest.mark.parametrize("floor", [0, 1, 5, 10])
def test_a_query_gets_its_floor_whatever_the_cut_off(searcher, floor):
    """And its threshold says where the list ends."""
    queries = vectors_of(8, seed=6)
    cut = LevelCut(1e6, probe_size=10, floor=floor)
    items = search_by_level(searcher, queries, temperatures(8), cut).items
    # Also a list that ends at the last of the probe is not searched again.
    assert len(searcher.requests) == 1
    best = searcher.search(queries, top_k=max(1, floor))
    assert items.counts.tolist() == [floor] * 8
    if floor:
        np.testing.assert_array_equal(items.item_ids, best.item_ids)
        np.testing.assert_array_equal(items.thresholds, best.scores[best.row_splits[1:] - 1])


def test_items_that_tie_with_the_floor_are_in():
    searcher = ExactSearcher(np.repeat(np.eye(4), 3, axis=0))
    cut = LevelCut(1e6, probe_size=5, floor=1)
    items = search_by_level(searcher, np.eye(4), np.ones(4), cut).items
    assert items.item_ids.reshape(4, 3).tolist() == np.arange(12).reshape(4, 3).tolist()


@pytest.mark.parametrize("count", [1, 99, 100])
def test_a_corpus_smaller_than_the_probe_costs_one_search(count):
    searcher = RecordingSearcher(vectors_of(count))
    cut = LevelCut(-1e3, probe_size=100)
    result = search_by_level(searcher, vectors_of(6, seed=8), temperatures(6), cut)
    assert len(searcher.requests) == 1
    assert not result.extended.any()
    assert result.items.counts.tolist() == [count] * 6


def test_an_empty_index_gives_empty_rows():
    searcher = ExactSearcher(np.empty((0, 6)), np.empty(0, "U3"))
    result = search_by_level(searcher, vectors_of(3), temperatures(3), LevelCut(0.0))
    assert result.items.counts.tolist() == [0, 0, 0]
    assert result.items.item_ids.dtype == searcher.ids.dtype
    assert result.levels.shape == result.extended.shape == (3,)
    assert not result.extended.any()


def test_an_empty_batch_gives_an_empty_result(searcher):
    result = search_by_level(searcher, np.empty((0, 6)), [], LevelCut(0.0))
    assert len(result.items) == 0
    assert result.levels.shape == result.extended.shape == (0,)
    assert searcher.requests == []


@pytest.mark.parametrize("level_temperature", LEVEL_TEMPERATURES)
def test_an_item_opposite_to_its_query_has_a_finite_logit(level_temperature):
    """The logarithm of its z = 0 goes on as a tangent, as in training."""
    searcher = ExactSearcher([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    queries, tau = np.array([[1, 0]], np.float32), np.array([0.5], np.float32)
    result = search_by_level(searcher, queries, tau, LevelCut(-0.1, level_temperature, floor=0))
    logits = relevance_logit(tf.constant([[1.0, 0.0, -1.0]], tf.float64), 0.5)
    expected = level_of(logits.numpy(), level_temperature)
    np.testing.assert_allclose(result.levels, expected, rtol=1e-5)


def test_a_scann_index_gives_nearly_the_same(sample_of):
    sample = sample_of("many")
    queries, tau = sample.queries(60, 11), temperatures(60)
    cut = LevelCut(-2.0, level_temperature=0.6, probe_size=50)
    found = search_by_level(sample.searcher, queries, tau, cut)
    expected = search_by_level(sample.exact, queries, tau, cut)
    np.testing.assert_allclose(found.levels, expected.levels, rtol=0.05, atol=0.05)
    allowed = sample.exact.search(queries, found.items.thresholds).counts
    assert (found.items.counts <= allowed).all()
    # Lists far longer than those that the index was tuned on.
    assert found.items.counts.sum() >= 0.9 * allowed.sum()


class NearSightedSearcher(ExactSearcher):
    """Its probe misses the best items, and every query is searched again."""

    def probe(self, queries, size):
        found = self.search(queries, top_k=4 * size)
        rank = np.arange(len(found.scores)) - np.repeat(found.row_splits[:-1], found.counts)
        return found.keep(rank >= 3 * size)

    def extend(self, queries, thresholds, probe, limit):
        return np.arange(len(queries)), self.search(queries, thresholds, limit=limit)


@pytest.mark.parametrize("level_temperature", [0.001, 0.02, *LEVEL_TEMPERATURES])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_level_taken_anew_is_that_of_a_probe_that_missed_nothing(level_temperature, family):
    """Even where the best are so far above the probe that their masses have no float32."""
    items, queries = vectors_of(600), vectors_of(8, seed=1)
    tau = np.full(8, 0.01, np.float32)
    cut = LevelCut(-1e4, level_temperature, family, probe_size=20)
    expected = search_by_level(ExactSearcher(items), queries, tau, cut).levels
    levels = search_by_level(NearSightedSearcher(items), queries, tau, cut).levels
    np.testing.assert_allclose(levels, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("floor", [1, 5])
def test_an_approximate_search_after_the_probe_leaves_the_floor(sample_of, floor):
    sample = sample_of("many")
    queries = np.random.default_rng(3).normal(size=(2_000, sample.vectors.shape[1]))
    tau = np.full(len(queries), 0.02, np.float32)
    cut = LevelCut(1e6, probe_size=20, floor=floor)
    found = search_by_level(sample.searcher, queries, tau, cut)
    assert found.extended.any()
    assert found.items.counts.min() == floor
