"""Shows the progress of a run: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.status import Status

# The component that shows its own bar.
TRAINER = "Trainer"
# Number of lines per training without a terminal.
LINES = 10


class RunDisplay:
    """One line per component."""

    def __init__(self, console: Console):
        self._console = console
        self._status: Status | None = None

    def __enter__(self) -> RunDisplay:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def begin(self, name: str) -> None:
        """Called when a component starts."""
        self._stop()
        if self._console.is_terminal and name != TRAINER:
            self._status = self._console.status(name)
            self._status.start()

    def end(self, name: str, took: str) -> None:
        """Called when a component has finished, with its time or why it took none."""
        self._stop()
        self._console.print(f"{name:<22}[dim]{took:>10}[/dim]")

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


@contextlib.contextmanager
def training_progress(steps: int, begin: int) -> Iterator[Callable[[int, float], None]]:
    """Yields a callback that takes the step and the loss."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _lines(console, steps, begin)
        return
    columns = (
        TextColumn("  training"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,} steps{task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("training", total=steps, completed=begin, loss="")
        yield lambda step, loss: bar.update(task, completed=step, loss=f", loss {loss:.3f}")


def _lines(console: Console, steps: int, begin: int) -> Callable[[int, float], None]:
    state = {"part": LINES * begin // steps}

    def show(step: int, loss: float) -> None:
        if (part := LINES * step // steps) > state["part"]:
            state["part"] = part
            console.print(f"  training  {step:,} of {steps:,} steps, loss {loss:.3f}")

    return show
