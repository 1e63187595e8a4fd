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
    looks,
    thousands,
)
from experiments.policies import (
    CorpusLawPolicy,
    DepthLawPolicy,
    FittedLawPolicy,
    RankQuantilePolicy,
)
from experiments.results import Plot
from pebr_tf.cutoff.policies import AdapterPolicy, CdfPolicy, evaluated_policies
from pebr_tf.metrics import STRATA


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


def test_settings_are_as_before_even_after_a_failure():
    before = dict(matplotlib.rcParams)

    def fail(figure):
        assert matplotlib.rcParams["svg.hashsalt"] == "pebr"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        drawn(plot_of(fail))
    assert dict(matplotlib.rcParams) == before


def test_policies_and_strata_differ_in_more_than_colour():
    fitted = (AdapterPolicy, CorpusLawPolicy, DepthLawPolicy, FittedLawPolicy, RankQuantilePolicy)
    unfitted = (*evaluated_policies(1.0), CdfPolicy(convention="pdf"))
    chosen = [look(policy.name) for policy in (*unfitted, *fitted)]
    assert len({(each.colour, each.marker, str(each.dash)) for each in chosen}) == len(chosen)
    assert len({(each.marker, str(each.dash)) for each in chosen}) == len(chosen)
    assert len({look(name).colour for name in STRATA}) == len({look(n).marker for n in STRATA}) == 3


def test_the_lines_of_one_plot_all_differ():
    found = looks(("level", "a", "score", "b", "c", "d"))
    assert list(found) == ["level", "score", "a", "b", "c", "d"]
    assert found["level"] == look("level")
    assert len({each.colour for each in found.values()}) == 6
    # More than there are: some look alike, none is missing.
    names = tuple(map(str, range(20)))
    assert set(looks(names)) == set(names)


@pytest.mark.parametrize(
    "text", ["5$ and 6$", "$", r"a\b", r"\$x$ \\$", "no_formula^2", "100%", "é 手机"]
)
def test_a_text_of_the_data_is_shown_as_it_is(text):
    label = Figure().text(0, 0, literal(text))
    shown, is_formula = label._preprocess_math(label.get_text())
    assert (shown, is_formula) == (text, False)
