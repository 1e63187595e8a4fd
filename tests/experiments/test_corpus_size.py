"""Towers from a part of the log: gains by hand, and a small run on equal test queries."""

import pytest
from experiment_runs import output

from experiments import corpus_size
from experiments.settings import Settings

AVERAGES = (5, 15, 50)


def hand_made(level, top_k):
    at = {"level": level, "top_k": top_k, "score": (0.05, 0.2), "cdf": (0.3, 0.1)}
    at["oracle"] = (0.9, 0.95)
    return output({policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()})


@pytest.fixture(scope="module")
def results():
    outputs = {
        "synthetic/1/0": hand_made((0.20, 0.60), (0.10, 0.50)),
        "synthetic/1/1": hand_made((0.20, 0.64), (0.10, 0.50)),
        "synthetic/0.46/0": hand_made((0.15, 0.50), (0.10, 0.45)),
        "synthetic/0.46/1": hand_made((0.15, 0.50), (0.10, 0.45)),
        "synthetic/0.23/0": hand_made((0.10, 0.40), (0.10, 0.42)),
        "synthetic/0.23/1": hand_made((0.10, 0.40), (0.10, 0.42)),
    }
    return corpus_size.results(Settings("small", 2, None), outputs)


def test_gains_are_differences_on_the_same_towers(results):
    table = results.tables[1]
    cells = {row[0]: row[-1] for row in table.rows}
    assert cells["100%: level, recall"] == "+.120 ± .028"
    assert cells["23%: level, recall"] == "−.020 ± .000"
    assert cells["46%: level, precision"] == "+.050 ± .000"
    assert cells["46%: literal pEBR, recall"] == "−.350 ± .000"
    gain = results.figures["synthetic"]["1"]["gain_over_top_k"]["level"]["50"]["recall"]
    assert gain["seeds"] == pytest.approx([0.1, 0.14])


def test_the_summary_says_where_the_gain_persists(results):
    (said,) = results.summary
    assert "+.120 from 100%, +.050 from 46%, −.020 from 23% at k = 15" in said
    assert "Recall is above top k's in 6, precision in 6 of 9 cases." in said
