"""Plots of the recall knob: reliability before and after calibration, and coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.calibration_measured import REQUESTED, WAYS
from experiments.plots import INK, MUTED, legend_below, line_style
from experiments.results import Plot
from pebr_tf.report.formats import change

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = {**{way: line_style(way) for way in WAYS}, "level_one_map": line_style("level_sample")}
_BAND = (5, 95)
_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9)


def plots_of(dataset: str, found: dict[str, Any]) -> list[Plot]:
    """The plots of one data set.

    Args:
      dataset: Its name.
      found: Its figures.
    """
    return [
        Plot(
            f"reliability-{dataset}",
            f"{dataset}: what the recall knob keeps",
            f"Share of the held-out clicks of the test queries of {dataset} that lists keep, by "
            "the share that was asked for, overall and by stratum: two raw laws, and the level "
            "calibrated with one map and with one per stratum, as served. Bars are the standard "
            "deviation over seeds. The dotted line is the recall that the calibration expects: the "
            "share asked for, until no list can be long enough.",
            lambda figure: _draw_reliability(figure, found),
            (10.0, 3.9),
        ),
        Plot(
            f"coverage-{dataset}",
            f"{dataset}: coverage over random halves",
            f"Share kept less the share asked for, when a random half of the held-out queries of "
            f"{dataset} calibrates and the other half tests: the mean, which conformal risk "
            f"control guarantees to be at least 0, and from {_BAND[0]}% to {_BAND[1]}% of "
            "the draws. Shares that some half cannot reach are left out.",
            lambda figure: _draw_coverage(figure, found["coverage"]),
            (10.0, 3.3),
        ),
    ]


def _draw_reliability(figure: Figure, found: dict[str, Any]) -> None:
    groups = list(found["queries"])
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, groups, strict=True):
        axes.plot((0.45, 1), (0.45, 1), color=MUTED, linewidth=0.8, label="kept = asked")
        for way, title in WAYS.items():
            each = found["ways"][way][name]
            axes.errorbar(
                REQUESTED,
                each["recall"],
                each["deviation"],
                label=title,
                capsize=2,
                markersize=4,
                **_STYLES[way].line(),
            )
        axes.plot(
            REQUESTED,
            found["ways"]["level"][name]["expected"],
            color=INK,
            linestyle=(0, (1, 1.2)),
            linewidth=1.4,
            zorder=5,
            label="expected",
        )
        _title(axes, name, found["queries"][name])
        axes.set_xlabel("share asked for")
        axes.set(xlim=(0.47, 0.98), ylim=(-0.03, 1.03), xticks=_TICKS)
    panels[0].set_ylabel("share of clicks kept")
    legend_below(figure, panels[0], 6)


def _draw_coverage(figure: Figure, found: dict[str, Any]) -> None:
    panels = figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (name, each) in zip(panels, found.items(), strict=True):
        reached = each["reached"]
        shares = np.array(REQUESTED)[reached]
        low, high = (np.array(each[f"p{percent}"])[reached] for percent in _BAND)
        colour = line_style(name).colour
        axes.axhline(0, color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axes.fill_between(shares, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(shares, np.array(each["mean"])[reached], markersize=4, **line_style(name).line())
        _title(axes, name, each["queries"])
        axes.set_xlabel("share asked for")
        axes.set(xlim=(0.47, 0.98), xticks=_TICKS)
    panels[0].set_ylabel("kept less asked")
    panels[0].yaxis.set_major_formatter(lambda value, _: change(f"{value:.2f}"))


def _title(axes: Axes, name: str, queries: int) -> None:
    axes.set_title(f"{'all' if name == 'overall' else name}, {queries:,} queries")
