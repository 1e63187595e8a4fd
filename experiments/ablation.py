"""What each part of the method adds: one change at a time from the default."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.ablation_cutoffs import (
    LEVEL_TEMPERATURES,
    SAMPLE,
    SERVED,
    TUNED,
    cutoffs_step,
    level_temperature_name,
    probe_name,
)
from experiments.ablation_plots import changes_plot, level_temperatures_plot
from experiments.ablation_tables import (
    MEASURES,
    change_table,
    clear,
    level_table,
    level_temperature_table,
)
from experiments.ablation_variants import DEFAULT, variants_of
from experiments.measured import measured_step
from experiments.results import ExperimentResults, ResultTable
from experiments.seeds import FiguresByPolicy, mean, over_seeds, plain, signed, spread
from experiments.settings import ExperimentSettings
from experiments.step import Step

TITLE = "What each part of the method adds"
POLICIES = ("level", "top_k", "cdf")
_CUTOFFS = "cutoffs"


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The figures of each data set, variant and seed."""
    wanted = {}
    for dataset in settings.datasets:
        for seed in range(settings.seeds):
            for name, variant in variants_of(settings.scale).items():
                wanted[f"{dataset}/{name}/{seed}"] = measured_step(
                    settings, dataset, variant.changes, seed
                )
            wanted[f"{dataset}/{_CUTOFFS}/{seed}"] = cutoffs_step(settings, dataset, seed)
    return wanted


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and plots of the figures."""
    variants = {name: kind.title for name, kind in variants_of(settings.scale).items()}
    figures: dict[str, Any] = {"seeds": settings.seeds, "variants": variants}
    tables: list[ResultTable] = []
    plots, summary = [], []
    for dataset in settings.datasets:
        averages = settings.config(dataset).evaluation.average_k
        ends = (averages[0], averages[-1])

        def runs_of(name: str, dataset: str = dataset) -> list[dict[str, Any]]:
            return [outputs[f"{dataset}/{name}/{seed}"] for seed in range(settings.seeds)]

        found = {name: over_seeds(runs_of(name)) for name in variants}
        changes = {name: _changes(found[name], found[DEFAULT], ends) for name in variants}
        noise = _noise(found, ends)
        cutoffs, others = over_seeds(runs_of(_CUTOFFS)), runs_of(_CUTOFFS)
        figures[dataset] = {
            "towers": found,
            "less_default": changes,
            "standard_error": noise,
            "cutoffs": cutoffs,
            "levels": _levels(others),
            "level_temperature": {
                name: [run["level_temperature"] for run in runs_of(name)] for name in variants
            },
        }
        summary.append(_towers_summary(dataset, variants, changes, noise, ends))
        summary.append(_cutoffs_summary(dataset, cutoffs, averages))
        tables += [
            change_table(dataset, policy, variants, found, changes, noise, ends)
            for policy in POLICIES
        ]
        tables.append(level_temperature_table(dataset, cutoffs, found[DEFAULT], others, averages))
        tables.append(level_table(dataset, cutoffs, figures[dataset]["levels"], averages))
        titles = {name: title for name, title in variants.items() if name != DEFAULT}
        plots.append(changes_plot(dataset, ("level", "top_k"), titles, changes, ends))
        plots.append(changes_plot(dataset, ("cdf",), titles, changes, ends))
        plots.append(level_temperatures_plot(dataset, cutoffs, found[DEFAULT], averages))
    return ExperimentResults(TITLE, tuple(summary), figures, tuple(tables), tuple(plots))


def _changes(
    found: FiguresByPolicy, default: FiguresByPolicy, ends: Sequence[int]
) -> dict[str, Any]:
    """Policy to average to measure to `spread` of the differences to the default, seed by seed."""
    return {
        policy: {
            str(k): {
                measure: spread(
                    one - other
                    for one, other in zip(
                        found[policy][str(k)]["overall"][measure]["seeds"],
                        default[policy][str(k)]["overall"][measure]["seeds"],
                        strict=True,
                    )
                )
                for measure in MEASURES
            }
            for k in ends
        }
        for policy in POLICIES
        if policy in found
    }


def _noise(found: Mapping[str, FiguresByPolicy], ends: Sequence[int]) -> dict[str, Any]:
    """Policy to average to measure to the standard error of a difference of two means.

    The deviation of one training is pooled over all variants, as each has few seeds.
    """

    def error(policy: str, k: int, measure: str) -> float:
        each = [at[policy][str(k)]["overall"][measure] for at in found.values() if policy in at]
        pooled = np.mean([values["deviation"] ** 2 for values in each])
        return math.sqrt(2 * float(pooled) / len(each[0]["seeds"]))

    return {
        policy: {str(k): {measure: error(policy, k, measure) for measure in MEASURES} for k in ends}
        for policy in POLICIES
    }


def _levels(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Source of the level to `spread` of its error and of what it explains."""
    return {
        name: {part: spread(run[part][name] for run in runs) for part in ("error", "explained")}
        for name in runs[0]["error"]
    }


def _towers_summary(
    dataset: str,
    variants: Mapping[str, str],
    changes: Mapping[str, Any],
    noise: Mapping[str, Any],
    ends: Sequence[int],
) -> str:
    """What moves the level's recall."""
    sentences = []
    for k in ends:
        error = noise["level"][str(k)]["recall"]
        moved = {
            variants[name]: each["level"][str(k)]["recall"]["mean"]
            for name, each in changes.items()
            if name != DEFAULT
        }
        order = sorted(moved, key=lambda title: moved[title])
        beyond = [
            f"{title} {signed(moved[title])}" for title in order if clear(moved[title], error)
        ]
        told = f"{'; '.join(beyond)}" if beyond else "none"
        sentences.append(
            f"At k = {k} they are from {signed(moved[order[0]])} ({order[0]}) to "
            f"{signed(moved[order[-1]])} ({order[-1]})"
            + ("." if math.isnan(error) else f"; beyond twice their standard error: {told}.")
        )
    return f"{dataset}: differences of the level's recall to the default. {' '.join(sentences)}"


def _cutoffs_summary(dataset: str, found: FiguresByPolicy, averages: Sequence[int]) -> str:
    """How far the tuned level temperature is from the best, and other levels from the exact one."""

    def less(name: str, k: int) -> float:
        return mean(found, name, k, "recall") - mean(found, TUNED, k, "recall")

    best = max(
        less(level_temperature_name(level_temperature), k)
        for level_temperature in LEVEL_TEMPERATURES
        for k in averages
    )
    probed = max(abs(less(probe_name(*SERVED), k)) for k in averages)
    sample = ", ".join(f"{signed(less(SAMPLE, k))} at k = {k}" for k in averages)
    return (
        f"{dataset}, default towers: the best of {len(LEVEL_TEMPERATURES)} fixed "
        f"level temperatures is ahead of the "
        f"tuned one by {signed(best)} in recall at most. A probe of {SERVED[0]:,} and a sample of "
        f"{SERVED[1]:,} items change the recall by {plain(probed)} at most; the level from a "
        f"sample alone by {sample}."
    )
