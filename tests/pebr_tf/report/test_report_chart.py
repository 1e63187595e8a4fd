"""Charts put numbers where a hand computation puts them, beside round ticks."""

import itertools
import random

import pytest
from page_reader import read

from pebr_tf.report.chart import (
    BOTTOM,
    LEFT,
    TOP,
    WIDTH,
    Axis,
    Series,
    histogram,
    line_chart,
    spread,
)
from pebr_tf.report.scale import Scale, linear_ticks, log_ticks, rounded_out


def test_scales_by_hand():
    linear = Scale(0.4, 1.0, 300, 0)
    assert [linear(v) for v in (0.4, 0.55, 1.0)] == [300, 225, 0]
    log = Scale(10, 1000, 50, 250, log=True)
    # 20 is log10(2) / 2 of the way.
    assert [log(v) for v in (10, 100, 1000, 20)] == [50, 150, 250, 80.1]
    assert [log(v) for v in (0, 5000)] == [50, 250]


@pytest.mark.parametrize(("low", "high", "log"), [(1, 1, False), (2, 1, False), (0, 1, True)])
def test_a_scale_needs_a_range(low, high, log):
    with pytest.raises(ValueError, match=r"low must be below high, and above 0 if log\. Received"):
        Scale(low, high, 0, 1, log)


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0, 1, 6, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.4, 1, 7, [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        (0.013, 0.094, 6, [0.02, 0.04, 0.06, 0.08]),
        (0, 489, 7, [0, 100, 200, 300, 400]),
        (-3, 3, 4, [-2, 0, 2]),
    ],
)
def test_linear_ticks(low, high, most, ticks):
    assert linear_ticks(low, high, most) == ticks


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (10, 2000, 8, [10, 20, 50, 100, 200, 500, 1000, 2000]),
        (0.011, 1, 7, [0.02, 0.05, 0.1, 0.2, 0.5, 1]),
        (1, 10_000, 8, [1, 10, 100, 1000, 10_000]),
        (1, 1e12, 6, [1, 1e3, 1e6, 1e9, 1e12]),
        # Within one step: no 1, 2 or 5 to be had.
        (60, 90, 6, [60, 70, 80, 90]),
    ],
)
def test_log_ticks(low, high, most, ticks):
    assert log_ticks(low, high, most) == pytest.approx(ticks, rel=1e-12)


def test_ticks_are_few_and_inside_and_limits_hold_what_they_round():
    draw = random.Random(5)
    for _ in range(500):
        low = 10 ** draw.uniform(-4, 5)
        high = low * 10 ** draw.uniform(0.01, 6)
        for ticks in (linear_ticks(low, high, 7), log_ticks(low, high, 7)):
            assert 1 <= len(ticks) <= 7
            assert low * (1 - 1e-6) <= ticks[0] <= ticks[-1] <= high * (1 + 1e-6)
        begin, end = rounded_out(low, high)
        assert begin <= low * (1 + 1e-6)
        assert high * (1 - 1e-6) <= end
        assert end - begin < 2 * (high - low)


def test_labels_keep_their_distance():
    assert spread([10, 50, 90], 14, 0, 100) == [10, 50, 90]
    # Two at one place move apart by half the gap each.
    assert spread([50, 50], 14, 0, 100) == [43, 57]
    assert spread([1, 2, 3], 10, 0, 100) == [0, 10, 20]
    assert spread([98, 99], 10, 0, 100) == [90, 100]
    draw = random.Random(7)
    for _ in range(300):
        wanted = sorted(draw.uniform(0, 100) for _ in range(draw.randint(1, 9)))
        places = spread(wanted, 11, 0, 100)
        assert all(b - a >= 11 - 1e-9 for a, b in itertools.pairwise(places))
        assert places[0] >= -1e-9
        assert places[-1] <= 100 + 1e-9
    # More than fit share the room evenly.
    assert spread([50] * 5, 40, 0, 100) == pytest.approx([0, 25, 50, 75, 100])


def test_a_line_by_hand():
    across, up = WIDTH - 92 - LEFT, BOTTOM - TOP
    page = line_chart(
        "c",
        "a & b",
        "what it shows",
        [
            Series("thick", [(10, 0.5), (100, 0.75), (1000, 1.0)], 0, strong=True),
            Series("thin", [(10, 0.5), (1000, 0.5)], 1),
            Series("none", [], 2),
        ],
        Axis("k", 10, 1000, str, log=True),
        Axis("r", 0.5, 1, str),
    )
    chart = read(f"<html>{page}</html>").one("svg")
    assert chart.one("title", id="c-title").text == "a & b"
    thin, thick = chart.all("path", class_="line")
    assert thick.attributes["d"] == (
        f"M{LEFT} {BOTTOM}L{LEFT + across / 2:g} {BOTTOM - up / 2:g}L{LEFT + across} {TOP}"
    )
    assert thin.attributes["d"] == f"M{LEFT} {BOTTOM}L{LEFT + across} {BOTTOM}"
    assert "stroke-dasharray" not in thick.attributes
    assert thin.attributes["stroke-dasharray"] == "7 3"
    names = [g.text for g in chart.all("g") if "label" in g.attributes.get("class", "")]
    assert names == ["thick", "thin"]


def test_the_diagonal_joins_equal_values():
    axis = Axis("asked", 0.4, 1, str)
    line = Series("all", [(0.5, 0.5)], 0)
    page = line_chart("c", "t", "d", [line], axis, axis, diagonal=True, labels=80)
    reference = read(f"<html>{page}</html>").one("path", class_="reference")
    assert reference.attributes["d"] == f"M{LEFT} {BOTTOM}L{WIDTH - 80} {TOP}"


def test_bars_by_hand():
    page = histogram(
        "h",
        "t",
        "d",
        [0, 1, 10, 100],
        [5, 10, 0],
        Axis("items", 0.1, 100, lambda v: f"{v:g}", log=True),
        Axis("queries", 0, 10, lambda v: f"{v:g}"),
        [("median 10", 10)],
    )
    chart = read(f"<html>{page}</html>").one("svg")
    third = (WIDTH - 14 - LEFT) / 3
    up = BOTTOM - (TOP + 16)
    bars = [
        {name: float(bar.attributes[name]) for name in ("x", "y", "width", "height")}
        for bar in chart.all("rect")
    ]
    for at, (bar, height) in enumerate(zip(bars, (0.5, 1, 0), strict=True)):
        assert bar["x"] == pytest.approx(LEFT + at * third + 0.5, abs=0.11)
        assert bar["width"] == pytest.approx(third - 1, abs=0.11)
        assert bar["height"] == pytest.approx(height * up, abs=0.11)
        assert bar["y"] + bar["height"] == pytest.approx(BOTTOM, abs=0.11)
    assert [bar.text for bar in chart.all("rect")] == ["0: 5", "1 to 9: 10", "10 to 99: 0"]
    below = [t for t in chart.all("text") if t.attributes["y"] == str(BOTTOM + 19)]
    places = {t.text: float(t.attributes["x"]) for t in below}
    assert places["0"] == pytest.approx(LEFT + third / 2, abs=0.11)
    assert places["1"] == pytest.approx(LEFT + third, abs=0.11)
    mark = chart.one("path", class_="mark").attributes["d"]
    assert float(mark[1:].split()[0]) == pytest.approx(LEFT + 2 * third, abs=0.06)
