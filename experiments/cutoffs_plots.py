"""Plots of the retrieved items: histograms by stratum, and averages by the share kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.cutoffs_measured import POLICIES, RECALLS, SHOWN
from experiments.plots import legend_below, line_style, thousands
from experiments.results import Plot
from pebr_tf.metrics.comparison import groups_of
from pebr_tf.metrics.strata import STRATA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Averages below are drawn as none.
_LOWEST = 0.3


def plots_of(dataset: str, found: dict[str, Any], runs: list[dict[str, Any]]) -> list[Plot]:
    """The plots of one data set.

    Args:
      dataset: Its name.
      found: Figures by policy.
      runs: What was measured, of each seed.
    """
    return [
        Plot(
            f"histogram-{dataset}",
            f"{dataset}: items per query",
            f"Test queries of {dataset} by their number of items, in head, torso and tail; the "
            f"dashed line is the median. Above, the calibrated level where a share of {SHOWN:g} "
            "is asked for; below, literal pEBR with the cut-off that gives the same average.",
            lambda figure: _draw_histograms(figure, runs),
            (9.0, 5.0),
        ),
        Plot(
            f"averages-{dataset}",
            f"{dataset}: average items by share kept",
            f"Average items per query of {dataset} by the share to keep, for head, torso and tail "
            "queries: the calibrated level, the level with one cut-off for all, and literal pEBR.",
            lambda figure: _draw_averages(figure, found),
            (9.0, 3.6),
        ),
    ]


def _draw_histograms(figure: Figure, runs: list[dict[str, Any]]) -> None:
    groups = groups_of(runs[0]["strata"])
    names = [name for name in STRATA if name in groups]
    at = RECALLS.index(SHOWN)
    rows = {
        f"level, asked {SHOWN:g}": [run["counts"]["level"][at] for run in runs],
        "literal pEBR, equal average": [run["equal_counts"] for run in runs],
    }
    panels = figure.subplots(2, len(names), sharex=True, sharey="col", squeeze=False)
    most = max(int(counts.max()) for row in rows.values() for counts in row)
    edges = np.concatenate([[0.5], np.geomspace(1, max(most, 2) + 1, 24)])
    for line, (title, row) in zip(panels, rows.items(), strict=True):
        for axes, name in zip(line, names, strict=True):
            counts = np.concatenate([each[groups[name]] for each in row])
            _draw_histogram(axes, counts, edges, line_style(name).colour)
        line[0].set_ylabel(f"{title}\nshare of queries")
    for name, first, last in zip(names, panels[0], panels[-1], strict=True):
        first.set_title(f"{name}, {groups[name].sum():,} queries")
        last.set_xlabel("items, none at the left end")


def _draw_histogram(axes: Axes, counts: np.ndarray, edges: np.ndarray, colour: str) -> None:
    shown = np.maximum(counts, edges[0])
    weights = np.full(len(shown), 1 / len(shown))
    axes.hist(shown, edges.tolist(), weights=weights, color=colour, alpha=0.85)
    middle = float(np.percentile(counts, 50, method="lower"))
    axes.axvline(max(middle, edges[0]), color="black", linewidth=1.2, linestyle=(0, (4, 2)))
    text = f"median {middle:,.0f}\nmean {counts.mean():,.0f}"
    # Where there is room: the bars stand on the other side.
    left = middle > np.sqrt(edges[0] * edges[-1])
    axes.annotate(
        text,
        (0.04 if left else 0.97, 0.95),
        xycoords="axes fraction",
        ha="left" if left else "right",
        va="top",
        fontsize=9,
    )
    axes.set_xscale("log")
    thousands(axes.xaxis)
    axes.grid(visible=False, axis="x")


def _draw_averages(figure: Figure, found: dict[str, Any]) -> None:
    panels = figure.subplots(1, len(POLICIES), sharey=True)
    for axes, (policy, title) in zip(panels, POLICIES.items(), strict=True):
        for name in STRATA:
            if name in found[policy]["average"]:
                means = found[policy]["average"][name]
                deviations = found[policy]["deviation"][name]
                axes.errorbar(
                    RECALLS, means, deviations, label=name, capsize=2, **line_style(name).line()
                )
        axes.set_title(title)
        axes.set_xlabel("share to keep")
        axes.set_yscale("log")
        axes.set_ylim(bottom=_LOWEST)
        thousands(axes.yaxis)
    panels[0].set_ylabel("items per query")
    legend_below(figure, panels[0])
