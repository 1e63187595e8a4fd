"""Towers from a part of the training log: does the gain persist? (the paper's corpus sizes)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments.kinds import KINDS
from experiments.measured import POLICIES, TITLES, measured_step
from experiments.plots import legend_below, line_style
from experiments.results import ExperimentResults, Plot, ResultTable
from experiments.seeds import (
    FiguresByPolicy,
    Row,
    gain,
    heads,
    noise,
    over_seeds,
    pair,
    pairs_in_bold,
    printed,
    short_lists,
    signed,
    signed_plus_minus,
    spread_tables,
)
from experiments.seeds_plots import draw_line
from experiments.settings import ExperimentSettings
from experiments.step import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Towers from 100%, 46% and 23% of the logs"
# As the paper's 87, 40 and 20 million clicks.
SHARES = (1.0, 0.46, 0.23)
_KIND = KINDS["beta"]
_GAINS = ("level", "cdf")
# The paper's recall with 1,500 items, with a transformer on its own logs.
_PAPER = {
    "BGE-topk": (0.9592, 0.9535, 0.9482),
    "BGE-score": (0.9352, 0.9153, 0.9102),
    "BGE-pEBR": (0.9691, 0.9672, 0.9524),
}


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The figures of each data set, share of the log and seed."""
    return {
        f"{dataset}/{share:g}/{seed}": measured_step(settings, dataset, _KIND.changes, seed, share)
        for dataset in settings.datasets
        for share in SHARES
        for seed in range(settings.seeds)
    }


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and plots of the figures."""
    figures: dict[str, Any] = {"seeds": settings.seeds, "shares": list(SHARES), "paper": _PAPER}
    tables: list[ResultTable] = []
    details: list[ResultTable] = []
    plots, summary = [], []
    for dataset in settings.datasets:
        averages = settings.config(dataset).evaluation.average_k
        runs = {
            share: [outputs[f"{dataset}/{share:g}/{seed}"] for seed in range(settings.seeds)]
            for share in SHARES
        }
        found = {share: over_seeds(each) for share, each in runs.items()}
        gains = {
            share: {
                policy: {
                    str(k): {
                        measure: gain(each, k, measure, policy)
                        for measure in ("precision", "recall")
                    }
                    for k in averages
                }
                for policy in _GAINS
            }
            for share, each in runs.items()
        }
        figures[dataset] = {
            f"{share:g}": {
                "policies": found[share],
                "gain_over_top_k": gains[share],
                "level_temperature": [run["level_temperature"] for run in runs[share]],
            }
            for share in SHARES
        }
        rows: list[Row] = [
            (f"{share:.0%}: {TITLES[policy]}", policy, found[share])
            for share in SHARES
            for policy in POLICIES
        ]
        text = noise(rows, averages, settings.seeds) + short_lists(rows, averages)
        tables.append(_table(dataset, found, averages, text))
        details.append(_gain_table(dataset, gains, averages))
        details += spread_tables(dataset, rows, averages, settings.seeds)
        summary.append(_summary(dataset, gains, averages))
        plots.append(_plot(dataset, found, gains, averages))
    return ExperimentResults(
        TITLE, tuple(summary), figures, (*tables, *details, _paper_table()), tuple(plots)
    )


def _summary(dataset: str, gains: Mapping[float, Any], averages: tuple[int, ...]) -> str:
    """Whether the level's gain over top k is there with every share of the log."""
    sentences = []
    for k in averages:
        text = ", ".join(
            f"{signed(gains[share]['level'][str(k)]['recall']['mean'])} from {share:.0%}"
            for share in SHARES
        )
        sentences.append(f"{text} at k = {k}")
    cases = [gains[share]["level"][str(k)] for share in SHARES for k in averages]
    above = {
        measure: sum(case[measure]["mean"] > 0 for case in cases)
        for measure in ("recall", "precision")
    }
    return (
        f"{dataset}: the level's recall less that of top k, by the share of the log that the "
        f"towers were trained on: {'; '.join(sentences)}. Recall is above top k's in "
        f"{above['recall']}, precision in {above['precision']} of {len(cases)} cases."
    )


