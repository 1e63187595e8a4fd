"""Scores of policies against their definitions, and the oracle against all choices of prefixes."""

import itertools
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from pebr_tf.cutoff import CosineAdapter, Pairs, Policies, Queries, collect, fit_adapter
from pebr_tf.cutoff.adapter import _examples
from pebr_tf.cutoff.oracle import oracle_scores
from pebr_tf.metrics import RankedLists, Ranks


def logits_of(candidates):
    """In float64, by the paper's formulas."""
    cosines = candidates.cosines.astype(np.float64)
    scores = np.log((1 + cosines) / 2) if candidates.family == "beta" else cosines
    return scores / candidates.tau[:, None]


def scores_of(policies, name, candidates):
    return policies.lists(name, candidates).unranked().scores


def test_scores_are_their_definitions(candidates):
    candidates = replace(candidates, head_levels=np.linspace(-2, 0, 60).astype(np.float32))
    policies, logits = Policies(0.5), logits_of(candidates)
    best = 1 / candidates.tau if candidates.family == "exponential" else 0 * candidates.tau
    level = 0.5 * np.log(np.mean(np.exp(2 * logits), axis=1))
    expected = {
        "top_k": np.broadcast_to(-np.arange(300), (60, 300)),
        "score": candidates.cosines,
        "gap": candidates.cosines - candidates.cosines[:, :1],
        "cdf": logits - best[:, None],
        "level": logits - level[:, None],
        "level_head": logits - candidates.head_levels[:, None],
    }
    for name, values in expected.items():
        received = scores_of(policies, name, candidates)
        np.testing.assert_allclose(received, values, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_nucleus_is_the_smallest_prefix_with_its_mass(candidates, share):
    lists = Policies(1.0).lists("nucleus", candidates)
    mass = np.exp(logits_of(candidates))
    mass = np.cumsum(mass / mass.sum(axis=1, keepdims=True), axis=1)
    # An item is in iff the mass before it is less than the share.
    expected = (mass < share).sum(axis=1) + 1
    received = lists.counts_at(np.log(1 - share) + 1e-4)
    assert (np.abs(received - expected) <= 1).all()
    assert (received == expected).mean() > 0.9


def test_a_nucleus_knows_the_mass_beyond_its_candidates(world):
    corpus, queries, relevant = world
    some, every = (
        Policies(1.0).lists("nucleus", collect(corpus, queries, relevant, "beta", (1.0,), depth))
        for depth in (50, 300)
    )
    np.testing.assert_allclose(some.scores, every.scores[:, :50], atol=1e-3)


def macro_recall(lists, counts):
    return lists.figures(np.array(counts)).recall


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_no_choice_of_prefixes_beats_the_oracle(seed):
    """Three queries, six candidates: all 343 choices."""
    generator = np.random.default_rng(seed)
    relevant = generator.random((3, 6)) < 0.4
    totals = np.maximum(relevant.sum(axis=1), 1) + generator.integers(0, 2, 3)
    ranks = Ranks(*np.nonzero(relevant))
    lists = RankedLists(oracle_scores(ranks, totals, 6), ranks, totals)
    for cutoff in np.unique(lists.scores):
        counts = lists.counts_at(cutoff)
        best = max(
            macro_recall(lists, choice)
            for choice in itertools.product(range(7), repeat=3)
            if sum(choice) <= counts.sum()
        )
        assert macro_recall(lists, counts) == pytest.approx(best)


def test_the_oracle_by_hand():
    """Relevant at ranks 1, 2 and 5 of one query: 2 in the first 3, then 1 in 3."""
    ranks = Ranks(np.zeros(3, int), np.array([5, 1, 2]))
    scores = oracle_scores(ranks, np.array([4]), 8)
    expected = [2 / 3 / 4] * 3 + [1 / 3 / 4] * 3 + [-np.inf] * 2
    np.testing.assert_allclose(scores[0], expected, rtol=1e-6)


def test_no_relevant_candidate():
    ranks = Ranks(np.zeros(1, int), np.array([8]))
    assert (oracle_scores(ranks, np.array([1]), 8) == -np.inf).all()


def test_one_query_and_one_item():
    corpus = np.array([[1.0, 0.0]], np.float32)
    queries = Queries(corpus, np.full(1, 0.1, np.float32), np.zeros(1, int))
    candidates = collect(
        corpus, queries, Pairs(np.zeros(1, int), np.zeros(1, int)), "beta", (1.0,), 1
    )
    policies = Policies(1.0)
    for name in policies.names(candidates):
        lists = policies.lists(name, candidates)
        assert lists.figures(lists.counts_at(lists.cutoff_at(1))).recall == 1.0, name


def test_the_adapter_learns_how_broad_a_query_is(world):
    """Relevance that depends on the query alone beyond the cosine: the adapter finds it."""
    corpus, queries, _ = world
    broad = queries.vectors[:, 0] > 0
    rows, items = [], []
    cosines = queries.vectors @ corpus.T
    for row in range(60):
        chosen = np.argsort(-cosines[row])[: 60 if broad[row] else 3]
        rows += [row] * len(chosen)
        items += chosen.tolist()
    candidates = collect(
        corpus, queries, Pairs(np.array(rows), np.array(items)), "beta", (1.0,), 300
    )
    policies = Policies(1.0, fit_adapter(candidates))
    figures = {}
    for name in ("adapter", "score", "top_k"):
        lists = policies.lists(name, candidates)
        figures[name] = lists.figures(lists.counts_at(lists.cutoff_at(30)))
    # Cross-entropy is over all items, so its gain is micro.
    for name in ("score", "top_k"):
        assert figures["adapter"].micro_recall > figures[name].micro_recall + 0.2
        assert figures["adapter"].micro_precision > figures[name].micro_precision + 0.2


def test_the_adapter_sees_every_candidate_in_the_mean(candidates):
    """Weights of one query add up to its relevant items and to all the others."""
    draws = [_examples(candidates, np.random.default_rng(seed)) for seed in range(30)]
    weights = np.mean([draw[2] for draw in draws], axis=0)
    found = candidates.totals
    np.testing.assert_allclose(weights[:, :16].sum(axis=1), found)
    np.testing.assert_allclose(weights[:, 16:].sum(axis=1).mean(), 300 - found.mean(), rtol=0.05)
    clicked = {
        (row, candidates.cosines[row, rank])
        for row, rank in zip(candidates.relevant.rows, candidates.relevant.ranks, strict=True)
    }
    cosines, labels, weights = draws[0]
    for row, column in np.argwhere(weights > 0):
        assert ((row, cosines[row, column]) in clicked) == (labels[row, column] == 1)


def test_names_are_those_that_can_be_scored(candidates):
    policies = Policies(0.6)
    assert not {"adapter", "level_head"} & set(policies.names(candidates))
    assert "adapter" in Policies(0.6, CosineAdapter()).names(candidates)
    with pytest.raises(ValueError, match=r"policy must be one of level, top_k, .* Received: 'adap"):
        policies.lists("adapter", candidates)
    assert policies.title("level") == "level, T = 0.6"
