"""The level operation in one pass, against float64 over the whole corpus and a plain search."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from level_oracle import level_of

from pebr_tf.retrieval import level, one_pass
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.level import LevelCut, search_by_level


class NoSearch(ExactSearcher):
    def _search(self, request):
        raise AssertionError("one pass needs no search")


def vectors_of(count, dimension=6, seed=0):
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(5, dimension))
    vectors = centres[generator.integers(5, size=count)] + generator.normal(size=(count, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 400),
    batch=st.integers(1, 20),
    level_temperature=st.sampled_from([0.0, 0.3, 1.0, math.inf]),
    family=st.sampled_from(["beta", "exponential"]),
    cutoff=st.floats(-6, 6),
    floor=st.integers(0, 5),
    limit=st.sampled_from([1, 7, 10_000]),
)
def test_levels_are_exact_and_items_those_of_a_search(
    seed, count, batch, level_temperature, family, cutoff, floor, limit
):
    vectors, queries = vectors_of(count, seed=seed), vectors_of(batch, seed=seed + 1)
    tau = np.geomspace(0.03, 0.5, batch).astype(np.float32)
    cut = LevelCut(cutoff, level_temperature, family, probe_size=3, floor=floor)
    found = search_by_level(NoSearch(vectors), queries, tau, cut, limit)

    cosines = queries.astype(np.float64) @ vectors.astype(np.float64).T
    logits = np.log((1 + cosines) / 2) if family == "beta" else cosines
    levels = level_of(logits / tau.astype(np.float64)[:, None], level_temperature)
    np.testing.assert_allclose(found.levels, levels, rtol=1e-4, atol=1e-4)
    expected = ExactSearcher(vectors).search(queries, found.items.thresholds, limit=limit)
    for name in ("row_splits", "item_ids", "scores", "truncated", "thresholds"):
        ours, theirs = getattr(found.items, name), getattr(expected, name)
        np.testing.assert_array_equal(ours, theirs, name)
    scaled = found.levels.astype(np.float64) + cutoff
    ends = scaled * tau if family == "exponential" else 2 * np.exp(scaled * tau) - 1
    least = min(floor, count)
    if least:
        ends = np.minimum(ends, np.sort(cosines, axis=1)[:, -least])
    reached = np.maximum(found.items.thresholds, -1)
    np.testing.assert_allclose(reached, np.maximum(ends, -1), rtol=1e-5, atol=2e-6)
    assert not found.extended.any()


def test_the_result_does_not_depend_on_the_steps(monkeypatch):
    searcher, queries = ExactSearcher(vectors_of(50)), vectors_of(9, seed=1)
    cut, tau = LevelCut(-0.5, 0.6), np.full(9, 0.1, np.float32)
    whole = search_by_level(searcher, queries, tau, cut)
    monkeypatch.setattr(one_pass, "BLOCK_SCORES", 100)
    steps = search_by_level(searcher, queries, tau, cut)
    np.testing.assert_array_equal(whole.items.item_ids, steps.items.item_ids)
    np.testing.assert_array_equal(whole.items.scores, steps.items.scores)
    np.testing.assert_allclose(whole.levels, steps.levels, rtol=1e-6)


@pytest.mark.parametrize(("batch", "is_one_pass"), [(2, True), (3, False)])
def test_larger_batches_are_searched_by_the_index(batch, is_one_pass, monkeypatch):
    vectors = vectors_of(50)
    monkeypatch.setattr(level, "ONE_PASS", 2 * vectors.size)
    queries, tau = vectors_of(batch, seed=1), np.full(batch, 0.1, np.float32)
    if is_one_pass:
        search_by_level(NoSearch(vectors), queries, tau, LevelCut(0.0))
    else:
        with pytest.raises(AssertionError, match="one pass needs no search"):
            search_by_level(NoSearch(vectors), queries, tau, LevelCut(0.0))
