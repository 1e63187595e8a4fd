"""Whether the law of each query is true: transformed clicks, shares, recall and noise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.corpora import corpus, corpus_key
from experiments.law_measured import (
    DRAWS,
    GROUPS,
    SOURCES,
    distance_to_uniform,
    groups_of,
    measure_law,
    measure_unfamiliar,
)
from experiments.measured import level_temperature_step, measured_with
from experiments.results import ExperimentResults, ResultTable
from experiments.seeds import plain
from experiments.settings import ExperimentSettings
from experiments.step import Step
from experiments.study import study
from experiments.towers import tower_step
from pebr_tf.config.retrieval import MOST_SAMPLED
from pebr_tf.report.formats import DASH

TITLE = "Is the law of a query true?"
# Measure -> (title, bar overall, bar of a stratum).
MEASURES: dict[str, tuple[str, float | None, float | None]] = {
    "raw": ("KS distance of clicks to the law", 0.05, 0.06),
    "raw_seed": ("the same, of one seed", None, None),
    "mapped": ("the same, with the one map", 0.02, 0.04),
    "mapped_seed": ("the same, of one seed", None, None),
    "uniform": ("the same, if the law were true", None, None),
    "share": ("mean |kept - expected| of a share", 0.01, 0.02),
    "share_seed": ("the same, of one seed", None, None),
    "recall": ("mean |measured - requested| of the recall", 0.015, None),
    "deciles": ("worst decile of the expected recall", 0.03, None),
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
Figures = dict[str, dict[str, float]]


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The figures of each data set and seed, with towers as a release has them.

    Each seed holds out other clicks, so that seeds together are less noisy than one split.
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
        found = _figures(runs)
        figures[dataset] = found
        tables.append(_table(dataset, found, settings.seeds))
        missed = [
            f"{MEASURES[name][0]}, {group} ({plain(each)})"
            for name, groups in found.items()
            for group, each in groups.items()
            if (bar := _bar(name, group)) is not None and each > bar
        ]
        summary.append(f"{dataset}: bars missed: {'; '.join(missed) or 'none'}.")
    return ExperimentResults(TITLE, tuple(summary), figures, tuple(tables), ())


def _figures(runs: Sequence[Mapping[str, Any]]) -> Figures:
    """Measure to group to figure.

    An error is averaged over seeds before its absolute value is taken, and clicks of all seeds are
    compared with the law together: a split has so few head queries that its own figures are mostly
    chance. Those of one seed are stated beside them.
    """
    found: Figures = {}
    clicks = [{name: run[name] for name in ("raw", "mapped", "weights", "strata")} for run in runs]
    together = {name: np.concatenate([each[name] for each in clicks]) for name in clicks[0]}
    generator = np.random.default_rng(0)
    for name in ("raw", "mapped"):
        found[name] = _distances(together, name)
        found[f"{name}_seed"] = _mean([_distances(each, name) for each in clicks])
    drawn = generator.random((DRAWS, len(together["raw"])))
    found["uniform"] = _mean([_distances({**together, "raw": each}, "raw") for each in drawn])
    for name in MEASURES:
        if name in found or name not in runs[0]:
            continue
        errors = {
            group: np.mean([run[name][group] for run in runs], axis=0) for group in runs[0][name]
        }
        found[name] = {group: float(np.mean(np.abs(each))) for group, each in errors.items()}
        if name == "relevant":
            found["relevant_worst"] = {
                group: float(np.max(np.abs(each))) for group, each in errors.items()
            }
    found["share_seed"] = _mean(
        [
            {group: float(np.mean(np.abs(each))) for group, each in run["share"].items()}
            for run in runs
        ]
    )
    errors, drawn = (
        np.mean([run[name]["overall"] for run in runs], axis=0)
        for name in ("deciles", "drawn_deciles")
    )
    found["deciles"] = {"overall": float(np.max(np.abs(errors)))}
    found["deciles_floor"] = {"overall": float(np.mean(np.max(np.abs(drawn), axis=-1)))}
    return {name: found[name] for name in MEASURES if name in found}


def _distances(clicks: Mapping[str, np.ndarray], name: str) -> dict[str, float]:
    return {
        group: distance_to_uniform(clicks[name][chosen], clicks["weights"][chosen])
        for group, chosen in groups_of(clicks["strata"]).items()
    }


def _mean(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {group: float(np.mean([run[group] for run in runs])) for group in runs[0]}


def _bar(name: str, group: str) -> float | None:
    _, overall, stratum = MEASURES[name]
    return overall if group == "overall" else stratum


def _table(dataset: str, found: Figures, seeds: int) -> ResultTable:
    def cell(name: str, group: str) -> str:
        if group not in found[name]:
            return DASH
        bar = _bar(name, group)
        figure = plain(found[name][group])
        return figure if bar is None else f"{figure} (≤ {plain(bar)})"

    return ResultTable(
        f"{dataset}: the law on test queries",
        ("figure", *GROUPS),
        tuple((MEASURES[name][0], *(cell(name, group) for group in GROUPS)) for name in found),
        f"{seeds} seeds of towers and splits; errors are averaged over them, and clicks compared "
        "together; bars in parentheses. The law is fitted on calibrate clicks; every query weighs "
        f"the same. The query model holds up to {MOST_SAMPLED:,} items: in a smaller catalogue its "
        "level is exact, as is the probe's here.",
    )
