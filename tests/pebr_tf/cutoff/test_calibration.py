"""Recall and budget maps against loops, and the conformal guarantee by simulation."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from pebr_tf.config import Cutoff
from pebr_tf.cutoff import Calibration, KnobMap, calibrate
from pebr_tf.cutoff.calibration import RECALLS, bounded_counts, budget_map, recall_map
from pebr_tf.errors import UserError
from pebr_tf.metrics import RankedLists, Ranks


def random_lists(seed, queries=12, candidates=20, ties=False):
    """Falling scores; up to six relevant items a query, some of them no candidates."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(queries, candidates)).astype(np.float32)
    scores = -np.sort(-(np.round(scores) if ties else scores), axis=1)
    rows, ranks = [], []
    for row in range(queries):
        chosen = generator.choice(candidates + 2, generator.integers(1, 7), replace=False)
        rows += [row] * len(chosen)
        ranks += np.minimum(chosen, candidates).tolist()
    return RankedLists(scores, Ranks(np.array(rows), np.array(ranks)), np.bincount(rows))


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
    for share in RECALLS:
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


def calibration(queries=300, strata=None, **settings):
    lists = random_lists(1, queries=queries, candidates=40)
    strata = np.arange(queries) % 3 if strata is None else strata
    return calibrate(lists, strata, "level", "beta", 0.6, Cutoff(**settings)), lists


def test_strata_with_enough_queries_have_maps_of_their_own():
    strata = np.repeat([0, 1, 2], [200, 50, 49])
    found, lists = calibration(299, strata)
    assert list(found.strata) == ["head", "torso"]
    assert [each.queries for each in found.strata.values()] == [200, 50]
    own = recall_map(lists.part(strata == 1), 1, 10_000)
    asked = np.array([0, 1, 2, 1])
    received = found.cutoff_for("recall", 0.7, asked)
    overall = found.recall.cutoff(0.7)
    expected = [found.strata["head"].cutoff(0.7), own.cutoff(0.7), overall, own.cutoff(0.7)]
    assert received.dtype == np.float32
    assert received.tolist() == pytest.approx([float(value) for value in expected])
    assert len(set(found.cutoff_for("budget", 12.0, asked))) == 1


def test_asking_beyond_gives_the_end_and_says_so():
    found, _ = calibration(floor=1)
    strata = np.zeros(1, int)
    end = found.cutoff_for("recall", found.strata["head"].highest, strata)
    assert found.cutoff_for("recall", 0.999, strata) == end
    assert found.out_of_range_message("recall", 0.7) is None
    text = found.out_of_range_message("recall", 0.999)
    assert text.startswith("recall must be from 0.0")
    assert "the range that 300 calibrate queries support. Received: 0.999, answered as 0.9" in text
    assert "answered as 1.0." in found.out_of_range_message("budget", 0.5)
    assert found.reachable("recall", 0.999, strata) == found.strata["head"].highest


def test_a_calibration_survives_json():
    found, _ = calibration()
    again = Calibration.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    received = (again.policy, again.family, again.level_temperature, again.queries)
    assert received == ("level", "beta", 0.6, 300)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda c: "nonsense", r"cutoff\.json must be JSON\."),
        (lambda c: [], r"cutoff\.json must have version 3\. Received: \[\]\."),
        (lambda c: {**c, "version": 1}, r"must have version 3\. Received: 1\."),
        (lambda c: {**c, "hat": 1}, r"must have the keys version, .*Received: budget, family"),
        (lambda c: {**c, "strata": {"neck": {}}}, "strata must be among head, torso, tail"),
        (
            lambda c: {**c, "level_temperature": "1"},
            "level_temperature of cutoff.json must be a number. Received: '1'",
        ),
        (lambda c: {**c, "budget": 3}, r"budget must be a mapping\. Received: int\."),
        (
            lambda c: {**c, "recall": {"knob_values": [1, 0], "cutoffs": [1, 0], "queries": 1}},
            "recall must be a monotone map. Received: a map must rise",
        ),
        (
            lambda c: {**c, "law": {**c["law"], "bias": [1]}},
            r"law of cutoff\.json must have finite numbers bias \[2\], linear \[3, 2\], inner",
        ),
    ],
)
def test_a_file_that_is_none_is_rejected(change, error):
    content = json.loads(calibration()[0].to_json())
    changed = change(content)
    text = changed if isinstance(changed, str) else json.dumps(changed)
    with pytest.raises(UserError, match=error):
        Calibration.from_json(text)


def test_too_few_queries_are_rejected_with_the_number_needed():
    error = (
        r"calibration must have at least 200 queries with held-out clicks "
        r"\(cutoff\.min_calibration_queries\)\. Received: 57\."
    )
    with pytest.raises(UserError, match=error):
        calibration(57)


def test_unknown_knobs_and_values_are_rejected():
    found, _ = calibration()
    with pytest.raises(ValueError, match=r"knob must be one of recall, budget\. Received: 'top_k'"):
        found.cutoff_for("top_k", 3, np.zeros(1, int))
    with pytest.raises(ValueError, match=r"recall must be a number\. Received: NaN\."):
        found.cutoff_for("recall", np.nan, np.zeros(1, int))


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
