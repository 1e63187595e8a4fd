"""Precision and recall of every policy at equal average k (the paper's Table 1, and beyond it)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.comparison_bars import bars_of, closed, strongest_point
from experiments.comparison_measured import PROTOCOLS, SOURCES, measure
from experiments.comparison_plots import plots_of
from experiments.comparison_tables import (
    MAIN,
    bars_table,
    dial_table,
    kinds_table,
    main_table,
    own_recall_table,
    protocol_table,
    significance_table,
    strata_table,
)
from experiments.kinds import KINDS
from experiments.measured import measured_with
from experiments.results import ExperimentResults, ResultTable
from experiments.seeds import mean, over_seeds, plain, spread_tables
from experiments.settings import ExperimentSettings
from experiments.significance import compare
from experiments.step import Step
from experiments.study import study
from experiments.towers import tower_step

TITLE = "Precision and recall of every policy at equal average k"
# The towers that a release has, and those of the paper's baseline.
DEFAULT, DSSM = "beta", "info_one"
COMPARED = ("beta", "beta_one", "exp", "info", "info_one")


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """Every policy on the towers of each data set, kind and seed."""
    return {
        f"{dataset}/{kind}/{seed}": _step(settings, dataset, kind, seed)
        for dataset in settings.datasets
        for kind in COMPARED
        for seed in range(settings.seeds)
    }


def _step(settings: ExperimentSettings, dataset: str, kind: str, seed: int) -> Step:
    changes = dict(KINDS[kind].changes)
    config = settings.config(dataset).replace_all(changes)
    every = kind == DEFAULT
    return Step(
        title=f"{dataset}, {KINDS[kind].title}, seed {seed}: every policy",
        key={"experiment": "comparison", "config": measured_with(config), "every": every},
        sources=SOURCES,
        compute=lambda towers: measure(
            study(settings, dataset, towers, changes), every_protocol=every
        ),
        needs=(tower_step(settings, dataset, changes, seed),),
        cost=(90 if every else 45) if settings.scale == "full" else (8 if every else 4),
    )


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and plots of the figures."""
    figures: dict[str, Any] = {"seeds": settings.seeds}
    details: list[ResultTable] = []
    plots, summary = [], []
    for dataset in settings.datasets:
        runs = {
            kind: [outputs[f"{dataset}/{kind}/{seed}"] for seed in range(settings.seeds)]
            for kind in COMPARED
        }
        averages = settings.config(dataset).evaluation.average_k
        found = figures_of(runs, averages)
        figures[dataset] = found
        details += [strata_table(dataset, found, k) for k in averages]
        details.append(significance_table(dataset, found, averages))
        details.append(own_recall_table(dataset, found, averages))
        details.append(dial_table(dataset, found, averages))
        details += [
            protocol_table(dataset, found, name, averages)
            for name in PROTOCOLS
            if name != "clicks" and name in found["protocols"]
        ]
        details.append(kinds_table(dataset, found, averages))
        rows = [(title, policy, found["kinds"][kind]) for title, kind, policy in MAIN]
        details += spread_tables(dataset, rows, averages, settings.seeds)
        plots += plots_of(dataset, found, averages)
        summary.append(_summary(dataset, found, averages))
    bars = [bar for dataset in settings.datasets for bar in bars_of(dataset, figures[dataset])]
    figures["bars"] = bars
    tables = (main_table(settings, figures), bars_table(bars), *details)
    return ExperimentResults(TITLE, tuple(summary), figures, tables, tuple(plots))


def figures_of(
    runs: Mapping[str, list[dict[str, Any]]], averages: tuple[int, ...]
) -> dict[str, Any]:
    """Every figure of one data set.

    Returns:
      `averages`; `kinds`: kind to policy to average to group to measure to `seeds.spread`, against
      held-out clicks; `protocols`: the same by protocol, of the default towers;
      `level_temperature` by kind;
      `dial`, `own_recall` of the default towers, means over seeds; `significance`.
    """
    default = runs[DEFAULT]
    return {
        "averages": list(averages),
        "kinds": {
            kind: over_seeds([{"at": run["at"]["clicks"]} for run in each])
            for kind, each in runs.items()
        },
        "protocols": {
            name: over_seeds([{"at": run["at"][name]} for run in default])
            for name in default[0]["at"]
        },
        "level_temperature": {
            kind: [run["level_temperature"] for run in each] for kind, each in runs.items()
        },
        "dial": {
            "level_temperatures": default[0]["dial"]["level_temperatures"],
            "precision": np.mean([run["dial"]["precision"] for run in default], axis=0),
            "recall": np.mean([run["dial"]["recall"] for run in default], axis=0),
        },
        "own_recall": _own_recall(default),
        "significance": _significance(runs, averages),
    }


def _own_recall(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds; None where some seed does not reach the recall."""

    def mean_of(values: list[dict[str, float] | None]) -> dict[str, float] | None:
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return {name: float(np.mean([value[name] for value in known])) for name in known[0]}

    return {
        policy: {
            k: {
                name: mean_of([run["own_recall"][policy][k][name] for run in runs]) for name in ours
            }
            for k, ours in by_average.items()
        }
        for policy, by_average in runs[0]["own_recall"].items()
    }


def _significance(
    runs: Mapping[str, list[dict[str, Any]]], averages: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Paired bootstraps of our policies against top k, on the same towers and on the DSSM's."""
    entries = []
    for ours in ("level", "depth_law"):
        for kind in (DEFAULT, DSSM):
            for k in averages:
                for measured in ("precision", "recall"):
                    mine, theirs = (
                        np.stack([run["columns"][name][str(k)][measured] for run in runs[towers]])
                        for name, towers in ((ours, DEFAULT), ("top_k", kind))
                    )
                    found = compare(mine.astype(np.float64), theirs.astype(np.float64))
                    entry = {"ours": ours, "against": kind, "k": k, "measure": measured}
                    entries.append({**entry, **vars(found)})
    return entries


def _summary(dataset: str, found: Mapping[str, Any], averages: tuple[int, ...]) -> str:
    kinds = found["kinds"]
    at = []
    for place, k in enumerate(averages):
        level, fixed = (
            [mean(kinds[DEFAULT], name, k, m) for m in ("precision", "recall")]
            for name in ("level", "top_k")
        )
        ratio, level_temperature = strongest_point(found, place)
        at.append(
            f"at k = {k:,} the level has a precision of {plain(level[0])} and a recall of "
            f"{plain(level[1])} where top k has {plain(fixed[0])} and {plain(fixed[1])}, and goes "
            f"{closed(kinds[DEFAULT], 'level', k):.0%} of top k's way to the oracle's recall (the "
            f"depth law {closed(kinds[DEFAULT], 'depth_law', k):.0%})"
            + (
                f"; with T = {level_temperature:g} it is {ratio:.2f} times as precise as top k "
                f"with no less "
                "recall"
                if level_temperature is not None
                else ""
            )
        )
    return f"{dataset}: {'; '.join(at)}."
