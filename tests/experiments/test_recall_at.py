"""Recall of short lists: tables, sentences and figures from hand-made outputs, and a small run."""

import pytest
from experiment_runs import SMALL, output, run_small

from experiments import recall_at
from experiments.plots import drawn
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


def test_the_summary_counts(results):
    beta, info, short = results.summary
    assert short.startswith("synthetic, BetaNCE, T tuned at these k: the level keeps .550 at k = 2")
    assert ".600 at k = 2 (+.200 to top k) and .600 at k = 20 (+.200 to top k)" in beta
    assert "in recall at 4 and in precision at 4 of 4 averages" in beta
    assert "(−.100 to top k)" in info
    assert "in recall at 0 and in precision at 0 of 4 averages" in info


def test_deviations_and_empty_lists_have_tables(results):
    by_title = {table.title: table for table in results.tables}
    recall = by_title["synthetic: recall, mean ± standard deviation over 2 seeds"]
    assert recall.rows[1][:2] == ("BetaNCE: level", ".600 ± .141")
    empty = by_title["synthetic: share of queries that get nothing"]
    assert all(cell == ".000" for row in empty.rows for cell in row[1:])
    paper = by_title["The paper's recall at smaller k, from its own logs"]
    assert paper.rows[-1] == ("BGE-pEBR", ".9691", ".9589", ".9226")


def test_figures_keep_every_seed(results):
    beta = results.figures["synthetic"]["beta"]
    assert beta["level_temperature"] == [0.6, 0.6]
    assert beta["policies"]["level"]["5"]["overall"]["recall"]["seeds"] == [0.5, 0.7]
    short = results.figures["synthetic"]["short"]
    assert short["level"]["5"]["overall"]["recall"]["seeds"] == [0.5, 0.6]
    assert "cdf" not in results.figures["synthetic"]["info_one"]["policies"]


def test_plots_can_be_drawn(results):
    (plot,) = results.plots
    assert plot.name == "recall-synthetic"
    assert drawn(plot)["png"].startswith(b"\x89PNG")


def test_short_lists_are_shorter_in_the_small_corpus():
    assert recall_at.averages_of(SMALL, SYNTHETIC) == AVERAGES
    for scale, dataset in (("full", SYNTHETIC), ("full", GOODBOOKS), ("small", GOODBOOKS)):
        averages = recall_at.averages_of(Settings(scale), dataset)
        assert averages == (10, 20, 50, 100, 200)


@pytest.mark.slow
def test_a_small_run(tmp_path_factory):
    outputs, results = run_small(recall_at, tmp_path_factory)
    assert set(outputs) == {"synthetic/beta/0", "synthetic/info_one/0", "synthetic/short/0"}
    for each in outputs.values():
        for k in map(str, AVERAGES):
            at = {policy: figures[k]["overall"] for policy, figures in each["at"].items()}
            assert at["top_k"]["average"] == int(k)
            assert at["level"]["average"] == pytest.approx(int(k), abs=0.05)
            assert all(figures["recall"] <= at["oracle"]["recall"] for figures in at.values())
        recalls = [each["at"]["level"][str(k)]["overall"]["recall"] for k in AVERAGES]
        assert recalls == sorted(recalls)
    assert "noise" in results.tables[0].note
    assert all(drawn(plot) for plot in results.plots)
