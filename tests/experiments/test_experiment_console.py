"""The output of a run: the time left by hand, and one line per step."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from experiments.console import RemainingTime, StepDisplay
from experiments.results import ResultTable
from experiments.step import Step


def test_the_time_left_by_hand():
    estimate = RemainingTime([10, 20, 30])
    # Nothing is measured yet: as expected, less what has run.
    assert estimate.left(0) == 60
    assert estimate.left(4) == 56
    # A step that takes longer than expected takes nothing off the others.
    assert estimate.left(15) == 50
    estimate.end(20)
    # Twice as slow as expected: 40 and 60 seconds are left.
    assert estimate.left(0) == 100
    assert estimate.left(25) == 75
    assert estimate.left(500) == 60
    estimate.end(10)
    # 30 measured where 30 were expected.
    assert estimate.left(0) == 30
    estimate.end(30)
    assert estimate.left(0) == estimate.left(9) == 0


def step_of(title, cost):
    return Step(title, {}, (), dict, cost=cost)


STEPS = (step_of("towers [bold]", 600), step_of("lists", 300), step_of("b" * 90, 60))


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_line_a_step_where_there_is_no_terminal():
    console, clock = Console(file=io.StringIO(), width=40), Clock()
    with StepDisplay(console, clock) as display:
        display.plan(STEPS, 4)
        for step, seconds in zip(STEPS, (1_200, 7_200, 1.25), strict=True):
            display.begin(step)
            clock.now += seconds
            display.end(step, seconds)
    # 2 * 360 s; then 60 * 8400 / 900 s.
    assert console.file.getvalue().splitlines() == [
        "3 steps to compute, 4 there already",
        "[1/3] towers [bold]: 1,200.0 s; about 12 min left",
        "[2/3] lists: 7,200.0 s; about 9 min left",
        f"[3/3] {'b' * 90}: 1.2 s",
    ]


def test_rows_must_have_the_cells_of_the_head():
    message = r"^Rows of 'items' must have 2 cells\. Received: \('a', 'b', 'c'\)\.$"
    with pytest.raises(ValueError, match=message):
        ResultTable("items", ("x", "y"), (("a", "b"), ("a", "b", "c")))
