"""Recall of short lists: tables, sentences and figures from hand-made outputs, and a small run."""

import pytest
from experiment_runs import SMALL, output

from experiments import recall_at
from experiments.settings import GOODBOOKS, SYNTHETIC, Settings

AVERAGES = (2, 5, 10, 20)


def hand_made(level, top_k, cdf=None):
    """One run whose figures are the same at every average."""
    at = {"level": level, "top_k": top_k, "score": (0.05, 0.2), "oracle": (0.9, 0.95)}
    at |= {} if cdf is None else {"cdf": cdf}
    return output({policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()}, 0.6)


@pytest.fixture(scope="module")
def results():
    outputs = {
        "synthetic/beta/0": hand_made((0.2, 0.5), (0.1, 0.4), (0.3, 0.1)),
        "synthetic/beta/1": hand_made((0.2, 0.7), (0.1, 0.4), (0.3, 0.1)),
        "synthetic/short/0": hand_made((0.2, 0.5), (0.1, 0.4)),
        "synthetic/short/1": hand_made((0.2, 0.6), (0.1, 0.4)),
        "synthetic/info_one/0": hand_made((0.1, 0.5), (0.2, 0.6)),
        "synthetic/info_one/1": hand_made((0.1, 0.5), (0.2, 0.6)),
    }
    return recall_at.results(Settings("small", 2, None), outputs)


def test_the_table_has_the_best_of_a_column_in_bold(results):
    table = results.tables[0]
    assert table.head == ("P/R", "k = 2", "k = 5", "k = 10", "k = 20")
    assert {row[0]: row[1] for row in table.rows} == {
        "BetaNCE: level, T tuned at these k": ".200/.550",
        "BetaNCE: level": ".200/**.600**",
        "BetaNCE: top k": ".100/.400",
        "BetaNCE: one cosine": ".050/.200",
        "BetaNCE: literal pEBR": "**.300**/.100",
        "BetaNCE: oracle": ".900/.950",
        "InfoNCE, query to item only: level": ".100/.500",
        "InfoNCE, query to item only: top k": ".200/**.600**",
        "InfoNCE, query to item only: one cosine": ".050/.200",
        "InfoNCE, query to item only: oracle": ".900/.950",
    }
    assert "at most .000 in precision and .141 in recall" in table.note


def test_figures_keep_every_seed(results):
    beta = results.figures["synthetic"]["beta"]
    assert beta["level_temperature"] == [0.6, 0.6]
    assert beta["policies"]["level"]["5"]["overall"]["recall"]["seeds"] == [0.5, 0.7]
    short = results.figures["synthetic"]["short"]
    assert short["level"]["5"]["overall"]["recall"]["seeds"] == [0.5, 0.6]
    assert "cdf" not in results.figures["synthetic"]["info_one"]["policies"]


def test_short_lists_are_shorter_in_the_small_corpus():
    assert recall_at.averages_of(SMALL, SYNTHETIC) == AVERAGES
    for scale, dataset in (("full", SYNTHETIC), ("full", GOODBOOKS), ("small", GOODBOOKS)):
        averages = recall_at.averages_of(Settings(scale), dataset)
        assert averages == (10, 20, 50, 100, 200)
