"""The charts of the page, drawn by matplotlib as SVG that follows the theme of the page.

Text stays text. Colours are drawn as placeholders and then replaced by the variables of report.css,
which has a light and a dark value for each. Lines differ in colour, dash and marker, so that none
of the three is needed to tell them apart.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup
from scipy.optimize import isotonic_regression

from pebr_tf.metrics.results import GROUPS, PolicyResult
from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.report.formats import compact, count, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib measures in points; with 72 dots per inch they are the units of the SVG.
WIDTH, HEIGHT, _DPI = 480, 350, 72
_LABEL_GAP = 14.0
_MARKERS_PER_LINE = 4
# One colour variable, dash pattern and marker per line.
_DASHES = ("-", (0, (5, 2)), (0, (1, 2)), (0, (6, 2, 1, 2)), (0, (3, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h", "*")
_ORACLE_STYLE = 8
# Placeholder colours by the name of the CSS variable.
_COLOURS = {
    name: f"#fe{index:02x}fd"
    for index, name in enumerate(
        ("ink", "muted", "rule", "strong-rule", "bar", *(f"c{style}" for style in range(9)))
    )
}


@dataclass(frozen=True)
class _Line:
    label: str
    points: Sequence[tuple[float, float]]
    style: int
    strong: bool


def recall_chart(evaluation: ModelEvaluation) -> Markup:
    """Recall against the average number of items, one line per policy."""
    figure, axes = _figure(right=100)
    lines = _policy_lines(evaluation.policies, "average", "recall")
    axes.set_xscale("log")
    _draw(axes, lines, "items per query on average, log scale", "recall", compact)
    return _drawing(figure, "recall-chart")


def precision_recall_chart(evaluation: ModelEvaluation) -> Markup:
    """Precision against recall, one line per policy."""
    figure, axes = _figure(right=100)
    lines = _policy_lines(evaluation.policies, "recall", "precision")
    axes.set_yscale("log")
    _draw(axes, lines, "recall", "precision, log scale", _percent)
    return _drawing(figure, "precision-recall-chart")


def calibration_chart(evaluation: ModelEvaluation) -> Markup:
    """Measured against requested recall, one line per stratum."""
    figure, axes = _figure(right=80)
    found = evaluation.calibration
    lines = [
        _Line(
            group, list(zip(found.requested, found.measured[group], strict=True)), style, not style
        )
        for style, group in enumerate(GROUPS)
        if group in found.measured
    ]
    _draw(axes, lines, "requested recall", "measured recall", _percent)
    values = [value for line in lines for point in line.points for value in point]
    ends = min(values), max(values)
    axes.plot(ends, ends, color=_COLOURS["muted"], linewidth=1, linestyle=(0, (3, 3)), zorder=1)
    return _drawing(figure, "calibration-chart")


def counts_chart(evaluation: ModelEvaluation) -> Markup:
    """Queries by their number of items, with the median and the 99th percentile."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure, axes = _figure(right=14, top=46)
    edges, queries = evaluation.counts.edges, evaluation.counts.queries
    # Bins double in width, so each is as wide as the others here; the first is that of 0 items.
    for index, height in enumerate(queries):
        low, high = edges[index], edges[index + 1] - 1
        items = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        axes.bar(index + 0.5, height, 0.94, color=_COLOURS["bar"], gid=_tip(items, count(height)))
    axes.set_xticks(
        [0.5, *range(2, len(queries) + 1, 2)], [count(edge) for edge in (edges[0], *edges[2::2])]
    )
    axes.set_xlim(0, len(queries))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
    _titles(axes, "items per query, log scale", "queries")
    overall = evaluation.default_knob.groups["overall"]
    for name, value in (("median", overall.p50), ("p99", overall.p99)):
        # log2 on bins [1, 2), [2, 4), ...; 0 items is the bin before.
        position = 1 + np.log2(value) if value else 0.5
        axes.axvline(position, color=_COLOURS["ink"], linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{name} {count(value)}",
            (position, 1),
            (0, 4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right" if position > len(queries) - 1.5 else "center",
            color=_COLOURS["ink"],
        )
    return _drawing(figure, "counts-chart")


def _policy_lines(policies: Sequence[PolicyResult], x: str, y: str) -> list[_Line]:
    lines = []
    for index, policy in enumerate(policies):
        if policy.curve is not None:
            pairs = zip(getattr(policy.curve, x), getattr(policy.curve, y), strict=True)
            # 0 has no place on a logarithmic axis.
            points = [pair for pair in pairs if min(pair) > 0]
            style = _ORACLE_STYLE if policy.name == "oracle" else index % _ORACLE_STYLE
            lines.append(_Line(policy.name, points, style, policy.default))
    return [line for line in lines if line.points]


def _figure(right: int, top: int = 30) -> tuple[Figure, Axes]:
    """An empty chart with margins in points."""
    from matplotlib.figure import Figure

    left, bottom = 50, 48
    figure = Figure((WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI)
    size = (WIDTH - left - right) / WIDTH, (HEIGHT - bottom - top) / HEIGHT
    axes = figure.add_axes((left / WIDTH, bottom / HEIGHT, *size))
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(_COLOURS["strong-rule"])
    axes.tick_params(which="both", left=False, color=_COLOURS["strong-rule"], pad=6)
    axes.tick_params(which="both", labelcolor=_COLOURS["muted"], labelsize=12.5)
    axes.grid(axis="y", color=_COLOURS["rule"], linewidth=1)
    axes.set_axisbelow(True)
    return figure, axes


def _titles(axes: Axes, x: str, y: str) -> None:
    """Titles of the axes; that of the vertical one lies above it, where it reads horizontally."""
    axes.set_xlabel(x, color=_COLOURS["muted"], fontsize=12.5, labelpad=5)
    axes.set_title(y, loc="left", x=-46 / (axes.bbox.width), color=_COLOURS["muted"], fontsize=12.5)


def _draw(
    axes: Axes, lines: Sequence[_Line], x: str, y: str, x_text: Callable[[float], str]
) -> None:
    """Draws lines of shares, each named where it ends, with ticks at round numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    _titles(axes, x, y)
    for axis, text in ((axes.xaxis, x_text), (axes.yaxis, _percent)):
        is_log = axis.get_scale() == "log"
        axis.set_major_locator(
            LogLocator(10, (1, 2, 5)) if is_log else MaxNLocator(6, steps=[1, 2, 5])
        )
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _, text=text: text(value)))
    for line in lines:
        colour = _COLOURS[f"c{line.style}"]
        axes.plot(
            *zip(*line.points, strict=True),
            color=colour,
            linewidth=3 if line.strong else 1.5,
            linestyle="-" if line.strong else _DASHES[line.style % len(_DASHES)],
            zorder=4 if line.strong else 3,
            gid=_tip(line.label),
        )
        # Lines that lie together show their markers in turn.
        every = max(1, -(-len(line.points) // _MARKERS_PER_LINE))
        for point in line.points[line.style % every :: every]:
            axes.plot(
                *point,
                color=colour,
                marker=_MARKERS[line.style],
                markersize=7,
                zorder=5,
                gid=_tip(line.label, x_text(point[0]), _percent(point[1])),
            )
    axes.margins(x=0.01, y=0.03)
    _label_ends(axes, lines)


def _label_ends(axes: Axes, lines: Sequence[_Line]) -> None:
    ends = axes.transData.transform([line.points[-1] for line in lines])
    order = np.argsort(ends[:, 1])
    heights = spread(ends[order, 1], _LABEL_GAP, axes.bbox.y0 + 4, axes.bbox.y1)
    for index, height in zip(order, heights, strict=True):
        line = lines[index]
        colour = _COLOURS[f"c{line.style}"]
        axes.annotate(
            line.label,
            line.points[-1],
            (axes.bbox.x1 + 22, height),
            textcoords="figure points",
            va="center",
            color=colour,
            fontsize=12.5,
            fontweight="bold" if line.strong else "normal",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.75,
                "relpos": (0, 0.5),
                "shrinkA": 2,
            },
            parse_math=False,
        )


def spread(wanted: np.ndarray, gap: float, low: float, high: float) -> np.ndarray:
    """The positions [n] nearest to those wanted, rising, that are `gap` apart, in [low, high].

    The gap is less where [low, high] is too short.
    """
    steps = np.arange(len(wanted)) * min(gap, (high - low) / max(len(wanted) - 1, 1))
    # Less its own gaps, each position may equal the one before it but not precede it.
    means = isotonic_regression(wanted - steps).x
    return np.clip(means, low, high - steps[-1]) + steps


def _tip(*texts: str) -> str:
    """The identifier of an element that shows a text when the pointer is over it."""
    return "tip:" + ": ".join([texts[0], ", ".join(texts[1:])][: len(texts)])


def _percent(value: float) -> str:
    return percent(value, 0 if abs(value * 100 - round(value * 100)) < 1e-9 else 1)


def _drawing(figure: Figure, salt: str) -> Markup:
    """The content of an SVG element of WIDTH by HEIGHT; the salt tells its markers from others."""
    import matplotlib

    target = io.StringIO()
    settings = {"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 12.5}
    with matplotlib.rc_context(settings):
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(target, format="svg", transparent=True, metadata=metadata)
    text = target.getvalue()
    text = text[text.index("<g") : text.rindex("</svg>")]
    for name, colour in _COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    text = re.sub(r"<defs>\s*<clipPath.*?</defs>", "", text, flags=re.DOTALL)
    text = re.sub(r' clip-path="[^"]*"', "", text)
    text = re.sub(r'<g id="tip:([^"]*)">', r"<g><title>\1</title>", text)
    # What is left are markers, which `use` elements refer to, and names that nothing refers to.
    text = re.sub(r' id="(?!m[0-9a-f]{10}")[^"]*"', "", text)
    return Markup(text.replace("xlink:href", "href"))
