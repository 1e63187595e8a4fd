"""Charts have the points, bars and hover texts that they should."""

import hypothesis.strategies as st
import numpy as np
import pytest
from evaluation_example import example
from hypothesis import given, settings
from page_reader import read
from scipy.optimize import minimize

from pebr_tf.report import charts

CHARTS = ["recall_chart", "precision_recall_chart", "calibration_chart", "counts_chart"]


@pytest.fixture(scope="module")
def drawn():
    return {name: str(getattr(charts, name)(example())) for name in CHARTS}


def texts(chart, tag):
    return [node.text for node in read(f"<html><svg>{chart}</svg></html>").all(tag)]


def test_points_and_ticks(drawn):
    shown = texts(drawn["recall_chart"], "text")
    assert {"50", "100", "1k", "40%", "100%", "recall"} <= set(shown)
    assert "level: 50, 76.2%" in texts(drawn["recall_chart"], "title")
    shown = texts(drawn["calibration_chart"], "text")
    assert {"overall", "head", "torso", "tail", "50%", "90%"} <= set(shown)
    assert "overall: 50%, 50.7%" in texts(drawn["calibration_chart"], "title")


def test_bars(drawn):
    """Bins by hand: 0, 1, 2 to 3, ..., 8,192 to 16,383."""
    tips = texts(drawn["counts_chart"], "title")
    assert len(tips) == 15
    assert tips[:4] == ["0: 2", "1: 61", "2 to 3: 152", "4 to 7: 258"]
    assert tips[-1] == "8,192 to 16,383: 0"
    assert {"median 42", "p99 4,120"} <= set(texts(drawn["counts_chart"], "text"))


@given(st.lists(st.floats(0, 300), min_size=1, max_size=7), st.sampled_from([5.0, 14.0, 400.0]))
@settings(max_examples=40, deadline=None)
def test_labels_are_spread_as_near_to_their_lines_as_possible(wanted, gap):
    """Against SciPy's constrained least squares."""
    wanted = np.sort(wanted)
    found = charts.spread(wanted, gap, 0.0, 300.0)
    gap = min(gap, 300 / max(len(wanted) - 1, 1))
    assert (np.diff(found) >= gap - 1e-6).all()
    assert found.min() >= -1e-9
    assert found.max() <= 300 + 1e-6
    constraint = {"type": "ineq", "fun": lambda x: np.diff(x) - gap}
    best = minimize(
        lambda x: np.sum((x - wanted) ** 2),
        np.linspace(0, 300, len(wanted)),
        jac=lambda x: 2 * (x - wanted),
        bounds=[(0, 300)] * len(wanted),
        constraints=[constraint] if len(wanted) > 1 else [],
        method="SLSQP",
    )
    assert np.sum((found - wanted) ** 2) <= best.fun + 1e-3 * max(best.fun, 1)
