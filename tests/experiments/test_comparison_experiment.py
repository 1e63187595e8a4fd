"""The comparison: cut-offs that reach a recall against brute force, and bars by hand."""

import numpy as np
import pytest
from experiment_runs import figures

from experiments import comparison
from experiments.comparison_bars import beats, closed, strongest_point
from experiments.comparison_measured import at_recall
from experiments.comparison_tables import MAIN
from pebr_tf.metrics.ranked import RankedLists, Ranks

AVERAGES = (5, 15, 50)
POLICIES = {policy for _, _, policy in MAIN} | {"level"}


def run(changes=None, queries=40, seed=0):
    """What `measure` gives: a precision of .1 and a recall of .5, but for the policies in changes.

    Each seed shifts the recalls by a hundredth.
    """
    pairs = dict.fromkeys(POLICIES, (0.1, 0.5)) | {"oracle": (0.2, 0.9)} | (changes or {})
    pairs = {name: (p, r + seed / 100) for name, (p, r) in pairs.items()}
    at = {name: {str(k): figures(*each, k) for k in AVERAGES} for name, each in pairs.items()}
    wiggle = np.linspace(-0.05, 0.05, queries)
    columns = {
        name: {
            str(k): {
                "precision": np.float32(p + wiggle),
                "recall": np.float32(r + (wiggle if name == "top_k" else -wiggle)),
            }
            for k in AVERAGES
        }
        for name, (p, r) in pairs.items()
    }
    own = {"precision": 0.12, "average": 3.0}
    return {
        "level_temperature": 0.5,
        "at": {"clicks": at},
        "columns": columns,
        "own_recall": {
            name: {str(k): {"level": own, "depth_law": None} for k in AVERAGES} for name in pairs
        },
        "dial": {
            "level_temperatures": [0.0, 1.0, 2.0],
            "precision": [[0.3] * 3, [0.15] * 3, [0.12] * 3],
            "recall": [[0.4] * 3, [0.5] * 3, [0.6] * 3],
        },
    }


def found(changes=None, seeds=1):
    runs = {kind: [run(changes, seed=n) for n in range(seeds)] for kind in comparison.COMPARED}
    return comparison.figures_of(runs, AVERAGES)


def test_the_cut_that_reaches_a_recall_is_the_shortest():
    generator = np.random.default_rng(0)
    scores = -np.sort(-generator.random((30, 20)).astype(np.float32), axis=1)
    rows = np.repeat(np.arange(30), 3)
    ranks = np.concatenate([generator.permutation(25)[:3] for _ in range(30)])
    lists = RankedLists(scores, Ranks(rows, ranks), np.full(30, 3))
    every = [lists.figures(lists.counts_at(float(cutoff))) for cutoff in np.unique(scores)[::-1]]
    for wanted in (0.05, 0.3, 0.55, every[-1].recall):
        shortest = next(each for each in every if each.recall >= wanted - 1e-12)
        received = at_recall(lists, wanted)
        assert received.average == shortest.average
        assert received.precision == shortest.precision
    # A quarter of the relevant items are no candidates.
    assert at_recall(lists, every[-1].recall + 0.01) is None


def test_the_way_to_the_oracle_by_hand():
    kinds = found({"level": (0.1, 0.6), "depth_law": (0.1, 0.7)})["kinds"]["beta"]
    assert closed(kinds, "level", 15) == pytest.approx(0.25)
    assert closed(kinds, "depth_law", 15) == pytest.approx(0.5)
    assert closed(kinds, "top_k", 15) == 0


def test_the_strongest_point_keeps_the_recall():
    """T = 0 is three times as precise and keeps less; T = 1 keeps as much."""
    ratio, level_temperature = strongest_point(found(), 1)
    assert (ratio, level_temperature) == (pytest.approx(1.5), 1.0)
    assert strongest_point(found({"top_k": (0.1, 0.99)}), 1) == (0.0, None)


@pytest.mark.parametrize(
    ("rival", "how"),
    [
        ((0.5, 0.4), "recall"),
        # Equal recall: more precise, .12 to .11, with 3 items for 15.
        ((0.11, 0.5), "precision"),
        ((0.13, 0.5), None),
        ((0.13, 0.6), None),
    ],
)
def test_who_beats_whom(rival, how):
    assert beats(found({"gap": rival}), "level", "gap", 15) == how


def test_gains_are_those_of_the_queries_over_seeds():
    """The level has .1 more recall than top k in every seed; the mean of the seeds' recalls."""
    figures = found({"level": (0.1, 0.6)}, seeds=3)
    recall = figures["kinds"]["beta"]["level"]["15"]["overall"]["recall"]
    assert recall["mean"] == pytest.approx(0.61)
    assert recall["deviation"] == pytest.approx(0.01)
    chosen = {"ours": "level", "against": "beta", "k": 15, "measure": "recall"}.items()
    (entry,) = [each for each in figures["significance"] if chosen <= each.items()]
    assert entry["difference"] == pytest.approx(0.1, abs=1e-6)
    assert entry["by_seed"] == pytest.approx((0.1, 0.1, 0.1), abs=1e-6)
    assert entry["p_value"] < 0.001
    # Columns run against each other, so their difference has twice the spread of one.
    spread = 2 * np.linspace(-0.05, 0.05, 40).std() / np.sqrt(40)
    assert entry["high"] - entry["low"] == pytest.approx(2 * 1.96 * spread, rel=0.1)
