"""Recall and budget maps against loops, and the conformal guarantee by simulation."""

import json
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from cutoff_worlds import random_lists
from hypothesis import given, settings

from pebr_tf.config import Cutoff
from pebr_tf.cutoff import calibration as module
from pebr_tf.cutoff.calibration import bounded_counts, budget_map, calibrate, recall_map
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.errors import UserError
from pebr_tf.metrics.ranked import RankedLists, Ranks


def recall_at(lists, cutoff, floor, limit):
    counts = bounded_counts(lists, lists.counts_at(cutoff), floor, limit)
    return lists.figures(counts).recall


@given(
    ties=st.booleans(),
    seed=st.integers(0, 10**6),
    floor=st.integers(0, 3),
    limit=st.sampled_from([3, 12, 100]),
)
@settings(max_examples=15, deadline=None)
def test_a_cutoff_is_the_largest_that_controls_the_risk(ties, seed, floor, limit):
    """At the points of the grid, by trying every score."""
    lists = random_lists(seed, ties=ties)
    found = recall_map(lists, floor, limit)
    n = len(lists)
    tried = np.unique(lists.scores)[::-1]
    losses = np.array([1 - recall_at(lists, c, floor, limit) for c in tried])
    risks = n / (n + 1) * losses + 1 / (n + 1)
    for share in module.RECALLS:
        passed = tried[risks <= 1 - share + 1e-9]
        if found.lowest < share < found.highest - 1e-9:
            assert found.cutoff(share) == pytest.approx(passed.max(), abs=2e-5)
        elif share > found.highest + 1e-9:
            assert not len(passed)
    everything = bounded_counts(lists, lists.lengths, floor, limit)
    assert found.highest == pytest.approx(n / (n + 1) * lists.figures(everything).recall)
    nothing = bounded_counts(lists, np.zeros(n, int), floor, limit)
    assert found.lowest == pytest.approx(n / (n + 1) * lists.figures(nothing).recall, abs=1e-6)


def simulate(queries, keep, draws, corrected):
    """Mean recall of a test query at the cut-off of calibrate queries of the same kind.

    Each has one relevant item, so that its recall is 0 or 1, the hardest case.
    """
    generator = np.random.default_rng(0)
    kept = []
    for _ in range(draws):
        scores = generator.normal(size=queries + 1).astype(np.float32)
        lists = RankedLists(
            scores[:-1, None], Ranks(np.arange(queries), np.zeros(queries, int)), np.ones(queries)
        )
        if corrected:
            found = recall_map(lists, 0, 10)
            assert found.highest >= keep
            cutoff = found.cutoff(keep)
        else:
            cutoff = np.sort(scores[:-1])[::-1][int(np.ceil(keep * queries - 1e-9)) - 1]
        kept.append(scores[-1] >= cutoff)
    return np.mean(kept)


def test_the_guarantee_holds_and_needs_its_correction():
    """With 10 queries the risk is met by 9 of 11 places (.818), the plain quantile by 8 (.727).

    1,200 draws have a standard error of .012.
    """
    assert simulate(10, 0.8, 1_200, corrected=True) == pytest.approx(9 / 11, abs=0.035)
    assert simulate(10, 0.8, 1_200, corrected=False) == pytest.approx(8 / 11, abs=0.035)


@given(seed=st.integers(0, 10**6), floor=st.integers(0, 3), limit=st.sampled_from([5, 100]))
@settings(max_examples=12, deadline=None)
def test_a_budget_is_met(seed, floor, limit):
    lists = random_lists(seed)
    found = budget_map(lists, floor, limit)
    assert found.lowest == pytest.approx(floor, abs=1e-6)
    assert found.highest == pytest.approx(min(limit, 20))
    for asked, cutoff in zip(found.knob_values[1:], found.cutoffs[1:], strict=True):
        average = bounded_counts(lists, lists.counts_at(cutoff), floor, limit).mean()
        assert average == pytest.approx(asked, abs=0.1)
    between = (found.knob_values[-2] + found.knob_values[-3]) / 2
    average = bounded_counts(lists, lists.counts_at(found.cutoff(between)), floor, limit).mean()
    assert found.knob_values[-3] <= average <= found.knob_values[-2]


def calibration(queries=300, strata=None, average_k=(4, 12), **settings):
    lists = random_lists(1, queries=queries, candidates=40)
    strata = np.arange(queries) % 3 if strata is None else strata
    config = Cutoff(**settings)
    return calibrate(lists, strata, "level", "beta", 0.6, config, average_k), lists


