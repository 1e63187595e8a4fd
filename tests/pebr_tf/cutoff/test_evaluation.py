"""The dict that evaluation.json is made of, against figures taken one by one."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cutoff_worlds import make_world

from pebr_tf.config import Cutoff
from pebr_tf.cutoff import (
    KnobEvaluation,
    calibrate,
    collect_candidates,
    evaluate_policies,
    evaluated_policies,
    served_policy,
)
from pebr_tf.cutoff.policies import LevelPolicy
from pebr_tf.metrics import STRATA, cutoff_at, evaluate

FIGURES = {
    "precision", "recall", "micro_precision", "micro_recall", "average", "empty", "capped",
    "p10", "p50", "p90", "p99",
}  # fmt: skip


def candidates_of(seed, queries=400, depth=200):
    corpus, found, relevant = make_world(queries, 300, seed=seed)
    candidates = collect_candidates(
        corpus, found, relevant, "beta", (0.6, 1.0), depth, known=relevant
    )
    return replace(candidates, head_levels=candidates.levels[0.6] + np.float32(0.01))


@pytest.fixture(scope="module")
def test_candidates():
    return candidates_of(0)


@pytest.fixture(scope="module")
def knobs(test_candidates):
    settings = Cutoff(default_value=0.7, limit=150)
    held_out = candidates_of(0, 800).part(np.arange(800) >= 400)
    lists = LevelPolicy(level_temperature=0.6).lists(held_out)
    found = calibrate(lists, held_out.queries.strata, "level", "beta", 0.6, settings)
    return KnobEvaluation(found, test_candidates, settings)


def test_policies_at_equal_averages(test_candidates):
    policies, curves = evaluated_policies(0.6), {}
    entries = evaluate_policies(policies, test_candidates, (5, 50), "level", curves)
    json.dumps(entries)
    assert [entry["name"] for entry in entries if entry["default"]] == ["level"]
    assert [entry["name"] for entry in entries] == [policy.name for policy in policies]
    for policy, entry in zip(policies, entries, strict=True):
        lists = policy.lists(test_candidates).unranked()
        for k in (5, 50):
            at = entry["at"][str(k)]
            assert set(at) == {"overall", *STRATA}
            cutoff = cutoff_at(lists, k)
            for place, name in enumerate(STRATA):
                chosen = np.flatnonzero(test_candidates.queries.strata == place)
                figures = evaluate(lists.part(chosen), cutoff)
                assert set(at[name]) == FIGURES
                assert at[name]["recall"] == pytest.approx(figures.recall)
                assert at[name]["precision"] == pytest.approx(figures.precision)
                assert at[name]["average"] == pytest.approx(figures.average)
        curve = curves[entry["name"]]
        assert (np.diff(curve["average"]) > 0).all()
        assert (np.diff(curve["recall"]) >= -1e-9).all()
        if entry["name"] == "top_k":
            assert curve["recall"][curve["average"].index(5.0)] == pytest.approx(
                entry["at"]["5"]["overall"]["recall"]
            )
    ours, fixed, oracle = (
        next(entry for entry in entries if entry["name"] == name)["at"]["5"]["overall"]["recall"]
        for name in ("level", "top_k", "oracle")
    )
    assert oracle > ours > fixed


def test_all_relevant_pairs_known_leaves_no_unseen_query():
    """Also those that are no candidates."""
    candidates = candidates_of(0, depth=5)
    assert (candidates.relevant.ranks == 5).any()
    assert len(candidates.unseen()) == 0


def test_knobs_on_test_queries(knobs, test_candidates):
    measured = knobs.measure((5, 50))
    json.dumps(measured)
    found = measured["calibration"]
    assert found["asked"] == [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    place = found["asked"].index(0.7)
    default = measured["default_knob"]
    assert default["figures"]["recall"] == pytest.approx(found["kept"]["overall"][place])
    assert default["figures"]["average"] == pytest.approx(found["average"][place])
    # 400 queries of up to 8 clicks: a standard error of about .02.
    assert found["error"]["overall"] < 0.06
    for name in ("overall", *STRATA):
        gaps = np.abs(np.subtract(found["kept"][name], found["promised"][name]))
        assert found["error"][name] == pytest.approx(gaps.mean())
        assert (np.diff(found["kept"][name]) >= 0).all()
    assert sum(measured["counts"]["queries"]) == 400
    assert measured["budget"]["asked"] == [5, 50]
    np.testing.assert_allclose(measured["budget"]["received"], [5, 50], rtol=0.15)
    assert set(default["by_stratum"]) == set(STRATA)
    assert knobs.counts.max() <= 150


def test_examples_go_from_few_items_to_many(knobs, test_candidates):
    texts = [f"query {row}" for row in range(400)]
    examples = list(knobs.examples(texts))
    counts = [example["count"] for example in examples]
    assert len(examples) == 12
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (knobs.counts.min(), knobs.counts.max())
    for example in examples:
        row = int(example["query"].split()[1])
        above = test_candidates.cosines[row] >= np.float32(example["threshold"])
        assert above.sum() == example["count"]
        assert example["kept"] <= example["relevant"] == test_candidates.totals[row]


@pytest.mark.parametrize(("knob", "value"), [("top_k", 7), ("score", 0.5)])
def test_knobs_that_need_no_calibration(knobs, test_candidates, knob, value):
    settings = Cutoff(default_knob=knob, default_value=value, floor=2, limit=100)
    counts = KnobEvaluation(knobs.calibration, test_candidates, settings).counts
    if knob == "top_k":
        assert set(counts) == {7}
    else:
        expected = np.clip((test_candidates.cosines >= 0.5).sum(axis=1), 2, 100)
        assert counts.tolist() == expected.tolist()


def test_the_level_of_a_release_follows_the_level_source():
    for settings, name in (
        (Cutoff(), "level"),
        (Cutoff(level_source="head"), "level_head"),
        (Cutoff(policy="gap", level_source="head"), "gap"),
    ):
        assert served_policy(settings.policy, settings, "beta", 0.6).name == name
