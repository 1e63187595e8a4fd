"""Figures over seeds against values by hand: mean, deviation, bold, and the notes."""

import math

import pytest
from experiment_runs import figures, output

from experiments import seeds
from pebr_tf.report.formats import DASH

RUNS = [
    output({"level": {5: (0.2, 0.5)}, "top_k": {5: (0.1, 0.45)}}),
    output({"level": {5: (0.3, 0.6)}, "top_k": {5: (0.1, 0.50)}}),
    output({"level": {5: (0.4, 0.7)}, "top_k": {5: (0.1, 0.55)}}),
]


def test_spread_is_mean_and_sample_deviation():
    assert seeds.spread([1.0, 2.0, 3.0]) == {"mean": 2.0, "deviation": 1.0, "seeds": [1, 2, 3]}
    alone = seeds.spread([0.5])
    assert alone["mean"] == 0.5
    assert math.isnan(alone["deviation"])


def test_over_seeds_keeps_policies_averages_and_groups():
    found = seeds.over_seeds(RUNS)
    assert list(found) == ["level", "top_k"]
    recall = found["level"]["5"]["overall"]["recall"]
    assert recall["mean"] == pytest.approx(0.6)
    assert recall["deviation"] == pytest.approx(0.1)
    assert found["level"]["5"]["head"]["recall"]["mean"] == pytest.approx(0.3)
    assert seeds.pair(found, "level", 5) == pytest.approx((0.3, 0.6))
    assert seeds.pair(found, "cdf", 5) is None


def test_gain_is_taken_on_the_same_towers():
    gain = seeds.gain(RUNS, 5, "recall")
    assert gain["seeds"] == pytest.approx([0.05, 0.1, 0.15])
    assert (gain["mean"], gain["deviation"]) == pytest.approx((0.1, 0.05))


@pytest.mark.parametrize(
    ("values", "said", "said_signed"),
    [
        ([0.1, 0.2, 0.3], ".200 ± .100", "+.200 ± .100"),
        ([-0.1, -0.2, -0.3], "-.200 ± .100", "−.200 ± .100"),
        ([0.01, -0.01], ".000 ± .014", ".000 ± .014"),
        ([1.0], "1.000", "+1.000"),
    ],
)
def test_mean_and_deviation_as_people_read_them(values, said, said_signed):
    assert seeds.plus_minus(seeds.spread(values)) == said
    assert seeds.signed_plus_minus(seeds.spread(values)) == said_signed


def test_bold_is_the_best_precision_and_the_best_recall():
    pairs = [(0.2, 0.5), (0.1, 0.9), None, (0.19999, 0.1)]
    assert seeds.pairs_in_bold(pairs) == ["**.200**/.500", ".100/**.900**", DASH, "**.200**/.100"]
    compared = [True, False, True, True]
    assert seeds.pairs_in_bold(pairs, compared)[:2] == ["**.200/.500**", ".100/.900"]
    assert seeds.pairs_in_bold([None]) == [DASH]
    assert seeds.pairs_in_bold([(0.1, 0.2)], [False]) == [".100/.200"]


def test_the_oracle_never_competes():
    found = seeds.over_seeds([output({"level": {5: (0.2, 0.5)}, "oracle": {5: (0.9, 0.9)}})])
    rows = [("ours", "level", found), ("oracle", "oracle", found), ("none", "cdf", found)]
    table = seeds.policy_table("t", rows, (5,), "note")
    assert table.head == ("P/R", "k = 5")
    assert table.rows == (("ours", "**.200/.500**"), ("oracle", ".900/.900"), ("none", DASH))


def test_lists_that_ties_keep_short_are_named():
    at = {"score": {"100": figures(0.1, 0.1, 98.9)}, "level": {"100": figures(0.1, 0.1, 99.5)}}
    at["oracle"] = {"100": figures(0.1, 0.1, 3.0)}
    found = seeds.over_seeds([{"at": at}])
    rows = [(name, name, found) for name in ("score", "level", "oracle", "cdf")]
    assert seeds.short_lists(rows, (100,)).endswith(": score (98.9 at k = 100).")
    assert seeds.short_lists(rows[1:], (100,)) == ""
