"""How the commands print: facts in two columns, and the current step."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console
from rich.markup import escape

# Where no terminal sets a width, nothing is cut off.
_UNBOUNDED = 10_000


def make_console() -> Console:
    """Standard output; a line is as long as it needs to be unless a terminal sets a width."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_UNBOUNDED)


def print_facts(console: Console, facts: Mapping[str, object], width: int = 10) -> None:
    """Prints one line per fact: its name in a dim column of `width`, then its value."""
    for name, value in facts.items():
        console.print(f"[dim]{name:<{width}}[/dim]{escape(str(value))}", soft_wrap=True)


@contextlib.contextmanager
def current_step(first: str) -> Iterator[Callable[[str], None]]:
    """Yields a callback that shows the current step: in place on a terminal, else as lines.

    Only a terminal shows the `first` step.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield console.print
        return
    with console.status(first) as status:
        yield status.update
