"""Every experiment on a tiny log, with shared towers: outputs, files and one figure each."""

import json
from importlib import import_module

import pytest
from experiment_runs import run_small

from experiments import EXPERIMENTS, comparison, plots
from experiments.kinds import KINDS
from experiments.writing import write_results


def level_at(outputs, step, k="15"):
    return outputs[step]["at"]["level"][k]["overall"]["recall"]


SANE = {
    "comparison": lambda outputs, figures: (
        outputs["synthetic/beta/0"]["at"]["clicks"]["top_k"]["15"]["overall"]["average"] == 15
    ),
    # The recall knob was calibrated on other queries of the same log.
    "cutoffs": lambda outputs, figures: all(
        recall > expected - 0.15
        for expected, recall in zip(
            figures["expected"], figures["policies"]["level"]["recall"], strict=True
        )
    ),
    "recall-at": lambda outputs, figures: (
        level_at(outputs, "synthetic/beta/0", "2") < level_at(outputs, "synthetic/beta/0", "20")
    ),
    "corpus-size": lambda outputs, figures: (
        len({level_at(outputs, f"synthetic/{share}/0") for share in ("1", "0.46", "0.23")}) == 3
    ),
    "losses": lambda outputs, figures: (
        "cdf" not in outputs["synthetic/info/0"]["at"] and "cdf" in outputs["synthetic/exp/0"]["at"]
    ),
    "ablation": lambda outputs, figures: (
        outputs["synthetic/cutoffs/0"]["at"]["tuned"]
        == outputs["synthetic/default/0"]["at"]["level"]
    ),
    "spheres": lambda outputs, figures: (
        [query["stratum"] for query in figures["queries"]] == ["head", "torso", "tail"]
    ),
    # The level sample is the whole catalogue, so that the level is that of the probe.
    "law": lambda outputs, figures: (
        figures["recall"]["overall"] < 0.1
        and figures["behind"]["overall"] == 0
        and figures["test_flagged"]["overall"] <= 0.05
        and "foreign_missed" not in figures
    ),
    "calibration": lambda outputs, figures: figures["ways"]["level"]["overall"]["error"][0] < 0.1,
    "first-run": lambda outputs, figures: (
        not any(bar["found"] for text, bar in figures["bars"].items() if text.startswith("Blessed"))
    ),
}


@pytest.mark.slow
def test_small_runs_of_all_experiments(tmp_path, monkeypatch):
    assert set(SANE) == set(EXPERIMENTS)
    # Kinds share their towers, for every policy is fitted to those of each kind.
    shared = {"info": KINDS["info_one"], "exp": KINDS["beta_one"]}
    monkeypatch.setattr(comparison, "KINDS", {**KINDS, **shared})
    # One of the two formats shows that a plot can be drawn.
    saved = plots._saved
    monkeypatch.setattr(
        plots, "_saved", lambda *of, **how: saved(*of, **how) if of[1] == "svg" else b""
    )
    for name, (module, _) in EXPERIMENTS.items():
        outputs, results = run_small(import_module(module), tmp_path / "cache")
        page = write_results(results, tmp_path / name)
        files = {path.name for path in page.parent.iterdir()}
        drawn = {f"{plot.name}.{end}" for plot in results.plots for end in ("svg", "png")}
        assert files == {"figures.json", "tables.md", "index.html", *drawn}
        figures = json.loads((page.parent / "figures.json").read_text("utf-8"))
        figures = figures.get("synthetic", figures)
        assert SANE[name](outputs, figures), name
