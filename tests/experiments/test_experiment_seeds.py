"""Figures over seeds against values by hand: means, deviations and gains."""

import math

import pytest
from experiment_runs import output

from experiments import seeds

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
