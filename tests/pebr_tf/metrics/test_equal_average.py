"""Figures at an equal average against loops over queries and all cut-offs."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from pebr_tf.metrics import Lists, cutoff_at, evaluate


def random_lists(seed, queries=7, candidates=12):
    """Scores with many ties, some rows shorter than others."""
    generator = np.random.default_rng(seed)
    scores = generator.integers(-5, 6, (queries, candidates)).astype(np.float64)
    scores[generator.random(scores.shape) < 0.2] = -np.inf
    relevant = generator.random(scores.shape) < 0.3
    totals = np.maximum(relevant.sum(axis=1), 1) + generator.integers(0, 4, queries)
    return Lists(scores, relevant, totals)


@given(st.integers(0, 10**6), st.floats(0.05, 14))
@settings(max_examples=200, deadline=None)
def test_the_cutoff_is_the_lowest_of_all_that_fit(seed, average):
    lists = random_lists(seed)
    finite = sorted({score for row in lists.scores.tolist() for score in row if score > -np.inf})
    fits = [
        cut for cut in [*finite, np.inf] if np.mean((lists.scores >= cut).sum(axis=1)) <= average
    ]
    assert cutoff_at(lists, average) == min(fits)


@given(st.integers(0, 10**6), st.sampled_from([-np.inf, -5.0, 0.0, 2.5, 5.0, 6.0, np.inf]))
@settings(max_examples=100, deadline=None)
def test_figures_are_those_of_a_loop(seed, cutoff):
    lists = random_lists(seed)
    precisions, recalls, counts, hits = [], [], [], []
    for scores, relevant, total in zip(lists.scores, lists.relevant, lists.totals, strict=True):
        kept = [r for s, r in zip(scores, relevant, strict=True) if s >= cutoff and s > -np.inf]
        precisions.append(sum(kept) / len(kept) if kept else 0.0)
        recalls.append(sum(kept) / total)
        counts.append(len(kept))
        hits.append(sum(kept))
    figures = evaluate(lists, cutoff)
    assert figures.precision == pytest.approx(sum(precisions) / 7)
    assert figures.recall == pytest.approx(sum(recalls) / 7)
    assert figures.micro_precision == pytest.approx(sum(hits) / sum(counts) if sum(counts) else 0)
    assert figures.micro_recall == pytest.approx(sum(hits) / lists.totals.sum())
    assert figures.counts.tolist() == counts
    assert figures.average == pytest.approx(sum(counts) / 7)
    assert figures.empty == pytest.approx(counts.count(0) / 7)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_the_score_minus_rank_is_the_fixed_number(k):
    scores = np.tile(-np.arange(12.0), (5, 1))
    lists = Lists(scores, np.zeros((5, 12), bool), np.ones(5, int))
    assert evaluate(lists, cutoff_at(lists, k)).counts.tolist() == [k] * 5
    # A fraction more does not buy the next rank.
    assert evaluate(lists, cutoff_at(lists, k + 0.9)).counts.tolist() == [k] * 5


def test_a_part_has_the_lists_of_its_queries():
    lists = random_lists(0)
    chosen = np.array([4, 1])
    part = evaluate(lists.part(chosen), 0.0)
    assert part.counts.tolist() == evaluate(lists, 0.0).counts[chosen].tolist()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"totals": np.ones(3, int)}, r"scores and relevant must be \[Q, M\] and totals \[Q\]"),
        ({"scores": np.full((2, 2), np.nan)}, "scores must be numbers. Received: NaN."),
        ({"totals": np.array([1, 0])}, "totals must be at least 1"),
        ({"totals": np.array([1, 1]), "relevant": np.ones((2, 2), bool)}, "totals must be at leas"),
    ],
)
def test_lists_that_do_not_fit_are_refused(change, error):
    good = {
        "scores": np.zeros((2, 2)),
        "relevant": np.zeros((2, 2), bool),
        "totals": np.ones(2, int),
    }
    with pytest.raises(ValueError, match=error):
        Lists(**{**good, **change})


def test_an_average_of_nothing_is_refused():
    with pytest.raises(ValueError, match=r"average must be above 0\. Received: 0\."):
        cutoff_at(random_lists(0), 0)
