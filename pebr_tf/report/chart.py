"""Line charts and histograms as SVG.

A report is one file that opens without a network, prints, follows the reader's light or dark theme
and can be searched. SVG written here gives all of that with no dependency, and text stays text; a
plotting library would bring pictures or outlines of letters.

Series differ in colour, dash and marker, so that none of the three is needed to tell them apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pebr_tf.report.markup import Markup, element, joined
from pebr_tf.report.scale import Scale

WIDTH, HEIGHT = 480, 350
LEFT, TOP, BOTTOM = 48, 30, 302
_LABEL_GAP = 14.0
_MARKERS_A_LINE = 4
# A dash pattern and a marker a style; `style.py` has the colours.
_DASHES = (None, "7 3", "2 3", "9 3 2 3", "4 2", "12 3", "1 3", "5 2 1 2", "3 4")
STYLES = len(_DASHES)


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
      label: Beside the line and in the legend.
      points: (x, y), finite, in order.
      style: Place among the styles, below STYLES.
      strong: Whether it is the line that matters.
    """

    label: str
    points: Sequence[tuple[float, float]]
    style: int
    strong: bool = False


@dataclass(frozen=True)
class Axis:
    """One side of a chart.

    Attributes:
      title: What is measured.
      low: Where it begins; above 0 if `log`.
      high: Where it ends.
      text: A number as the axis shows it.
      log: Whether equal steps are equal ratios.
    """

    title: str
    low: float
    high: float
    text: Callable[[float], str]
    log: bool = False


def line_chart(
    identifier: str,
    title: str,
    description: str,
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    *,
    diagonal: bool = False,
    labels: int = 92,
) -> Markup:
    """A chart of lines, each named where it ends.

    Args:
      identifier: Unique in the page.
      title: For those who hear the page, and on hovering.
      description: What the chart shows, in a sentence.
      series: Lines; the strong ones are drawn last, on top.
      x: Horizontal axis.
      y: Vertical axis.
      diagonal: Whether to draw where x equals y.
      labels: Room on the right for the names of the lines.
    """
    across = Scale(x.low, x.high, LEFT, WIDTH - labels, x.log)
    up = Scale(y.low, y.high, BOTTOM, TOP, y.log)
    shown = sorted((line for line in series if line.points), key=lambda line: line.strong)
    reference = None
    if diagonal:
        ends = max(x.low, y.low), min(x.high, y.high)
        reference = element(
            "path", d=_path([(across(end), up(end)) for end in ends]), class_="reference"
        )
    lines = [_line(line, x, y, across, up) for line in shown]
    names = _names(shown, across, up)
    return _chart(
        identifier, title, description, _frame(across, up, x, y), reference, *lines, *names
    )


def histogram(
    identifier: str,
    title: str,
    description: str,
    edges: Sequence[float],
    counts: Sequence[float],
    x: Axis,
    y: Axis,
    marks: Sequence[tuple[str, float]] = (),
) -> Markup:
    """Bars between edges, with named upright lines.

    Args:
      identifier: Unique in the page.
      title: For those who hear the page, and on hovering.
      description: What the chart shows, in a sentence.
      edges: [n + 1] rising, each the first number of its bin; on a logarithmic axis those below its
        low end are put there.
      counts: [n] height of each bar.
      x: Horizontal axis.
      y: Vertical axis.
      marks: Names and places of upright lines.
    """
    across = Scale(x.low, x.high, LEFT, WIDTH - 14, x.log)
    # Names of the marks stand above the highest bar.
    up = Scale(y.low, y.high, BOTTOM, TOP + 16, y.log)
    bars = []
    for (left, right), count in zip(itertools.pairwise(edges), counts, strict=True):
        begin, end = across(left), across(right)
        hover = element("title", f"{_bin(left, right)}: {y.text(count)}")
        bars.append(
            element(
                "rect",
                hover,
                x=round(begin + 0.5, 1),
                y=up(count),
                width=round(max(end - begin - 1, 0.5), 1),
                height=round(BOTTOM - up(count), 1),
                class_="bar",
            )
        )
    rules = []
    if edges[0] < x.low:
        # The axis has no tick there.
        place = (LEFT + across(edges[1])) / 2
        rules.append(_below(x.text(edges[0]), round(place, 1)))
    for name, value in marks:
        place = across(value)
        rules.append(element("path", d=f"M{place:g} {TOP + 11}V{BOTTOM}", class_="mark"))
        anchor = "end" if place > WIDTH - 60 else "middle"
        rules.append(element("text", name, x=place, y=TOP + 6, text_anchor=anchor))
    return _chart(identifier, title, description, _frame(across, up, x, y), *bars, *rules)