def unlike_strata(shift, queries=600, candidates=40, seed=2):
    """Scores of head queries are `shift` too high; one item of three ranks is relevant."""
    generator = np.random.default_rng(seed)
    strata = generator.integers(0, 3, queries)
    scores = -np.sort(-generator.normal(size=(queries, candidates)), axis=1)
    gains = generator.random((queries, candidates)) < 1 / (1 + np.exp(3 - 3 * scores))
    gains[:, 0] |= ~gains.any(axis=1)
    scores = scores + shift * (strata == 0)[:, None]
    rows, ranks = np.nonzero(gains)
    return RankedLists(scores.astype("f4"), Ranks(rows, ranks), gains.sum(axis=1)), strata


def test_one_map_for_all_where_strata_do_not_pay():
    lists, strata = unlike_strata(0.0)
    found = calibrate(lists, strata, "level", "beta", 0.6, Cutoff(default_value=0.7), (5,))
    assert found.offsets.tolist() == [0, 0, 0]
    cutoffs = found.cutoff_for("recall", 0.7, np.array([0, 1, 2]))
    assert cutoffs.dtype == np.float32
    assert set(cutoffs) == {recall_map(lists, 1, 10_000).cutoff(0.7)}


def test_offsets_where_they_pay_shrunk_by_evidence():
    """The head's scores are 3 too high: its own cut-off is 3 higher, which is trusted by n."""
    lists, strata = unlike_strata(3.0)
    config = Cutoff(default_value=0.7)
    found = calibrate(lists, strata, "level", "beta", 0.6, config, (5,))
    common = recall_map(lists, 1, 10_000).cutoff(0.7)
    for index, offset in enumerate(found.offsets):
        count = (strata == index).sum()
        own = recall_map(lists.part(strata == index), 1, 10_000).cutoff(0.7)
        assert offset == pytest.approx(count / (count + 200) * (own - common), rel=1e-5)
    cutoffs = found.cutoff_for("recall", 0.7, strata)
    counts = bounded_counts(lists, lists.counts_at(cutoffs), 1, 10_000)
    figures = lists.figures(counts)
    assert figures.recall == pytest.approx(0.7 * 601 / 600, abs=2e-3)
    assert figures.average == pytest.approx(found.default_items, rel=0.02)
    assert figures.average < lists.counts_at(common).mean() - 1
    budget = lists.counts_at(found.cutoff_for("budget", 12.0, strata))
    assert budget.mean() == pytest.approx(12, rel=0.05)


def test_what_a_stratum_keeps_is_measured_on_its_queries():
    found, lists = calibration(strata=np.repeat([0, 2], [200, 100]))
    assert {name: each.queries for name, each in found.strata.items()} == {"head": 200, "tail": 100}
    kept = lists.shares(bounded_counts(lists, lists.counts_at(found.recall.cutoff(0.5)), 1, 99))[1]
    received = found.expected_recall(0.5, np.array([0, 1, 2]))
    assert received == pytest.approx([kept[:200].mean(), 0.5, kept[200:].mean()])
    low, high = found.interval(0.5)
    assert (high - low) / 2 == pytest.approx(1.96 * kept.std(ddof=1) / np.sqrt(300))


def test_asking_beyond_gives_the_end_and_says_so():
    found, _ = calibration(floor=1)
    strata = np.zeros(1, int)
    end = found.cutoff_for("recall", found.recall.highest, strata)
    assert found.cutoff_for("recall", 0.999, strata) == end
    assert found.out_of_range_message("recall", 0.7) is None
    text = found.out_of_range_message("recall", 0.999)
    assert text.startswith("recall must be from 0.0")
    assert "the range that 300 held-out queries support. Received: 0.999, answered as 0.9" in text
    assert "answered as 1.0." in found.out_of_range_message("budget", 0.5)
    assert found.expected_recall(0.999, np.ones(1, int)) == found.strata["torso"].recalls[-1]


def test_the_default_is_what_the_largest_average_reaches():
    found, lists = calibration(average_k=(4, 12))
    reached = found.recall.value(found.budget.cutoff(12))
    assert (found.default_knob, found.default_value) == ("recall", np.floor(100 * reached) / 100)
    counts = bounded_counts(lists, lists.counts_at(found.recall.cutoff(found.default_value)), 1, 99)
    assert found.default_items == pytest.approx(counts.mean(), rel=0.03)
    assert 11 < found.default_items <= 12
    assert calibration(default_value=0.6)[0].default_value == 0.6
    fixed = calibration(default_knob="score", default_value=0.5)[0]
    assert (fixed.default_value, fixed.default_items) == (0.5, None)


