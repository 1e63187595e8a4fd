"""Towers from a part of the log: gains by hand, and a small run on equal test queries."""

import pytest
from experiment_runs import output, run_small

from experiments import corpus_size
from experiments.plots import drawn
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


def test_bold_is_the_best_of_each_share(results):
    cells = {row[0]: row[1] for row in results.tables[0].rows}
    assert len(cells) == 15
    assert cells["100%: level"] == ".200/**.620**"
    assert cells["100%: literal pEBR"] == "**.300**/.100"
    assert cells["46%: level"] == ".150/**.500**"
    assert cells["23%: level"] == ".100/.400"
    assert cells["23%: top k"] == ".100/**.420**"
    assert cells["23%: oracle"] == ".900/.950"


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


def test_plots_can_be_drawn(results):
    (plot,) = results.plots
    assert drawn(plot)["svg"]


@pytest.mark.slow
def test_a_small_run(tmp_path_factory):
    outputs, results = run_small(corpus_size, tmp_path_factory)
    assert set(outputs) == {"synthetic/1/0", "synthetic/0.46/0", "synthetic/0.23/0"}
    recalls = [each["at"]["level"]["50"]["overall"]["recall"] for each in outputs.values()]
    assert len(set(recalls)) == 3
    # The same queries in the same strata, whatever the towers saw.
    for k in map(str, AVERAGES):
        assert len({tuple(each["at"]["top_k"][k]) for each in outputs.values()}) == 1
        assert all(each["at"]["top_k"][k]["head"]["average"] == int(k) for each in outputs.values())
    assert len(results.tables[0].rows) == 15
    assert all(drawn(plot) for plot in results.plots)
