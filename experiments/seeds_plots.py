"""Lines and points of figures over seeds: the mean, and a bar as long as the deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.plots import line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Marks of one row stand this far apart, so that they lie on each other no more than they must.
_APART = 0.36


def draw_line(
    axes: Axes, policy: str, places: Sequence[float], each: Sequence[Mapping[str, Any]], label: str
) -> None:
    """Means at places; what is drawn first lies above.

    Args:
      axes: Where.
      policy: Which has its look.
      places: [P] on the x axis.
      each: A `spread` for each place.
      label: For the legend.
    """
    above = _above(axes)
    means, deviations = _columns(each)
    axes.plot(places, means, label=label, zorder=above, **line_style(policy).line())
    if deviations is not None:
        axes.errorbar(places, means, deviations, zorder=above, **_bars(policy))


def draw_points(
    axes: Axes, rows: Sequence[Mapping[str, Mapping[str, Any]]], labels: Mapping[str, str]
) -> None:
    """Means as points, a row for each thing that is compared, from above.

    Args:
      axes: Where; rows are counted from 0.
      rows: For each, policy to `spread`, where there is one.
      labels: For the legend; the policies to draw.
    """
    for number, (policy, label) in enumerate(labels.items()):
        shown = [place for place, row in enumerate(rows) if policy in row]
        means, deviations = _columns([rows[place][policy] for place in shown])
        beside = _APART * (number / max(len(labels) - 1, 1) - 0.5)
        places = [place + beside for place in shown]
        above, line = _above(axes), {**line_style(policy).line(), "linestyle": "none"}
        axes.plot(means, places, label=label, zorder=above, **line)
        if deviations is not None:
            axes.errorbar(means, places, xerr=deviations, zorder=above, **_bars(policy))
    axes.set_ylim(len(rows) - 0.5, -0.5)


def _columns(each: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[float] | None]:
    """Means, and deviations if there are several seeds."""
    deviations = [values["deviation"] for values in each]
    known = not any(map(math.isnan, deviations))
    return [values["mean"] for values in each], deviations if known else None


def _bars(policy: str) -> dict[str, Any]:
    return {"fmt": "none", "ecolor": line_style(policy).colour, "elinewidth": 1.2, "capsize": 2}


def _above(axes: Axes) -> float:
    return 10 - 0.1 * len(axes.lines)
