"""The frontier of the comparison: precision over recall at an equal average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.plots import MUTED, line_style
from experiments.results import Plot
from experiments.seeds import mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Kind of towers, policy, and the name beside its mark.
_POINTS = (
    ("beta", "top_k", "top k"),
    ("beta", "score", "one cosine for all"),
    ("beta", "gap", "gap to the best"),
    ("beta", "cdf", "literal pEBR, symmetric loss"),
    ("beta_one", "cdf", "literal pEBR"),
    ("beta", "nucleus", "nucleus"),
    ("beta", "adapter", "cosine adapter"),
    ("beta", "corpus_law", "corpus law"),
    ("beta", "fitted_law", "fitted law"),
    ("beta", "rank_quantile", "rank quantile"),
    ("beta", "depth_law", "learnt depth law"),
    ("info_one", "top_k", "DSSM, top k"),
)
# Level temperatures that are named on the dial.
_NAMED = (0.0, 0.6, 1.0)


def plots_of(dataset: str, figures: Mapping[str, Any], averages: Sequence[int]) -> list[Plot]:
    """The plots of one data set."""
    return [
        Plot(
            f"frontier-{dataset}",
            f"{dataset}: precision over recall at equal average k",
            f"Test queries of {dataset}, every list with k items on average: further to the "
            "right more is found, further up fewer irrelevant items are shown. The blue line is "
            "the level for different level temperatures T, the ring the T that the calibrate "
            "split chose; every mark is another way to end the same number of items.",
            lambda figure: _draw(figure, figures, averages),
            (3.6 * len(averages) + 0.6, 4.9),
        )
    ]


def _draw(figure: Figure, figures: Mapping[str, Any], averages: Sequence[int]) -> None:
    panels = figure.subplots(1, len(averages), squeeze=False)[0]
    for place, (axes, k) in enumerate(zip(panels, averages, strict=True)):
        _draw_average(axes, figures, place, k)
        axes.set_title(f"k = {k:,}")
        axes.set_xlabel("recall")
    panels[0].set_ylabel("precision")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)


def _draw_average(axes: Axes, figures: Mapping[str, Any], place: int, k: int) -> None:
    dial = figures["dial"]
    recall, precision = (np.asarray(dial[name])[:, place] for name in ("recall", "precision"))
    style = {**line_style("level").line(), "marker": ""}
    axes.plot(recall, precision, label="level, T from 0 to 3", zorder=3, **style)
    for level_temperature, x, y in zip(dial["level_temperatures"], recall, precision, strict=True):
        if level_temperature in _NAMED:
            axes.plot(x, y, "o", color=line_style("level").colour, markersize=4, zorder=4)
            axes.annotate(
                f"{level_temperature:g}",
                (x, y),
                (5, 3),
                textcoords="offset points",
                fontsize=8,
                color=line_style("level").colour,
            )
    found = figures["kinds"]["beta"]
    axes.plot(
        mean(found, "level", k, "recall"),
        mean(found, "level", k, "precision"),
        "o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=line_style("level").colour,
        markeredgewidth=2,
        linestyle="",
        label="level, T tuned",
        zorder=5,
    )
    for kind, policy, title in _POINTS:
        where = line_style({"beta_one": "cdf_pdf", "info_one": "oracle"}.get(kind, policy))
        at = figures["kinds"][kind]
        x, y = mean(at, policy, k, "recall"), mean(at, policy, k, "precision")
        axes.plot(
            x,
            y,
            where.marker,
            color=where.colour,
            markersize=7,
            linestyle="",
            label=title,
            zorder=4,
        )
    base = [mean(found, "top_k", k, measure) for measure in ("recall", "precision")]
    axes.axvline(base[0], color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)), zorder=1)
    axes.axhline(base[1], color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)), zorder=1)
    axes.locator_params(nbins=6)
