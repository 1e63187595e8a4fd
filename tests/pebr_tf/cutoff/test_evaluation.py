"""Policies and knobs on test queries, against figures taken one by one."""

from dataclasses import replace

import numpy as np
import pytest
from cutoff_worlds import make_world
from unranked_lists import cutoff_at, evaluate, unranked

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import calibrate, served_lists
from pebr_tf.cutoff.candidates import collect_candidates
from pebr_tf.cutoff.evaluation import KnobEvaluation, evaluate_policies
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.cutoff.policies.registry import evaluated_policies, served_policy
from pebr_tf.metrics.results import GROUPS
from pebr_tf.metrics.strata import STRATA


def candidates_of(seed, queries=400, depth=200):
    corpus, found, relevant = make_world(queries, 300, seed=seed)
    candidates = collect_candidates(
        corpus, found, relevant, "beta", (0.6, 1.0), depth, known=relevant
    )
    return replace(candidates, sample_levels=candidates.levels[0.6] + np.float32(0.01))


@pytest.fixture(scope="module")
def test_candidates():
    return candidates_of(0)


@pytest.fixture(scope="module")
def knobs(test_candidates):
    settings = Cutoff(default_value=0.7, limit=150)
    held_out = candidates_of(0, 800).part(np.arange(800) >= 400)
    lists = LevelPolicy(level_temperature=0.6).lists(held_out)
    found = calibrate(lists, held_out.queries.strata, "level", "beta", 0.6, settings, (5, 50))
    return KnobEvaluation(found, test_candidates, settings)


def test_policies_at_equal_averages(test_candidates):
    policies = evaluated_policies(0.6)
    results = evaluate_policies(policies, test_candidates, (5, 50), "level", with_curves=True)
    assert [result.name for result in results if result.default] == ["level"]
    assert [result.name for result in results] == [policy.name for policy in policies]
    for policy, result in zip(policies, results, strict=True):
        lists = unranked(policy.lists(test_candidates))
        for k in (5, 50):
            assert tuple(result.at[k]) == GROUPS
            cutoff = cutoff_at(lists, k)
            for index, name in enumerate(STRATA):
                chosen = np.flatnonzero(test_candidates.queries.strata == index)
                figures = evaluate(lists.part(chosen), cutoff)
                assert result.at[k][name].recall == pytest.approx(figures.recall)
                assert result.at[k][name].precision == pytest.approx(figures.precision)
                assert result.at[k][name].average == pytest.approx(figures.average)
        assert (np.diff(result.curve.average) > 0).all()
        assert (np.diff(result.curve.recall) >= -1e-9).all()
        if result.name == "top_k":
            recall = result.curve.recall[result.curve.average.index(5.0)]
            assert recall == pytest.approx(result.at[5]["overall"].recall)
    recalls = {result.name: result.at[5]["overall"].recall for result in results}
    assert recalls["oracle"] > recalls["level"] > recalls["top_k"]


def test_all_relevant_pairs_known_leaves_no_unseen_query():
    """Also those that are no candidates."""
    candidates = candidates_of(0, depth=5)
    assert (candidates.relevant.ranks == 5).any()
    assert len(candidates.unseen()) == 0


def test_knobs_on_test_queries(knobs):
    found, default, budget = knobs.calibration_result(), knobs.default_knob(), knobs.budget((5, 50))
    assert found.requested == [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    index = found.requested.index(0.7)
    assert (default.knob, default.value) == ("recall", 0.7)
    assert tuple(default.groups) == GROUPS
    assert default.groups["overall"].recall == pytest.approx(found.measured["overall"][index])
    assert default.groups["overall"].average == pytest.approx(found.average[index])
    # 400 queries of up to 8 clicks: a standard error of about .02.
    assert found.error["overall"] < 0.06
    for name in GROUPS:
        gaps = np.abs(np.subtract(found.measured[name], found.expected[name]))
        assert found.error[name] == pytest.approx(gaps.mean())
        assert (np.diff(found.measured[name]) >= 0).all()
    assert sum(knobs.histogram().queries) == 400
    assert budget.requested == [5, 50]
    np.testing.assert_allclose(budget.measured, [5, 50], rtol=0.15)
    assert knobs.counts.max() <= 150


def test_examples_go_from_few_items_to_many(knobs, test_candidates):
    texts = [f"query {row}" for row in range(400)]
    examples = knobs.examples(texts)
    counts = [example.count for example in examples]
    assert len(examples) == 12
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (knobs.counts.min(), knobs.counts.max())
    for example in examples:
        row = int(example.query.split()[1])
        above = test_candidates.cosines[row] >= np.float32(example.threshold)
        assert above.sum() == example.count
        assert example.hits <= example.relevant == test_candidates.totals[row]


def test_examples_have_the_cosines_of_clicks_that_are_candidates(knobs):
    shallow = candidates_of(0, depth=10)
    clicked = shallow.relevant
    assert clicked.ranks.max() >= 10
    examples = KnobEvaluation(knobs.calibration, shallow, Cutoff()).examples(range(400))
    for example in examples:
        ranks = clicked.ranks[clicked.rows == example.query]
        cosines = shallow.cosines[example.query, ranks[ranks < 10]]
        assert example.clicks == sorted(cosines.tolist(), reverse=True)


@pytest.mark.parametrize("unfamiliar_items", [None, 7])
def test_unfamiliar_queries_have_a_fixed_list_at_calibrated_knobs(unfamiliar_items):
    settings = Cutoff(default_value=0.7, limit=150, floor=2, unfamiliar_items=unfamiliar_items)
    unfamiliar = np.arange(400) % 5 == 0

    def marked(found):
        return replace(found, queries=replace(found.queries, unfamiliar=unfamiliar))

    tested = marked(candidates_of(0))
    held_out = marked(candidates_of(0, 800).part(np.arange(800) >= 400))
    policy = LevelPolicy(level_temperature=0.6)
    lists = served_lists(policy, held_out, settings)
    strata = held_out.queries.strata
    found = calibrate(lists, strata, "level", "beta", 0.6, settings, (5, 50))
    knobs = KnobEvaluation(found, tested, settings)
    assert set(knobs.counts[unfamiliar]) == {unfamiliar_items or 2}
    assert len(set(knobs.counts[~unfamiliar])) > 5
    # The maps know these lists, so that the promise is kept over all queries.
    assert knobs.default_knob().groups["overall"].recall == pytest.approx(0.7, abs=0.05)
    assert knobs.budget((50,)).measured[0] == pytest.approx(50, rel=0.15)
    top_k = replace(found, default_knob="top_k", default_value=9)
    assert set(KnobEvaluation(top_k, tested, settings).counts) == {9}


@pytest.mark.parametrize(("knob", "value"), [("top_k", 7), ("score", 0.5)])
def test_knobs_that_need_no_calibration(knobs, test_candidates, knob, value):
    changes = {"default_knob": knob, "default_value": value, "floor": 2, "limit": 100}
    calibration = replace(knobs.calibration, **changes)
    counts = KnobEvaluation(calibration, test_candidates, Cutoff()).counts
    if knob == "top_k":
        assert set(counts) == {7}
    else:
        expected = np.clip((test_candidates.cosines >= 0.5).sum(axis=1), 2, 100)
        assert counts.tolist() == expected.tolist()


def test_the_level_of_a_release_follows_the_level_source():
    for settings, name in (
        (Cutoff(), "level"),
        (Cutoff(level_source="sample"), "level_sample"),
        (Cutoff(policy="gap", level_source="sample"), "gap"),
    ):
        assert served_policy(settings.policy, settings, "beta", 0.6).name == name