def _table(
    dataset: str, found: Mapping[float, FiguresByPolicy], averages: tuple[int, ...], text: str
) -> ResultTable:
    """Every policy with every share; bold within a share."""
    compared = [policy != "oracle" for policy in POLICIES]
    rows = []
    for share in SHARES:
        columns = [
            pairs_in_bold([pair(found[share], policy, k) for policy in POLICIES], compared)
            for k in averages
        ]
        rows += [
            (f"{share:.0%}: {TITLES[policy]}", *(column[place] for column in columns))
            for place, policy in enumerate(POLICIES)
        ]
    return ResultTable(
        f"{dataset}: precision and recall by share of the training log",
        ("P/R", *heads(averages)),
        tuple(rows),
        "Towers see a random part of the training rows, in as many steps; test queries, held-out "
        "clicks, strata and vocabulary are those of the whole log. Every policy has k items a "
        "query on average; best of each share in bold, but for the oracle, which knows the clicks."
        + text,
    )


def _gain_table(dataset: str, gains: Mapping[float, Any], averages: tuple[int, ...]) -> ResultTable:
    return ResultTable(
        f"{dataset}: gain over top k on the same towers",
        ("less top k", *heads(averages)),
        tuple(
            (
                f"{share:.0%}: {TITLES[policy]}, {measure}",
                *(signed_plus_minus(gains[share][policy][str(k)][measure]) for k in averages),
            )
            for policy in _GAINS
            for measure in ("recall", "precision")
            for share in SHARES
        ),
        "Mean and standard deviation over seeds of the difference on each seed's towers.",
    )


def _paper_table() -> ResultTable:
    return ResultTable(
        "The paper's recall with 1,500 items, from its own logs",
        ("recall", "87M", "40M", "20M"),
        tuple((name, *map(printed, row)) for name, row in _PAPER.items()),
    )


def _plot(
    dataset: str,
    found: Mapping[float, FiguresByPolicy],
    gains: Mapping[float, Any],
    averages: tuple[int, ...],
) -> Plot:
    return Plot(
        f"corpus-size-{dataset}",
        f"{dataset}: recall by share of the training log",
        f"Above, recall of the held-out clicks of {dataset} by the share of the training log that "
        "the towers were trained on; below, what the level and literal pEBR add to the recall of "
        "top k on the same towers. Bars are standard deviations, if there are several seeds.",
        lambda figure: _draw(figure, found, gains, averages),
        (9.0, 5.6),
    )


def _draw(
    figure: Figure,
    found: Mapping[float, FiguresByPolicy],
    gains: Mapping[float, Any],
    averages: tuple[int, ...],
) -> None:
    panels = figure.subplots(2, len(averages), sharex=True, squeeze=False, height_ratios=(3, 2))
    for (above, below), k in zip(panels.T, averages, strict=True):
        for policy in POLICIES:
            each = [found[share][policy][str(k)]["overall"]["recall"] for share in SHARES]
            draw_line(above, policy, SHARES, each, TITLES[policy])
        for policy in _GAINS:
            each = [gains[share][policy][str(k)]["recall"] for share in SHARES]
            draw_line(below, policy, SHARES, each, TITLES[policy])
        below.axhline(
            0, color=line_style("top_k").colour, linewidth=1.2, linestyle=line_style("top_k").dash
        )
        below.sharey(panels[1, 0])
        above.set_title(f"k = {k:,}")
        below.set_xscale("log")
        below.set_xticks(SHARES, [f"{share:.0%}" for share in SHARES])
        below.set_xticks([], minor=True)
        below.set_xlabel("share of the training log")
    panels[0, 0].set_ylabel("recall")
    panels[1, 0].set_ylabel("recall less top k's")
    legend_below(figure, panels[0, 0], len(POLICIES))
