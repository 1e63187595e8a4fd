"""Every loss with the same budget of steps, under the same policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.kinds import KINDS
from experiments.measured import TITLES, measured_step
from experiments.plots import MUTED, legend_below
from experiments.results import ExperimentResults, Plot, ResultTable
from experiments.seeds import (
    FiguresByPolicy,
    Row,
    mean,
    noise,
    over_seeds,
    pair,
    pairs_in_bold,
    plain,
    short_lists,
    spread_tables,
)
from experiments.seeds_plots import draw_points
from experiments.settings import ExperimentSettings
from experiments.step import Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Every loss with the same budget"
POLICIES = ("level", "top_k", "score", "cdf")
# A loss that never reaches this share of the best would press all others together in a plot.
_FAR = 0.5


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The figures of each data set, kind and seed."""
    return {
        f"{dataset}/{name}/{seed}": measured_step(settings, dataset, kind.changes, seed)
        for dataset in settings.datasets
        for name, kind in KINDS.items()
        for seed in range(settings.seeds)
    }


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and plots of the figures."""
    figures: dict[str, Any] = {"seeds": settings.seeds}
    tables: list[ResultTable] = []
    details: list[ResultTable] = []
    plots, summary = [], []
    for dataset in settings.datasets:
        averages = settings.config(dataset).evaluation.average_k
        runs = {
            kind: [outputs[f"{dataset}/{kind}/{seed}"] for seed in range(settings.seeds)]
            for kind in KINDS
        }
        found = {kind: over_seeds(each) for kind, each in runs.items()}
        figures[dataset] = {
            kind: {
                "policies": found[kind],
                "level_temperature": [run["level_temperature"] for run in runs[kind]],
            }
            for kind in KINDS
        }
        # The average in the middle, which the gates look at, is the one that is printed.
        middle = len(averages) // 2
        order = (averages[middle], *averages[:middle], *averages[middle + 1 :])
        tables += [_table(dataset, found, k, settings.seeds) for k in order]
        rows: list[Row] = [
            (f"{KINDS[kind].title}: {TITLES[policy]}", policy, found[kind])
            for kind in KINDS
            for policy in POLICIES
        ]
        details += spread_tables(dataset, rows, averages, settings.seeds)
        summary.append(_summary(dataset, found, averages[middle]))
        plots.append(_plot(dataset, found, averages))
    return ExperimentResults(TITLE, tuple(summary), figures, (*tables, *details), tuple(plots))


def _summary(dataset: str, found: Mapping[str, FiguresByPolicy], k: int) -> str:
    """Which loss is best under each policy, and what a policy adds to a loss."""
    best = []
    for policy in POLICIES:
        measured = {
            kind: mean(each, policy, k, "recall") for kind, each in found.items() if policy in each
        }
        first = max(measured, key=lambda kind: measured[kind])
        best.append(f"{plain(measured[first])} by {TITLES[policy]} ({KINDS[first].title})")
    both = sum(
        all(mean(each, "level", k, m) > mean(each, "top_k", k, m) for m in ("precision", "recall"))
        for each in found.values()
    )
    return (
        f"{dataset}, k = {k}: the best recall is {', '.join(best)}. The level is above top k in "
        f"both precision and recall on the towers of {both} of {len(found)} losses."
    )


def _table(dataset: str, found: Mapping[str, FiguresByPolicy], k: int, seeds: int) -> ResultTable:
    """Losses by policies at one average; bold within a policy."""
    columns = [
        pairs_in_bold([pair(each, policy, k) for each in found.values()]) for policy in POLICIES
    ]
    rows = [(KINDS[kind].title, policy, found[kind]) for kind in found for policy in POLICIES]
    named = [(f"{name} by {TITLES[policy]}", policy, each) for name, policy, each in rows]
    return ResultTable(
        f"{dataset}: precision and recall of every loss at k = {k:,}",
        ("P/R", *(TITLES[policy] for policy in POLICIES)),
        tuple(
            (KINDS[kind].title, *(column[place] for column in columns))
            for place, kind in enumerate(found)
        ),
        "Towers of the same size, trained with as many steps on the same clicks, each policy with "
        f"{k:,} items per query on average; best of each policy in bold. Without a temperature of "
        "each query, literal pEBR is one cosine."
        + noise(rows, (k,), seeds)
        + short_lists(named, (k,)),
    )


def _plot(dataset: str, found: Mapping[str, FiguresByPolicy], averages: tuple[int, ...]) -> Plot:
    return Plot(
        f"losses-{dataset}",
        f"{dataset}: every loss under every policy",
        f"Recall, above, and precision, below, of the held-out clicks of {dataset}, a row for "
        "each loss and a mark for each policy. Bars are standard deviations, if there are several "
        "seeds.",
        lambda figure: _draw(figure, found, averages),
        (9.0, 6.4),
    )


def _draw(figure: Figure, found: Mapping[str, FiguresByPolicy], averages: tuple[int, ...]) -> None:
    panels = figure.subplots(2, len(averages), sharey=True, squeeze=False)
    names = [KINDS[kind].title for kind in found]
    for line, measure in zip(panels, ("recall", "precision"), strict=True):
        for axes, k in zip(line, averages, strict=True):
            rows = [
                {
                    policy: at[policy][str(k)]["overall"][measure]
                    for policy in POLICIES
                    if policy in at
                }
                for at in found.values()
            ]
            _draw_rows(axes, rows)
            axes.set_title(f"{measure}, k = {k:,}")
            axes.locator_params(axis="x", nbins=5)
    panels[0, 0].set_yticks(range(len(names)), names)
    legend_below(figure, panels[0, 0])


def _draw_rows(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """A row for each loss; one far below the best, told in words."""
    highest = [max(each["mean"] for each in row.values()) for row in rows]
    near = [value >= _FAR * max(highest) for value in highest]
    shown = [row if close else {} for row, close in zip(rows, near, strict=True)]
    draw_points(axes, shown, {policy: TITLES[policy] for policy in POLICIES})
    for place, (value, close) in enumerate(zip(highest, near, strict=True)):
        if not close:
            axes.annotate(
                f"{plain(value)} at most",
                (0.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                color=MUTED,
                fontsize=8.5,
            )
