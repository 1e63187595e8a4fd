"""Ranked lists against unranked ones, figures against loops, strata and curves by hand."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from unranked_lists import cutoff_at, evaluate, unranked

from pebr_tf.config import Strata
from pebr_tf.metrics.comparison import count_histogram, curve, groups_of
from pebr_tf.metrics.ranked import Figures, RankedLists, Ranks
from pebr_tf.metrics.results import CountHistogram, Curve, ListSummary
from pebr_tf.metrics.strata import strata_of


def random_lists(seed, queries=7, candidates=12, offsets=False):
    """Falling scores with many ties; some rows are short, some relevant items no candidates."""
    generator = np.random.default_rng(seed)
    scores = -np.sort(-generator.integers(-5, 6, (queries, candidates)).astype(np.float32), axis=1)
    for row, length in enumerate(generator.integers(0, candidates + 1, queries)):
        scores[row, length:] = -np.inf
    relevant = generator.random(scores.shape) < 0.3
    rows, ranks = np.nonzero(relevant)
    rows, ranks = np.append(rows, [0, 0]), np.append(ranks, [candidates, candidates])
    totals = np.maximum(np.bincount(rows, minlength=queries), 1)
    off = generator.integers(-3, 3, queries).astype(np.float32) if offsets else None
    return RankedLists(scores, Ranks(rows, ranks), totals, off)


@given(st.integers(0, 10**6), st.floats(0.05, 14), st.booleans())
@settings(max_examples=100, deadline=None)
def test_cutoffs_and_figures_are_those_of_the_general_lists(seed, average, offsets):
    lists = random_lists(seed, offsets=offsets)
    general = unranked(lists)
    cutoff = lists.cutoff_at(average)
    assert cutoff == cutoff_at(general, average)
    for cut in (cutoff, -np.inf, -2.0, 0.0, np.inf):
        received, expected = lists.figures(lists.counts_at(cut)), evaluate(general, cut)
        assert received.counts.tolist() == expected.counts.tolist()
        for name in ("precision", "recall", "micro_precision", "micro_recall", "empty"):
            assert getattr(received, name) == pytest.approx(getattr(expected, name)), name


def test_a_cutoff_for_each_query():
    lists = random_lists(3)
    cutoffs = np.linspace(-5, 5, 7)
    expected = [lists.counts_at(cut)[row] for row, cut in enumerate(cutoffs)]
    assert lists.counts_at(cutoffs).tolist() == expected


@given(st.integers(0, 10**6), st.integers(0, 4), st.floats(1, 14))
@settings(max_examples=50, deadline=None)
def test_a_floor_counts_in_the_average(seed, floor, average):
    lists = random_lists(seed)
    least = np.minimum(floor, lists.lengths)
    cutoffs = [*np.unique(lists.scores[lists.scores > -np.inf]), np.inf]
    fits = [c for c in cutoffs if np.maximum(lists.counts_at(c), least).mean() <= average]
    assert lists.cutoff_at(average, floor) == min(fits, default=np.inf)


@pytest.mark.parametrize("offsets", [False, True])
def test_fixed_lists_do_not_depend_on_the_cutoff(offsets):
    lists = random_lists(5, offsets=offsets)
    queries = np.arange(7) % 2 == 1
    fixed = lists.fixed(queries, 3)
    best = max(lists.at(np.arange(7), np.zeros(7, int)))
    for cutoff in (-np.inf, -2.0, 0.0, best):
        counts, before = fixed.counts_at(cutoff), lists.counts_at(cutoff)
        np.testing.assert_array_equal(counts[~queries], before[~queries])
        np.testing.assert_array_equal(counts[queries], np.minimum(lists.lengths, 3)[queries])
    assert not fixed.counts_at(np.inf).any()
    assert lists.fixed(np.zeros(7, bool), 3) is lists


def test_parts_and_heads():
    lists = random_lists(1, offsets=True)
    chosen = np.array([True, False, True, True, False, False, True])
    whole, part = lists.counts_at(0.0), lists.part(chosen)
    assert part.counts_at(0.0).tolist() == whole[chosen].tolist()
    assert part.hits(part.lengths).tolist() == lists.hits(lists.lengths)[chosen].tolist()
    figures = lists.figures(whole, chosen)
    assert figures.recall == pytest.approx(part.figures(whole[chosen]).recall)
    assert lists.head(3).counts_at(-9).tolist() == np.minimum(lists.lengths, 3).tolist()


def test_a_summary_by_hand():
    """Counts 0, 1, 4 and 4 with 1, 2, 4 and 1 relevant items of 1, 2, 4 and 2."""
    relevant = Ranks(np.array([1, 2, 2, 3]), np.array([0, 0, 1, 3]))
    lists = RankedLists(
        np.tile(-np.arange(4, dtype=np.float32), (4, 1)), relevant, np.array([1, 2, 4, 2])
    )
    counts = np.array([0, 1, 4, 4])
    assert ListSummary.of(lists.figures(counts), counts >= 4) == ListSummary(
        precision=pytest.approx((0 + 1 + 0.5 + 0.25) / 4),
        recall=pytest.approx((0 + 0.5 + 0.5 + 0.5) / 4),
        micro_precision=pytest.approx(4 / 9),
        micro_recall=pytest.approx(4 / 9),
        average=2.25,
        empty=0.25,
        truncated=0.5,
        p10=0,
        p50=1,
        p90=4,
        p99=4,
    )
    nothing = lists.figures(counts, np.zeros(4, bool))
    assert ListSummary.of(nothing, np.zeros(0, bool)) == ListSummary(*[0] * 11)


@given(st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_figures_are_those_of_a_loop(seed):
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 5, 7)
    hits = generator.integers(0, counts + 1)
    totals = np.maximum(hits + generator.integers(0, 3, 7), 1)
    lists = list(zip(counts.tolist(), hits.tolist(), totals.tolist(), strict=True))
    figures = Figures.of(counts, hits, totals)
    assert figures.precision == pytest.approx(sum(h / c if c else 0 for c, h, _ in lists) / 7)
    assert figures.recall == pytest.approx(sum(h / t for _, h, t in lists) / 7)
    assert figures.micro_precision == pytest.approx(sum(hits) / max(sum(counts), 1))
    assert figures.micro_recall == pytest.approx(sum(hits) / sum(totals))
    assert figures.average == pytest.approx(sum(counts) / 7)
    assert figures.empty == pytest.approx(counts.tolist().count(0) / 7)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"scores": np.array([[1.0, 2.0]])}, "scores must be numbers that never rise in a row"),
        ({"scores": np.array([[np.nan, 2.0]])}, "scores must be numbers that never rise"),
        ({"totals": np.array([0])}, "totals must be at least 1"),
        ({"totals": np.array([1, 1])}, r"scores must be \[Q, M\] and totals \[Q\]"),
        ({"offsets": np.array([np.inf])}, "offsets must be 1 finite numbers"),
    ],
)
def test_lists_that_do_not_fit_are_rejected(change, error):
    good = {
        "scores": np.array([[2.0, 1.0]]),
        "relevant": Ranks(np.array([0]), np.array([1])),
        "totals": np.array([1]),
    }
    with pytest.raises(ValueError, match=error):
        RankedLists(**{**good, **change})


def test_an_average_of_nothing_is_rejected():
    with pytest.raises(ValueError, match=r"average must be above 0\. Received: 0\."):
        random_lists(0).cutoff_at(0)


def test_a_histogram_doubles():
    found = count_histogram(np.array([0, 0, 1, 2, 3, 4, 7, 8]))
    assert found == CountHistogram(edges=[0, 1, 2, 4, 8, 16], queries=[2, 1, 2, 2, 1])
    assert count_histogram(np.array([0])) == CountHistogram([0, 1, 2], [1, 0])


def test_a_stratum_without_queries_is_left_out():
    groups = groups_of(np.array([0, 2, 0]))
    assert {name: mask.tolist() for name, mask in groups.items()} == {
        "overall": [True] * 3,
        "head": [True, False, True],
        "tail": [False, True, False],
    }


def test_a_curve_of_ties_has_the_averages_that_there_are():
    """Two queries of four equal scores: all or nothing."""
    lists = RankedLists(
        np.array([[1, 1, 1, 1], [0, 0, 0, 0]], np.float32),
        Ranks(np.array([0, 1]), np.array([0, 3])),
        np.array([1, 2]),
    )
    found = curve(lists, (2, 3))
    assert found == Curve(average=[2.0, 4.0], precision=[0.125, 0.25], recall=[0.5, 0.75])


SHARES = Strata(head=0.5, torso=0.3, tail=0.2, min_queries=0)
HEAD, TORSO, TAIL = range(3)


@pytest.mark.parametrize(
    ("clicks", "strata"),
    [
        ([50, 30, 20], [HEAD, TORSO, TAIL]),
        ([20, 50, 30], [TAIL, HEAD, TORSO]),
        ([90, 5, 5], [HEAD, TAIL, TAIL]),
        ([25, 25, 15, 15, 10, 10], [HEAD, HEAD, TORSO, TORSO, TAIL, TAIL]),
        ([1, 1, 1, 1], [HEAD] * 4),
        ([7], [HEAD]),
        ([7, 0], [HEAD, TAIL]),
        ([0, 0], [TAIL, TAIL]),
        ([], []),
    ],
)
def test_by_hand(clicks, strata):
    assert strata_of(np.array(clicks), SHARES).tolist() == strata


@pytest.mark.parametrize(
    ("least", "strata"),
    [
        (0, [HEAD] + [TAIL] * 11),
        (1, [HEAD, TORSO] + [TAIL] * 10),
        (2, [HEAD] * 2 + [TORSO] * 2 + [TAIL] * 8),
        # A third of twelve queries is four.
        (100, [HEAD] * 4 + [TORSO] * 4 + [TAIL] * 4),
    ],
)
def test_head_and_torso_have_enough_queries(least, strata):
    clicks = np.array([1_000, *range(20, 9, -1)])
    shares = Strata(head=0.5, torso=0.3, tail=0.2, min_queries=least)
    assert strata_of(clicks, shares).tolist() == strata
    assert strata_of(np.append(clicks, [0] * 90), shares).tolist() == strata + [TAIL] * 90


def test_shares_that_binary_cannot_write():
    """.7 + .2 is a little less than .9."""
    clicks = np.array([7, 2, 1])
    assert strata_of(clicks, Strata(head=0.7, torso=0.2, tail=0.1)).tolist() == [HEAD, TORSO, TAIL]