def test_notes_on_cost_range_and_width():
    found, _ = calibration(600)
    assert found.notes("recall", 0.3, 1_000) == ()
    items = found.items_per_query("recall", 0.8)
    assert found.notes("recall", 0.8, 40) == (
        f"recall 0.8 returns {items:.0f} items per query on average, {100 * items / 40:.3g}% of "
        "the 40 items.",
    )
    assert found.notes("top_k", 101, 1_000) == (
        "top_k 101 returns 101 items per query on average, 10.1% of the 1,000 items.",
    )
    assert found.notes("top_k", 100, 1_000) == found.notes("score", 0.1, 1) == ()
    few, _ = calibration(20)
    (wide,) = few.notes("recall", 0.5, 1_000)
    low, high = few.interval(0.5)
    assert wide == (
        f"recall 0.5 was calibrated on 20 queries: its 95% interval is {low:.2g} to {high:.2g}."
    )


def test_cross_fitted_maps_do_not_know_the_queries_that_they_end():
    served, lists = calibration(60)
    served = replace(served, folds=5)
    strata = np.arange(60) % 3
    found, fold = module.cross_fitted(served, lists, strata)
    assert np.bincount(fold).tolist() == [12] * 5
    for number, each in enumerate(found):
        shifted = lists.shifted(served.offsets[strata])
        expected = recall_map(shifted.part(fold != number), 1, 10_000)
        assert each.recall.cutoffs.tolist() == expected.cutoffs.tolist()
        assert (each.queries, each.default_value) == (48, served.default_value)


def test_a_calibration_survives_its_file(tmp_path):
    found, _ = calibration()
    found.save(tmp_path)
    again, content = module.Calibration.load(tmp_path), (tmp_path / "cutoff.json").read_text()
    again.save(tmp_path)
    assert (tmp_path / "cutoff.json").read_text() == content
    received = (again.policy, again.family, again.level_temperature, again.queries)
    assert received == ("level", "beta", 0.6, 300)


FALLING = {"knob_values": [1, 0], "cutoffs": [1, 0], "queries": 1}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda c: "nonsense", r"must be JSON\. Received: Expecting value"),
        (lambda c: [], r"must have version 4\. Received: \[\]\.$"),
        (lambda c: {**c, "version": 1}, r"must have version 4\. Received: 1\.$"),
        (
            lambda c: {name: c[name] for name in c if name != "policy"},
            r"must hold a calibration\. Received: KeyError\('policy'\)\.$",
        ),
        (lambda c: {**c, "strata": {"head": {}}}, "must hold a calibration.* missing 3 required"),
        (lambda c: {**c, "budget": 3}, "must hold a calibration.* TypeError"),
        (lambda c: {**c, "recall": FALLING}, "must hold .*ValueError.* must rise in the knob val"),
        (
            lambda c: {**c, "law": {**c["law"], "bias": [1]}},
            r"must have finite numbers bias \[2\], linear \[3, 2\], inner",
        ),
    ],
)
def test_a_file_that_is_none_is_rejected(tmp_path, change, error):
    calibration()[0].save(tmp_path)
    path = tmp_path / "cutoff.json"
    changed = change(json.loads(path.read_text()))
    path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
    with pytest.raises(UserError, match=rf"cutoff\.json {error}"):
        module.Calibration.load(tmp_path)


def test_maps_where_nothing_is_left_to_choose():
    """One item that every query gets by the floor, and no relevant item among the candidates."""
    for rank, kept in ((0, 1.0), (1, 0.0)):
        ranks = Ranks(np.arange(20), np.full(20, rank))
        lists = RankedLists(np.zeros((20, 1), np.float32), ranks, np.ones(20, int))
        for found in (recall_map(lists, 1, 10), budget_map(lists, 1, 10)):
            assert len(found.knob_values) == 2
        found = recall_map(lists, 1, 10)
        assert found.highest == pytest.approx(20 / 21 * kept)
        assert np.isfinite(found.cutoff([0.1, 0.9])).all()


def test_repeated_cutoffs_become_distinct():
    found = KnobMap.through(np.array([1.0, 2.0, 2.0, 3.0]), np.array([5.0, 5.0, 4.0, 4.0]), 9)
    assert found.knob_values.tolist() == [1, 2, 3]
    assert found.cutoffs.tolist() == [5, 4, np.nextafter(np.float32(4), np.float32(0))]
    assert found.value(found.cutoff([1.5, 3])).tolist() == [1.5, 3]
    with pytest.raises(ValueError, match="as many knob values as cut-offs, all finite"):
        KnobMap(np.array([1.0]), np.array([np.nan]), 1)