def legend(series: Sequence[Series]) -> Markup:
    """The name of each line beside a piece of it."""
    keys = [
        element(
            "li",
            element(
                "svg",
                element("path", d="M1 7H33", **_stroke(line)),
                _marker(line.style, 17, 7),
                viewBox="0 0 34 14",
                width="34",
                height="14",
                aria_hidden="true",
                class_=_classes(line),
            ),
            line.label,
        )
        for line in series
        if line.points
    ]
    return element("ul", *keys, class_="legend")


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near to those wanted as keeps them `gap` apart, in [low, high], in their order.

    Args:
      wanted: Rising.
      gap: Least distance; less where [low, high] has no room.
      low: Least place.
      high: Greatest place.
    """
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    # Less its own gaps, each place may equal the one before but not precede it: neighbours that
    # want to are pooled at their mean (isotonic regression), and cutting at the ends keeps that.
    pools: list[tuple[float, int]] = []
    for at, place in enumerate(wanted):
        mean, size = place - at * gap, 1
        while pools and pools[-1][0] > mean:
            other, members = pools.pop()
            mean = (other * members + mean * size) / (members + size)
            size += members
        pools.append((mean, size))
    last = high - (len(wanted) - 1) * gap
    means = [min(max(mean, low), last) for mean, size in pools for _ in range(size)]
    return [mean + at * gap for at, mean in enumerate(means)]


def _chart(identifier: str, title: str, description: str, *parts: str | None) -> Markup:
    return element(
        "svg",
        element("title", title, id=f"{identifier}-title"),
        element("desc", description, id=f"{identifier}-desc"),
        *parts,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{identifier}-title {identifier}-desc",
        class_="chart",
    )


def _frame(across: Scale, up: Scale, x: Axis, y: Axis) -> Markup:
    """Grid, ticks and titles; that of the vertical axis lies above it, where it reads at ease."""
    right = across.end
    parts = []
    for tick in up.ticks(7):
        parts.append(element("path", d=f"M{LEFT} {up(tick):g}H{right:g}", class_="grid"))
        parts.append(element("text", y.text(tick), x=LEFT - 8, y=up(tick) + 4, text_anchor="end"))
    for tick in across.ticks(8 if x.log else 7):
        parts.append(element("path", d=f"M{across(tick):g} {BOTTOM}v5", class_="tick"))
        parts.append(_below(x.text(tick), across(tick)))
    parts.append(element("path", d=f"M{LEFT} {BOTTOM}H{right:g}", class_="axis"))
    middle = round((LEFT + right) / 2, 1)
    parts.append(
        element("text", x.title, x=middle, y=HEIGHT - 9, text_anchor="middle", class_="name")
    )
    parts.append(element("text", y.title, x=2, y=12, class_="name"))
    return joined(parts)


def _below(text: str, place: float) -> Markup:
    return element("text", text, x=place, y=BOTTOM + 19, text_anchor="middle")


def _bin(left: float, right: float) -> str:
    """The whole numbers of a bin, whose right edge belongs to the next."""
    return f"{left:,.0f}" if right - left <= 1 else f"{left:,.0f} to {right - 1:,.0f}"


def _line(line: Series, x: Axis, y: Axis, across: Scale, up: Scale) -> Markup:
    places = [(across(a), up(b)) for a, b in line.points]
    every = max(1, math.ceil(len(places) / _MARKERS_A_LINE))
    markers = [
        element(
            "g",
            element("title", f"{line.label}: {x.text(a)}, {y.text(b)}"),
            _marker(line.style, *places[at]),
        )
        for at, (a, b) in enumerate(line.points)
        # Lines that lie together show their markers in turn.
        if at % every == line.style % every
    ]
    return element(
        "g",
        element("path", d=_path(places), **_stroke(line)),
        *markers,
        class_=_classes(line),
    )


def _names(lines: Sequence[Series], across: Scale, up: Scale) -> list[Markup]:
    ends = sorted(
        ((up(line.points[-1][1]), across(line.points[-1][0]), line) for line in lines),
        key=lambda end: end[0],
    )
    places = spread([height for height, _, _ in ends], _LABEL_GAP, TOP, BOTTOM - 4)
    names = []
    for (height, end, line), place in zip(ends, places, strict=True):
        edge = across.end + 20
        names.append(
            element(
                "g",
                element(
                    "path", d=f"M{end + 2:g} {height:g}L{edge - 2:g} {place:.1f}", class_="lead"
                ),
                element("text", line.label, x=edge + 1, y=round(place + 4, 1)),
                class_=f"{_classes(line)} label",
            )
        )
    return names


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)


def _stroke(line: Series) -> dict[str, str | None]:
    # A strong line is plain: it is told from the others by its weight.
    return {"class_": "line", "stroke_dasharray": None if line.strong else _DASHES[line.style]}


def _classes(line: Series) -> str:
    return f"style{line.style} strong" if line.strong else f"style{line.style}"


def _marker(style: int, x: float, y: float) -> Markup:
    r = 3.5
    shapes = (
        f"M{x - r:g} {y:g}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        f"M{x - 3:g} {y - 3:g}h6v6h-6z",
        f"M{x:g} {y - 4:g}l4 7h-8z",
        f"M{x:g} {y - 4.5:g}l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
        f"M{x:g} {y + 4:g}l4 -7h-8z",
        f"M{x - 4:g} {y:g}h8M{x:g} {y - 4:g}v8",
        f"M{x - 3:g} {y - 3:g}l6 6M{x - 3:g} {y + 3:g}l6 -6",
        f"M{x - r:g} {y:g}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        f"M{x - 3:g} {y - 3:g}h6v6h-6z",
    )
    hollow = style in (7, 8)
    return element("path", d=shapes[style], class_="marker hollow" if hollow else "marker")
