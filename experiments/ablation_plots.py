"""Plots of the ablation: differences to the default, and the level temperature as a dial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.ablation_cutoffs import LEVEL_TEMPERATURES, SAMPLE, TUNED, level_temperature_name
from experiments.measured import TITLES
from experiments.plots import MUTED, legend_below, line_style
from experiments.results import Plot
from experiments.seeds import FiguresByPolicy, mean
from experiments.seeds_plots import draw_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def changes_plot(
    dataset: str,
    policies: Sequence[str],
    titles: Mapping[str, str],
    changes: Mapping[str, Any],
    ends: Sequence[int],
) -> Plot:
    """What every change of the towers does to some policies.

    Args:
      dataset: Its name.
      policies: To draw; they share their scale.
      titles: Of the variants, without the default.
      changes: Variant to policy to average to measure to `spread`.
      ends: The averages.
    """
    named = " and ".join(TITLES[policy] for policy in policies)
    return Plot(
        f"changes-{policies[0].replace('_', '-')}-{dataset}",
        f"{dataset}: changes of {named}",
        f"Difference to the default towers in recall and precision of {named} on {dataset}, a row "
        "for each change. Bars are standard deviations, if there are several seeds.",
        lambda figure: _draw_changes(figure, policies, titles, changes, ends),
        (9.0, 2.4 + 0.5 * len(titles)),
    )


def level_temperatures_plot(
    dataset: str, cutoffs: FiguresByPolicy, default: FiguresByPolicy, averages: Sequence[int]
) -> Plot:
    """Precision over recall along the level temperatures.

    Args:
      dataset: Its name.
      cutoffs: Figures of the level_temperatures and of the head.
      default: Figures of the policies on the same towers.
      averages: A panel for each.
    """
    return Plot(
        f"level_temperatures-{dataset}",
        f"{dataset}: the level temperature as a dial",
        f"Precision over recall of the level on {dataset} along its level temperature T, with the "
        f"tuned T, "
        "the level from a sample, and top k, all with the same average number of items.",
        lambda figure: _draw_level_temperatures(figure, cutoffs, default, averages),
        (9.0, 3.6),
    )


def _draw_changes(
    figure: Figure,
    policies: Sequence[str],
    titles: Mapping[str, str],
    changes: Mapping[str, Any],
    ends: Sequence[int],
) -> None:
    # A variant without the policy has no row.
    names = [name for name in titles if any(policy in changes[name] for policy in policies)]
    panels = figure.subplots(len(ends), 2, sharey=True, sharex="col", squeeze=False)
    for line, k in zip(panels, ends, strict=True):
        for axes, measure in zip(line, ("recall", "precision"), strict=True):
            rows = [
                {
                    policy: changes[name][policy][str(k)][measure]
                    for policy in policies
                    if policy in changes[name]
                }
                for name in names
            ]
            axes.axvline(0, color=MUTED, linewidth=1.2)
            draw_points(axes, rows, {policy: TITLES[policy] for policy in policies})
            axes.set_title(f"{measure}, k = {k:,}")
            axes.locator_params(axis="x", nbins=6)
        line[0].set_yticks(range(len(names)), [titles[name] for name in names])
    for axes in panels[-1]:
        axes.set_xlabel("difference to the default")
    legend_below(figure, panels[0, 0])


def _draw_level_temperatures(
    figure: Figure, cutoffs: FiguresByPolicy, default: FiguresByPolicy, averages: Sequence[int]
) -> None:
    panels = figure.subplots(1, len(averages), squeeze=False)[0]
    for axes, k in zip(panels, averages, strict=True):
        names = [
            level_temperature_name(level_temperature) for level_temperature in LEVEL_TEMPERATURES
        ]
        points = [(mean(cutoffs, n, k, "recall"), mean(cutoffs, n, k, "precision")) for n in names]
        line = {**line_style("level").line(), "linewidth": 1.4, "markersize": 4}
        axes.plot(*zip(*points, strict=True), label="level by level temperature", **line)
        for level_temperature, point in zip(LEVEL_TEMPERATURES, points, strict=True):
            axes.annotate(
                f"{level_temperature:g}",
                point,
                (5, 5),
                textcoords="offset points",
                color=MUTED,
                fontsize=8.5,
            )
        _point(axes, "level", cutoffs, TUNED, k, "level, tuned T", 11)
        _point(axes, "level_sample", cutoffs, SAMPLE, k, "level from a sample", 8)
        _point(axes, "top_k", default, "top_k", k, TITLES["top_k"], 7)
        axes.set_title(f"k = {k:,}")
        axes.set_xlabel("recall")
        axes.margins(0.12)
        axes.locator_params(nbins=5)
    panels[0].set_ylabel("precision")
    legend_below(figure, panels[0])


def _point(
    axes: Axes, as_policy: str, found: FiguresByPolicy, name: str, k: int, label: str, size: float
) -> None:
    style = {**line_style(as_policy).line(), "linestyle": "none", "markersize": size}
    place = (mean(found, name, k, "recall"), mean(found, name, k, "precision"))
    axes.plot(*place, label=label, markerfacecolor="none", markeredgewidth=1.8, **style)
