"""Candidates and levels against loops over all items."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.cutoff import candidates as module
from pebr_tf.cutoff.candidates import ClickedPairs, QueryVectors, collect_candidates
from pebr_tf.distributions import exact_level
from pebr_tf.distributions.logit import relevance_logit

LEVEL_TEMPERATURES = (0.0, 0.3, 1.0, 3.0)


def ranks_by_loop(corpus, queries, pairs):
    cosines = queries.vectors @ corpus.T
    return [
        int((cosines[row] > cosines[row, item]).sum())
        for row, item in zip(pairs.rows, pairs.items, strict=True)
    ]


# Candidates by a partition of all scores, by a sample, and by a sample that finds too few.
@pytest.mark.parametrize(
    ("block", "margin", "extra"),
    [(1, 1.5, 16), (1_000, 1.5, 16), (1 << 20, 1.5, 0), (1 << 20, 0.5, 0)],
)
def test_cosines_ranks_and_totals_are_those_of_a_loop(world, block, margin, extra, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(module, "SELECTION_MARGIN", margin)
    monkeypatch.setattr(module, "SELECTION_EXTRA", extra)
    corpus, queries, relevant = world
    shuffled = np.random.default_rng(1).permutation(len(relevant.rows))
    mixed = ClickedPairs(relevant.rows[shuffled], relevant.items[shuffled])
    known = ClickedPairs(np.array([3, 0]), np.array([7, 299]))
    found = collect_candidates(corpus, queries, mixed, "beta", LEVEL_TEMPERATURES, 40, known)
    every = np.sort(queries.vectors @ corpus.T, axis=1)[:, ::-1]
    np.testing.assert_allclose(found.cosines, every[:, :40], atol=1e-6)
    assert found.totals.tolist() == np.bincount(relevant.rows).tolist()
    expected = np.minimum(ranks_by_loop(corpus, queries, relevant), 40)
    received = sorted(zip(found.relevant.rows, found.relevant.ranks, strict=True))
    assert received == sorted(zip(relevant.rows, expected, strict=True))
    ordered = ClickedPairs(np.array([0, 3]), np.array([299, 7]))
    assert found.known.rows.tolist() == [0, 3]
    expected = np.minimum(ranks_by_loop(corpus, queries, ordered), 40)
    assert found.known.ranks.tolist() == expected.tolist()


@pytest.mark.parametrize("family", ["beta", "exponential"])
def test_levels_are_those_of_tensorflow(world, family):
    corpus, queries, relevant = world
    found = collect_candidates(corpus, queries, relevant, family, LEVEL_TEMPERATURES, 5)
    logits = relevance_logit(tf.constant(queries.vectors @ corpus.T), queries.tau[:, None], family)
    for level_temperature in LEVEL_TEMPERATURES:
        expected = exact_level(logits, level_temperature)
        np.testing.assert_allclose(found.levels[level_temperature], expected, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(
            module.levels_of(corpus, queries, family, level_temperature),
            expected,
            rtol=2e-5,
            atol=2e-5,
        )


def test_levels_of_a_large_corpus_come_from_the_best_and_a_sample(world, monkeypatch):
    corpus, queries, relevant = world
    monkeypatch.setattr(module, "EXACT_LEVELS_UP_TO", 200)
    monkeypatch.setattr(module, "SAMPLE", 150)
    exact = module.levels_of(corpus, queries, "beta", 1.0)
    found = collect_candidates(corpus, queries, relevant, "beta", (0.0, 1.0), 40)
    np.testing.assert_array_equal(found.levels[0.0], module.levels_of(corpus, queries, "beta", 0.0))
    error = np.abs(found.levels[1.0] - exact)
    assert 0 < error.max() < 0.1


def test_unseen_leaves_out_training_pairs_from_items_and_truth():
    """One query by hand: items at cosines .9, .8, .7, .6; the second is known."""
    corpus = np.array([[c, np.sqrt(1 - c * c)] for c in (0.6, 0.8, 0.9, 0.7)], np.float32)
    queries = QueryVectors(
        np.array([[1, 0], [1, 0]], np.float32), np.full(2, 0.1, np.float32), np.zeros(2, int)
    )
    relevant = ClickedPairs(np.array([0, 0, 0, 1]), np.array([1, 3, -1, 2]))
    known = ClickedPairs(np.array([0, 1]), np.array([1, 2]))
    found = collect_candidates(corpus, queries, relevant, "beta", (1.0,), 4, known)
    assert found.relevant.ranks.tolist() == [1, 2, 4, 0]
    unseen = found.unseen()
    np.testing.assert_allclose(unseen.cosines, [[0.9, 0.7, 0.6, -np.inf]], rtol=1e-6)
    assert (unseen.relevant.ranks.tolist(), unseen.totals.tolist()) == ([1, 4], [2])
    assert unseen.levels[1.0] == found.levels[1.0][:1]
    assert unseen.logits[0, -1] == -np.inf


def test_items_with_equal_vectors_keep_ranks_of_their_own():
    corpus = np.tile(np.array([[1, 0]], np.float32), (5, 1))
    queries = QueryVectors(corpus[:1], np.full(1, 0.1, np.float32), np.zeros(1, int))
    found = collect_candidates(
        corpus, queries, ClickedPairs(np.zeros(5, int), np.arange(5)), "beta", (1.0,), 5
    )
    assert sorted(found.relevant.ranks) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arguments", "depth"),
    [
        ((2_000, 20_000, (50, 500), 10_000), 10_000),
        ((2_000, 300, (50, 500), 10_000), 300),
        ((20_000, 1_000_000, (50, 500), 10_000), 2_000),
        ((20_000, 1_000_000, (50, 500), 1_000), 1_000),
        ((1, 1, (50,), 10_000), 1),
    ],
)
def test_depth(arguments, depth):
    assert module.candidate_depth(*arguments) == depth


def test_what_does_not_fit_is_rejected(world):
    corpus, queries, relevant = world
    with pytest.raises(ValueError, match=r"depth must be from 1 to .* Received: 301 of 300\."):
        collect_candidates(corpus, queries, relevant, "beta", (1.0,), 301)
    one = ClickedPairs(np.array([0]), np.array([0]))
    with pytest.raises(ValueError, match=r"every query must have a relevant item\."):
        collect_candidates(corpus, queries, one, "beta", (1.0,), 5)
