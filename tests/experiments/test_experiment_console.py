"""What a person sees of a run: the time left by hand, plain lines, a bar, and whole numbers."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from experiments.console import Estimate, StepDisplay, console_table
from experiments.results import Table
from experiments.step import Step


def test_the_time_left_by_hand():
    estimate = Estimate([10, 20, 30])
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


def test_a_bar_on_a_terminal_goes_when_it_ends():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)

    def stop():
        with StepDisplay(console, Clock()) as display:
            display.plan(STEPS, 0)
            display.begin(STEPS[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    shown = console.file.getvalue()
    assert "towers [bold]" in shown
    assert "0/3, about 16 min left" in shown
    # The cursor is back, and the bar's line is erased.
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert "\x1b[2K" in shown[shown.rindex("left") :]


TABLE = Table(
    "synthetic: items by **share**",
    ("policy, queries", *(f".{keep} kept" for keep in range(8))),
    (
        ("the level, all queries", *["1,234"] * 8),
        ("a word that is longer than any column of words", *["**98,765**"] * 8),
    ),
    "A [note].",
)


@pytest.mark.parametrize("width", [30, 60, 80, 100])
def test_numbers_stay_whole_however_narrow_the_terminal_is(width):
    console = Console(file=io.StringIO(), width=width)
    console.print(console_table(TABLE), width=width, crop=False)
    shown = console.file.getvalue()
    rows = [line for line in shown.splitlines() if "1,234" in line or "98,765" in line]
    assert [row.split()[-8:] for row in rows] == [["1,234"] * 8, ["98,765"] * 8]
    # A line of the title and the note too; words wrap at spaces.
    assert "A [note]." in shown
    assert "**" not in shown
    assert max(map(len, shown.splitlines())) <= max(width, 12 + 8 * 9 + 4)


def test_rows_must_have_the_cells_of_the_head():
    message = r"^Rows of 'items' must have 2 cells\. Received: \('a', 'b', 'c'\)\.$"
    with pytest.raises(ValueError, match=message):
        Table("items", ("x", "y"), (("a", "b"), ("a", "b", "c")))
