"""Recall of short lists: the policies at small averages (the paper's recall cut-offs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.kinds import KINDS
from experiments.measured import POLICIES, TITLES, measured_step
from experiments.plots import legend_below
from experiments.results import ExperimentResults, Plot, ResultTable
from experiments.seeds import (
    FiguresByPolicy,
    Row,
    gain,
    heads,
    mean,
    noise,
    over_seeds,
    plain,
    policy_table,
    printed,
    short_lists,
    signed,
    spread_tables,
)
from experiments.seeds_plots import draw_line
from experiments.settings import SYNTHETIC, ExperimentSettings
from experiments.step import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Recall of short lists"
DEFAULT = "beta"
COMPARED = (DEFAULT, "info_one")
# The default towers with the level temperature tuned at the averages that are measured.
SHORT = "short"
_AVERAGES = (10, 20, 50, 100, 200)
_SMALL_AVERAGES = (2, 5, 10, 20)
# The paper's table, with a transformer on its own logs.
_PAPER = {
    "BGE-topk": (0.9592, 0.9350, 0.8833),
    "BGE-score": (0.9352, 0.8598, 0.7344),
    "BGE-pEBR": (0.9691, 0.9589, 0.9226),
}


def averages_of(settings: ExperimentSettings, dataset: str) -> tuple[int, ...]:
    """Average items per query to measure at; the small synthetic corpus has shorter lists."""
    small = settings.scale == "small" and dataset == SYNTHETIC
    return _SMALL_AVERAGES if small else _AVERAGES


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The figures of each data set, kind and seed; the default also with its own T."""
    wanted = {}
    for dataset in settings.datasets:
        averages = averages_of(settings, dataset)
        for seed in range(settings.seeds):
            for kind in COMPARED:
                wanted[f"{dataset}/{kind}/{seed}"] = measured_step(
                    settings, dataset, KINDS[kind].changes, seed, averages=averages
                )
            for_short = {**KINDS[DEFAULT].changes, "evaluation.average_k": averages}
            wanted[f"{dataset}/{SHORT}/{seed}"] = measured_step(
                settings, dataset, for_short, seed, averages=averages
            )
    return wanted


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and plots of the figures."""
    figures: dict[str, Any] = {"seeds": settings.seeds, "paper": _PAPER}
    tables: list[ResultTable] = []
    details: list[ResultTable] = []
    plots, summary = [], []
    for dataset in settings.datasets:
        averages = averages_of(settings, dataset)
        runs = {
            kind: [outputs[f"{dataset}/{kind}/{seed}"] for seed in range(settings.seeds)]
            for kind in COMPARED
        }
        found = {kind: over_seeds(each) for kind, each in runs.items()}
        short = [outputs[f"{dataset}/{SHORT}/{seed}"] for seed in range(settings.seeds)]
        for_short = over_seeds(short)
        rows: list[Row] = [
            (f"{KINDS[DEFAULT].title}: level, T tuned at these k", "level", for_short),
            *(
                (f"{KINDS[kind].title}: {TITLES[policy]}", policy, found[kind])
                for kind in COMPARED
                for policy in POLICIES
                if policy in found[kind]
            ),
        ]
        figures[dataset] = {
            kind: {
                "policies": found[kind],
                "level_temperature": [run["level_temperature"] for run in runs[kind]],
            }
            for kind in COMPARED
        }
        figures[dataset][SHORT] = {
            "level": for_short["level"],
            "level_temperature": [run["level_temperature"] for run in short],
        }
        text = noise(rows, averages, settings.seeds) + short_lists(rows, averages)
        tables.append(_table(dataset, rows, averages, text))
        details += [*spread_tables(dataset, rows, averages, settings.seeds)]
        details.append(_empty(dataset, rows, averages))
        summary += [_summary(dataset, kind, runs[kind], found[kind], averages) for kind in COMPARED]
        summary.append(_summary(dataset, SHORT, short, for_short, averages))
        plots.append(_plot(dataset, found, averages))
    return ExperimentResults(
        TITLE, tuple(summary), figures, (*tables, *details, _paper_table()), tuple(plots)
    )


def _summary(
    dataset: str,
    kind: str,
    runs: list[dict[str, Any]],
    found: FiguresByPolicy,
    averages: tuple[int, ...],
) -> str:
    """What the level adds to top k, from the shortest lists to the longest."""
    ends = (averages[0], averages[-1])
    kept = " and ".join(
        f"{plain(mean(found, 'level', k, 'recall'))} at k = {k} "
        f"({signed(gain(runs, k, 'recall')['mean'])} to top k)"
        for k in ends
    )
    better = [
        sum(gain(runs, k, measure)["mean"] > 0 for k in averages)
        for measure in ("recall", "precision")
    ]
    title = f"{KINDS[DEFAULT].title}, T tuned at these k" if kind == SHORT else KINDS[kind].title
    return (
        f"{dataset}, {title}: the level keeps {kept} of the held-out clicks. It is "
        f"above top k in recall at {better[0]} and in precision at {better[1]} of "
        f"{len(averages)} averages."
    )


def _table(dataset: str, rows: Sequence[Row], averages: tuple[int, ...], text: str) -> ResultTable:
    return policy_table(
        f"{dataset}: precision and recall of short lists",
        rows,
        averages,
        "Held-out clicks of the test queries, every policy with k items per query on average; best "
        "of each column in bold, but for the oracle, which knows the clicks. The level's "
        "level temperature is tuned once for the towers, at the averages of the evaluation unless "
        "the row says "
        "otherwise." + text,
    )


def _empty(dataset: str, rows: Sequence[Row], averages: tuple[int, ...]) -> ResultTable:
    return ResultTable(
        f"{dataset}: share of queries that get nothing",
        ("empty lists", *heads(averages)),
        tuple(
            (name, *(plain(mean(found, policy, k, "empty")) for k in averages))
            for name, policy, found in rows
        ),
        "An empty list has precision 0. Served lists have a floor, which leaves none empty.",
    )


def _paper_table() -> ResultTable:
    return ResultTable(
        "The paper's recall at smaller k, from its own logs",
        ("recall", "k = 1,500", "k = 1,000", "k = 500"),
        tuple((name, *map(printed, row)) for name, row in _PAPER.items()),
    )


def _plot(dataset: str, found: Mapping[str, FiguresByPolicy], averages: tuple[int, ...]) -> Plot:
    kinds = " and ".join(KINDS[kind].title for kind in found)
    return Plot(
        f"recall-{dataset}",
        f"{dataset}: recall of short lists",
        f"Recall of the held-out clicks of {dataset} over the average number of items, for towers "
        f"trained with {kinds}. Bars are standard deviations, if there are several seeds.",
        lambda figure: _draw(figure, found, averages),
        (9.0, 4.2),
    )


def _draw(figure: Figure, found: Mapping[str, FiguresByPolicy], averages: tuple[int, ...]) -> None:
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (kind, policies) in zip(panels, found.items(), strict=True):
        for policy in POLICIES:
            if policy in policies:
                each = [policies[policy][str(k)]["overall"]["recall"] for k in averages]
                draw_line(axes, policy, averages, each, TITLES[policy])
        axes.set_title(KINDS[kind].title)
        axes.set_xlabel("items per query, average")
        axes.set_xscale("log")
        axes.set_xticks(averages, [str(k) for k in averages])
        axes.set_xticks([], minor=True)
    panels[0].set_ylabel("recall")
    legend_below(figure, panels[0], len(POLICIES))
