"""The charts of the page: curves of the policies, calibration, items a query."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pebr_tf.report.chart import STYLES, Axis, Series, histogram, legend, line_chart
from pebr_tf.report.formats import compact, count, finite, percent
from pebr_tf.report.markup import Markup, element, nothing
from pebr_tf.report.reading import GROUPS, entries, lookup, number
from pebr_tf.report.scale import rounded_out

# A policy keeps its look from one report to the next.
_POLICIES = (
    "level",
    "top_k",
    "score",
    "gap",
    "cdf",
    "nucleus",
    "adapter",
    "level_head",
    "oracle",
)


def curves(evaluation: dict[str, Any]) -> Markup:
    """Recall against the average k, and precision against recall."""
    against_k = _policy_series(evaluation, "average", "recall")
    against_recall = _policy_series(evaluation, "recall", "precision")
    if not against_k or not against_recall:
        return nothing()
    precision = _limits(point[1] for line in against_recall for point in line.points)
    average = _limits(point[0] for line in against_k for point in line.points)
    return element(
        "div",
        legend(against_k),
        element(
            "div",
            _figure(
                "Recall against average k",
                line_chart(
                    "recall-curve",
                    "Recall against the average number of items",
                    "One line a policy; the horizontal axis is logarithmic. Higher is better.",
                    against_k,
                    Axis("items a query on average, log scale", *average, compact, log=True),
                    _share_axis("recall", against_k, 1),
                ),
            ),
            _figure(
                "Precision against recall",
                line_chart(
                    "precision-recall",
                    "Precision against recall",
                    "One line a policy, from few items on the left to many on the right; the "
                    "vertical axis is logarithmic. Further up and to the right is better.",
                    against_recall,
                    _share_axis("recall", against_recall, 0),
                    Axis("precision, log scale", *precision, _whole_percent, log=True),
                ),
            ),
            class_="columns",
        ),
    )


def calibration_chart(evaluation: dict[str, Any]) -> Markup:
    """The share kept against the share asked for, a line a stratum."""
    asked = entries(evaluation, "calibration", "asked")
    series = [
        Series(
            group, _points(asked, entries(evaluation, "calibration", "kept", group)), at, at == 0
        )
        for at, group in enumerate(GROUPS)
    ]
    series = [line for line in series if line.points]
    if not series:
        return nothing()
    points = [point for line in series for point in line.points]
    low, high = rounded_out(*_limits(value for point in points for value in point))
    axis = [Axis(title, low, high, _whole_percent) for title in ("recall asked for", "recall kept")]
    chart = line_chart(
        "calibration-chart",
        "Share of the held-out clicks kept against the share asked for",
        "One line a stratum; on the diagonal the knob does what it says.",
        series,
        *axis,
        diagonal=True,
        labels=80,
    )
    return _figure("Recall kept against recall asked for", chart)


def counts_chart(evaluation: dict[str, Any]) -> Markup:
    """How many queries get how many items, with the median and the 99th percentile."""
    edges = [finite(edge) for edge in entries(evaluation, "counts", "edges")]
    queries = [finite(height) or 0.0 for height in entries(evaluation, "counts", "queries")]
    known = [edge for edge in edges if edge is not None]
    positive = [edge for edge in known if edge > 0]
    rising = all(left < right for left, right in itertools.pairwise(known))
    if len(known) != len(queries) + 1 or len(positive) < 2 or not rising or not any(queries):
        return nothing()
    # A bin that begins at 0 has no logarithm; it gets the width of the one after it.
    low = positive[0] ** 2 / positive[1] if known[0] <= 0 else positive[0]
    figures = lookup(evaluation, "default_knob", "figures")
    marks = [
        (f"{name} {count(value)}", value)
        for name, key in (("median", "p50"), ("p99", "p99"))
        if (value := number(figures, key)) is not None and low <= value <= known[-1]
    ]
    chart = histogram(
        "counts-chart",
        "Items a query at the default knob",
        "Queries by the number of items they get; the horizontal axis is logarithmic.",
        known,
        queries,
        Axis("items a query, log scale", low, known[-1], compact, log=True),
        Axis("queries", 0, rounded_out(0, max(queries))[1], count),
        marks,
    )
    return _figure("Queries by the number of items they get", chart)


def _figure(caption: str, chart: Markup) -> Markup:
    return element("figure", element("figcaption", caption), chart)


def _policy_series(evaluation: dict[str, Any], x: str, y: str) -> list[Series]:
    defaults = {
        lookup(policy, "name"): bool(lookup(policy, "default"))
        for policy in entries(evaluation, "policies")
    }
    # In the order of the tables; what they lack comes after.
    names = dict.fromkeys([*defaults, *(lookup(evaluation, "curves") or {})])
    others = itertools.cycle(range(1, STYLES - 1))
    series = []
    for name in names:
        curve = lookup(evaluation, "curves", name)
        style = _POLICIES.index(name) if name in _POLICIES else next(others)
        # An average or a precision of 0 is an empty list, which has no place on a log axis.
        points = [
            point for point in _points(entries(curve, x), entries(curve, y)) if min(point) > 0
        ]
        if points:
            series.append(Series(str(name), points, style, defaults.get(name, False)))
    return series


def _points(xs: Sequence[Any], ys: Sequence[Any]) -> list[tuple[float, float]]:
    pairs = ((finite(x), finite(y)) for x, y in zip(xs, ys, strict=False))
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def _share_axis(title: str, series: Sequence[Series], coordinate: int) -> Axis:
    low, high = _limits(point[coordinate] for line in series for point in line.points)
    return Axis(title, *rounded_out(low, high), _whole_percent)


def _limits(values: Any) -> tuple[float, float]:
    """Least and greatest, apart even if all values are one."""
    known = list(values)
    low, high = min(known), max(known)
    return (low, high) if low < high else (low * 0.9, high * 1.1 or 1.0)


def _whole_percent(value: float) -> str:
    digits = 0 if abs(value * 100 - round(value * 100)) < 1e-9 else 1
    return percent(value, digits)
