"""What a person sees of an experiment: a bar on a terminal, plain lines elsewhere, then a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Table as RichTable
from rich.text import Text

from experiments.markdown import pieces
from experiments.results import ResultTable
from experiments.step import Step

# Lines of a page are no wider, however wide the terminal is.
WIDEST = 100


class RemainingTime:
    """The time that is left, from expected costs and from what was measured.

    Args:
      costs: Expected seconds of the steps, in order.
    """

    def __init__(self, costs: Sequence[float]):
        self._costs = list(costs)
        self._done = 0
        self._measured = 0.0

    def end(self, seconds: float) -> None:
        """The next step is done, after so many seconds."""
        self._done += 1
        self._measured += seconds

    def left(self, running: float) -> float:
        """Seconds left, where the step at work has run for `running` seconds.

        This machine may be faster or slower than the expectation, as the steps so far tell.
        """
        expected = sum(self._costs[: self._done])
        rate = self._measured / expected if expected else 1.0
        current, others = self._costs[self._done : self._done + 1], self._costs[self._done + 1 :]
        return rate * sum(others) + max(rate * sum(current) - running, 0.0)


class StepDisplay:
    """Tells a person which step is at work, which are done, and how long it may take.

    Use it as a context. On a terminal it draws one bar, elsewhere it prints one line per step.

    Args:
      console: Where to.
      clock: Seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic):
        self._console, self._clock = console, clock
        self._estimate = RemainingTime([])
        self._total = self._number = 0
        self._began = clock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> StepDisplay:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def plan(self, steps: Sequence[Step], cached: int) -> None:
        """These will be computed; `cached` others are there already."""
        self._estimate = RemainingTime([step.cost for step in steps])
        self._total = len(steps)
        there = f", {cached} there already" if cached else ""
        self._line(f"{self._total} {'step' if self._total == 1 else 'steps'} to compute{there}")
        if steps and self._console.is_terminal:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(20), _Left(self))
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=self._total)
            self._bar.start()

    def begin(self, step: Step) -> None:
        """A step begins."""
        self._number += 1
        self._began = self._clock()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=step.title, completed=self._number - 1)

    def end(self, step: Step, seconds: float) -> None:
        """A step is done."""
        self._estimate.end(seconds)
        self._began = self._clock()
        left = f"; {self.left()} left" if self._number < self._total else ""
        self._line(f"[{self._number}/{self._total}] {step.title}: {seconds:,.1f} s{left}")

    def left(self) -> str:
        """The time left, in words."""
        return in_words(self._estimate.left(self._clock() - self._began))

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


class _Left(ProgressColumn):
    """The time left, as the display estimates it."""

    # Rich asks a few times a second; once is enough to read.
    max_refresh = 1.0

    def __init__(self, display: StepDisplay):
        self._display = display
        super().__init__()

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:.0f}/{task.total:.0f}, {self._display.left()} left")


def in_words(seconds: float) -> str:
    """A duration as people say it: `under a minute`, `about 12 min`, `about 3.5 h`."""
    if seconds < 60:
        return "under a minute"
    if seconds < 5_400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3_600:.1f} h"


def console_table(table: ResultTable) -> RichTable:
    """A table for the terminal; words wrap where there is little room, numbers never do.

    It may thus be wider than a narrow terminal: print it without a crop, which would take columns.
    """
    shown = RichTable(
        title=_rich(table.title),
        title_justify="left",
        title_style="",
        caption=_rich(table.note) if table.note else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for place, head in enumerate(table.head):
        if place:
            widest = max((_rich(row[place]).cell_len for row in table.rows), default=0)
            shown.add_column(_rich(head), justify="right", overflow="fold", min_width=widest)
        else:
            shown.add_column(_rich(head), overflow="fold", min_width=12)
    for row in table.rows:
        shown.add_row(*(_rich(cell) for cell in row))
    return shown


def _rich(text: str) -> Text:
    shown = Text()
    for part, bold in pieces(text):
        shown.append(part, style="bold" if bold else "")
    return shown
