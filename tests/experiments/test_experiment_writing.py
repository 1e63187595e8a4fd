"""An experiment's folder: all of it or none, and figures that any reader takes."""

import json
from functools import partial

import numpy as np
import pytest

from experiments.results import ExperimentResults, Plot, ResultTable
from experiments.writing import plain, write_results


def results_of(figures=None, names=("one", "two"), fails=()):
    def draw(figure, name):
        if name in fails:
            raise KeyboardInterrupt
        figure.subplots().set_title(name)

    plots = tuple(Plot(name, name, name, partial(draw, name=name), (3, 2)) for name in names)
    table = ResultTable("Table", ("a", "b"), (("x", "1"),))
    return ExperimentResults("Title", ("Found.",), figures or {"é": 1}, (table,), plots)


def test_a_run_that_is_stopped_while_drawing_leaves_what_was_there(tmp_path):
    write_results(results_of({"a": 1}, ()), tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(KeyboardInterrupt):
        write_results(results_of({"a": 2}, fails=("two",)), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_figures_are_json_that_any_reader_takes(tmp_path):
    figures = {
        "array": np.array([[1.5, np.nan], [np.inf, -np.inf]], np.float32),
        "scalars": (np.int64(3), np.float64("nan"), np.bool_(True), None, "text"),
        3: {"nested": [float("nan"), 0.25]},
    }
    write_results(results_of(figures, ()), tmp_path / "out")

    def reject(constant):
        raise AssertionError(constant)

    text = (tmp_path / "out" / "figures.json").read_text("utf-8")
    assert json.loads(text, parse_constant=reject) == {
        "array": [[1.5, None], [None, None]],
        "scalars": [3, None, True, None, "text"],
        "3": {"nested": [None, 0.25]},
    }
    assert plain(np.float32(0.1)) == float(np.float32(0.1))
