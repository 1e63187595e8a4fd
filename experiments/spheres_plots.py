"""Spheres: the items of a query among all others, seen from where the query is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.cutoffs_measured import SHOWN
from experiments.plots import INK, MUTED, line_style, literal
from experiments.results import Plot
from pebr_tf.report.formats import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STAR, _BACKGROUND, _LINES = "#ffd21f", "#a9b0b8", "#7d868f"
# Greys of the ball from the shadow to where the light falls, and that place.
_SHADES = np.linspace(0.89, 1.0, 15)
_LIGHT = (-0.36, 0.42)
_MERIDIANS, _PARALLELS, _STEPS = 12, 5, 49


def plot_of(dataset: str, found: dict[str, Any]) -> Plot:
    """The plot of one data set.

    Args:
      dataset: Its name.
      found: What was measured.
    """
    names = ", ".join(f"“{query['text']}” ({query['stratum']})" for query in found["queries"])
    return Plot(
        f"spheres-{dataset}",
        f"{dataset}: where the items of three queries are",
        f"Items of {dataset} for {names}, on a sphere that is turned so that the query, a star, "
        "and its list are in front; what is on the far side is pale. Above, the lists of the "
        f"calibrated level where a share of {SHOWN:g} is asked for; below, top k with the same "
        "average over all test queries. A dark rim is a held-out click that the list has, a cross "
        "one that it misses. Grey items are a sample of the others in front. t-SNE to three "
        "dimensions, then to length 1: near is alike, far says little.",
        lambda figure: _draw(figure, found),
        (9.2, 7.0),
    )


def facing(direction: np.ndarray) -> np.ndarray:
    """[3, 3] a rotation after which `direction` [3] points to the reader.

    A rotated point is (right, up, towards the reader).
    """
    front = direction / np.linalg.norm(direction)
    # The axis that is least along the view, so that their product is far from none.
    pole = np.eye(3)[np.argmin(np.abs(front))]
    right = np.cross(pole, front)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(front, right), front])


def _draw(figure: Figure, found: dict[str, Any]) -> None:
    queries = found["queries"]
    panels = figure.subplots(2, len(queries), squeeze=False)
    rows = (f"level, {SHOWN:g} asked", f"top {found['top_k']:,}")
    for line, (title, way) in zip(panels, zip(rows, ("", "fixed_"), strict=True), strict=True):
        for axes, query, star in zip(line, queries, found["query_points"], strict=True):
            _draw_sphere(axes, found, query, star, way)
        line[0].annotate(
            title,
            (-0.06, 0.5),
            xycoords="axes fraction",
            rotation=90,
            ha="center",
            va="center",
            fontweight="bold",
        )
    for axes, query in zip(panels[0], queries, strict=True):
        axes.set_title(f"{query['stratum']}: “{literal(query['text'])}”", loc="center")
    _legend(figure, [query["stratum"] for query in queries])


def _draw_sphere(
    axes: Axes, found: dict[str, Any], query: dict[str, Any], star: np.ndarray, way: str
) -> None:
    size = query["fixed" if way else "count"]
    inside = np.isin(found["places"], query["items"][:size])
    # Both lists are seen from one place: before the query and the middle of the level's items.
    ours = np.isin(found["places"], query["items"][: query["count"]])
    rotation = facing(star + _middle(found["points"][ours]))
    points = found["points"] @ rotation.T
    clicked = np.isin(found["places"], query["clicked"])
    colour = line_style(query["stratum"]).colour
    _draw_ball(axes)
    others = points[~inside & ~clicked]
    # Soft rims of thousands of grey points would be most of the file; those behind only blur.
    _scatter(axes, others[others[:, 2] > 0], _BACKGROUND, 2.2, (0.15, 0.6), antialiased=False)
    _scatter(axes, points[inside & ~clicked], colour, 8, (0.18, 0.8))
    _scatter(axes, points[clicked & ~inside], MUTED, 9, (0.25, 0.95), marker="x", linewidths=0.8)
    _scatter(axes, points[clicked & inside], colour, 17, (0.30, 1), edgecolors=INK, linewidths=0.9)
    right, up, _ = rotation @ star
    axes.scatter(
        right, up, s=190, marker="*", color=_STAR, edgecolors=INK, linewidths=1.0, zorder=9
    )
    kept = f"{query[f'{way}kept']} of {len(query['clicked'])} held-out clicks"
    axes.annotate(
        f"{count(size)} item{'' if size == 1 else 's'}, {kept}",
        (0.5, -0.015),
        xycoords="axes fraction",
        ha="center",
        va="top",
        fontsize=9,
        color=MUTED,
    )
    axes.set(xlim=(-1.04, 1.04), ylim=(-1.04, 1.04), aspect="equal")
    axes.axis("off")


def _middle(points: np.ndarray) -> np.ndarray:
    """[3] the direction of the mean of points [P, 3]; nothing if they have none."""
    mean = points.sum(axis=0)
    length = np.linalg.norm(mean)
    return mean / length if length > 1e-6 else np.zeros(3)


def _draw_ball(axes: Axes) -> None:
    """A lit disc with the meridians and parallels of its near side."""
    from matplotlib.patches import Circle

    # Circles that shrink towards the light, each hardly lighter than the last, are a gradient that
    # takes little space in the SVG.
    for place, shade in enumerate(_SHADES):
        done = place / len(_SHADES)
        centre = (_LIGHT[0] * done, _LIGHT[1] * done)
        radius = 1 - done * (1 - 0.05)
        axes.add_patch(Circle(centre, radius, color=str(shade), linewidth=0, zorder=0))
    for line in _graticule():
        near = np.where(line[:, 2:] >= 0, line[:, :2], np.nan)
        axes.plot(*near.T, color=_LINES, linewidth=0.5, alpha=0.32, zorder=1)
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor="#8a9097", linewidth=0.9, zorder=4))


def _graticule() -> list[np.ndarray]:
    """[_STEPS, 3] lines of a globe whose north leans towards the reader."""
    around = np.linspace(0, 2 * np.pi, _STEPS)
    lean = np.radians(22)
    tilt = np.array([[1, 0, 0], [0, np.cos(lean), -np.sin(lean)], [0, np.sin(lean), np.cos(lean)]])
    lines = []
    for angle in np.arange(_MERIDIANS // 2) * 2 * np.pi / _MERIDIANS:
        across = np.sin(around)
        line = [across * np.sin(angle), np.cos(around), across * np.cos(angle)]
        lines.append(np.stack(line, axis=1) @ tilt.T)
    for angle in np.linspace(-np.pi / 2, np.pi / 2, _PARALLELS + 2)[1:-1]:
        ring = np.cos(angle)
        line = [ring * np.sin(around), np.full(_STEPS, np.sin(angle)), ring * np.cos(around)]
        lines.append(np.stack(line, axis=1) @ tilt.T)
    return lines


def _scatter(
    axes: Axes,
    points: np.ndarray,
    colour: str,
    size: float,
    alphas: tuple[float, float],
    **options: Any,
) -> None:
    """Points, those of the far side first, smaller and paler.

    Args:
      axes: Where.
      points: [P, 3] rotated.
      colour: Of all.
      size: Of the nearest, square points.
      alphas: Of the farthest and of the nearest.
      **options: Of `Axes.scatter`.
    """
    if not len(points):
        return
    points = points[np.argsort(points[:, 2], kind="stable")]
    # In steps, which a picture is smaller with.
    near = np.round(2 * (points[:, 2] + 1)) / 4
    options = {"linewidths": 0} | options
    axes.scatter(
        points[:, 0],
        points[:, 1],
        s=size * (0.55 + 0.45 * near),
        alpha=alphas[0] + (alphas[1] - alphas[0]) * near**1.5,
        color=colour,
        # Thousands of points are a picture in the SVG, else the page has megabytes.
        rasterized=True,
        zorder=3,
        **options,
    )


def _legend(figure: Figure, strata: list[str]) -> None:
    from matplotlib.lines import Line2D

    def mark(label: str, **look_of: Any) -> Line2D:
        return Line2D([], [], linestyle="", label=label, **look_of)

    marks = [
        mark("query", marker="*", color=_STAR, markeredgecolor=INK, markersize=12),
        *(
            mark(f"retrieved, {name}", marker="o", color=line_style(name).colour, markersize=4.5)
            for name in strata
        ),
        mark("held-out click, retrieved", marker="o", color="white", markeredgecolor=INK),
        mark("held-out click, missed", marker="x", color=MUTED, markersize=4.5),
        mark("other items", marker="o", color=_BACKGROUND, markersize=3),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=4)
