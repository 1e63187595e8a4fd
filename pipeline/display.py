"""Shows the progress of a run: bars on a terminal, plain lines elsewhere."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

# The component that shows its own bar.
TRAINER = "Trainer"
# Number of lines per training without a terminal.
LINES = 10


class RunDisplay(contextlib.ExitStack):
    """One line per component; the stack holds the status of the one that runs."""

    def __init__(self, console: Console):
        super().__init__()
        self._console = console

    def begin(self, name: str) -> None:
        self.close()
        if self._console.is_terminal and name != TRAINER:
            self.enter_context(self._console.status(name))

    def end(self, name: str, took: str) -> None:
        """Called when a component has finished, with its time or why it took none."""
        self.close()
        self._console.print(f"{name:<22}[dim]{took:>10}[/dim]")


@contextlib.contextmanager
def training_progress(
    steps: int, begin: int, shown: bool
) -> Iterator[Callable[[int, float], None]]:
    """Yields a callback that takes the step and the loss; silent unless `shown`."""
    console = Console(stderr=True, highlight=False, quiet=not shown)
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
