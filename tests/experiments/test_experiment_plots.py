"""Plots: the same bytes whenever they show the same, one look each, nobody's settings changed."""

from __future__ import annotations

import matplotlib
import pytest
from matplotlib.figure import Figure

from experiments.plots import (
    drawn,
    legend_below,
    literal,
    look,
    thousands,
)
from experiments.results import Plot


def draw(figure):
    axes = figure.subplots()
    for name in ("level", "top_k", "something else"):
        axes.plot([1, 10, 100_000], [1, 2, 3], label=name, **look(name).line())
    axes.set_xscale("log")
    thousands(axes.xaxis)
    axes.fill_between([1, 10], [1, 2], clip_on=True)
    legend_below(figure, axes)


def plot_of(drawing=draw, size=(5.0, 3.0)):
    return Plot("plot", "Title", "Caption.", drawing, size)


def test_files_have_the_same_bytes_whenever_they_show_the_same():
    first = drawn(plot_of())
    # Matplotlib's own ids count on, and its settings are the user's.
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        matplotlib.figure.Figure().subplots().plot([1])
        again = drawn(plot_of())
    assert first == again
    other = drawn(plot_of(lambda figure: figure.subplots().plot([2, 1])))
    assert other["svg"] != first["svg"]
    assert other["png"] != first["png"]


@pytest.mark.parametrize(
    "text", ["5$ and 6$", "$", r"a\b", r"\$x$ \\$", "no_formula^2", "100%", "é 手机"]
)
def test_a_text_of_the_data_is_shown_as_it_is(text):
    label = Figure().text(0, 0, literal(text))
    shown, is_formula = label._preprocess_math(label.get_text())
    assert (shown, is_formula) == (text, False)
