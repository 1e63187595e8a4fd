"""Whether the law of each query is true: transformed clicks, shares, recall and noise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.corpora import corpus, corpus_key
from experiments.law_measured import GROUPS, SAMPLED, SOURCES, measure_law, measure_unfamiliar
from experiments.measured import level_temperature_step, measured_with
from experiments.results import ExperimentResults, ResultTable
from experiments.seeds import plain, spread
from experiments.settings import ExperimentSettings
from experiments.step import Step
from experiments.study import study
from experiments.towers import tower_step
from pebr_tf.report.formats import DASH

TITLE = "Is the law of a query true?"
# Measure -> (title, bar overall, bar of a stratum).
MEASURES: dict[str, tuple[str, float | None, float | None]] = {
    "raw": ("KS distance of clicks to the law", 0.05, 0.06),
    "mapped": ("the same, with the one map", 0.02, 0.04),
    "share": ("mean |kept - expected| of a share", 0.01, 0.02),
    "recall": ("mean |measured - requested| of the recall", 0.015, None),
    "deciles": ("worst decile of the expected recall, of all seeds", 0.03, None),
    "deciles_floor": ("the same, if the law were true", None, None),
    "longest": ("longest list of query_at to the service's, at .9", 1.2, None),
    "empty": ("empty lists of query_at, at .5", 0.0, None),
    "behind": ("recall of query_at behind the probe's, worst k", 0.01, None),
    "test_flagged": ("test queries that are unfamiliar", 0.02, None),
    "reordered_flagged": ("the same, words in reverse order", None, None),
    "foreign_missed": ("queries of the other data set that are not unfamiliar", 0.05, None),
    "noise": ("noise share, fitted less true", 0.02, 0.02),
    "relevant": ("mean |kept - share| of truly relevant clicks", 0.02, 0.04),
    "relevant_worst": ("the same, worst share", None, None),
}


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The figures of each data set and seed, with towers as a release has them.

    Each seed holds out other clicks, so that means over seeds are less noisy than one split.
    """
    settings = replace(settings, as_released=True)
    return {
        f"{dataset}/{seed}": _step(replace(settings, split_seed=seed), dataset, seed)
        for dataset in settings.datasets
        for seed in range(settings.seeds)
    }


def _step(settings: ExperimentSettings, dataset: str, seed: int) -> Step:
    others = [each for each in settings.datasets if each != dataset]

    def compute(result: Mapping[str, Any], tuning: Mapping[str, Any]) -> dict[str, Any]:
        foreign = [query for other in others for query in corpus(settings, other).queries]
        found = measure_law(study(settings, dataset, result), tuning["level_temperature"])
        return found | measure_unfamiliar(corpus(settings, dataset), foreign)

    return Step(
        title=f"{dataset}, seed {seed}: the law",
        key={
            "experiment": "law",
            "config": measured_with(settings.config(dataset)),
            "others": [corpus_key(settings, other) for other in others],
        },
        sources=SOURCES,
        compute=compute,
        needs=(
            tower_step(settings, dataset, {}, seed),
            level_temperature_step(settings, dataset, {}, seed),
        ),
        cost=30 if settings.scale == "full" else 5,
    )


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """A table for each data set."""
    figures: dict[str, Any] = {"seeds": settings.seeds}
    tables, summary = [], []
    for dataset in settings.datasets:
        runs = [outputs[f"{dataset}/{seed}"] for seed in range(settings.seeds)]
        found = {
            name: {
                group: spread(abs(run[name][group]) for run in runs)
                for group in GROUPS
                if group in runs[0][name]
            }
            for name in MEASURES
            if name in runs[0] and name != "deciles"
        }
        found |= _deciles(runs)
        found = {name: found[name] for name in MEASURES if name in found}
        figures[dataset] = found
        tables.append(_table(dataset, found, settings.seeds))
        missed = [
            f"{MEASURES[name][0]}, {group} ({plain(each['mean'])})"
            for name, groups in found.items()
            for group, each in groups.items()
            if (bar := _bar(name, group)) is not None and each["mean"] > bar
        ]
        summary.append(f"{dataset}: bars missed: {'; '.join(missed) or 'none'}.")
    return ExperimentResults(TITLE, tuple(summary), figures, tuple(tables), ())


def _deciles(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The worst decile of the mean error over seeds, and what it would be by chance."""
    errors, drawn = (
        np.mean([run[name]["overall"] for run in runs], axis=0)
        for name in ("deciles", "drawn_deciles")
    )
    floor = np.mean(np.max(np.abs(drawn), axis=-1))
    return {
        "deciles": {"overall": spread([np.max(np.abs(errors))])},
        "deciles_floor": {"overall": spread([floor])},
    }


def _bar(name: str, group: str) -> float | None:
    _, overall, stratum = MEASURES[name]
    return overall if group == "overall" else stratum


def _table(dataset: str, found: Mapping[str, Any], seeds: int) -> ResultTable:
    def cell(name: str, group: str) -> str:
        if group not in found[name]:
            return DASH
        bar = _bar(name, group)
        mean = plain(found[name][group]["mean"])
        return mean if bar is None else f"{mean} (≤ {plain(bar)})"

    return ResultTable(
        f"{dataset}: the law on test queries",
        ("figure", *GROUPS),
        tuple((MEASURES[name][0], *(cell(name, group) for group in GROUPS)) for name in found),
        f"Mean of {seeds} seeds of towers and splits, absolute values; bars in parentheses. The "
        "law is fitted on calibrate clicks; every query weighs the same. The query model holds up "
        f"to {SAMPLED:,} items: in a smaller catalogue its level is exact, as is the probe's here.",
    )
