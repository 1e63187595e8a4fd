"""What an experiment hands to its readers: figures, tables, plots and a few sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ResultTable:
    """A table of text.

    Attributes:
      title: What it shows.
      head: Titles of the columns; the first column is words, the others are numbers.
      rows: Cells, as many a row as `head` has; `**x**` is bold.
      note: A sentence or two below it.

    Raises:
      ValueError: A row has another number of cells than the head.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(
                    f"Rows of {self.title!r} must have {len(self.head)} cells. Received: {row!r}."
                )


@dataclass(frozen=True)
class Plot:
    """A plot that is drawn when it is written.

    Attributes:
      name: Stem of its files.
      title: Above it, on the page.
      caption: What a reader sees in it; also the text for screen readers.
      draw: Draws it into an empty figure, in the style of `plots`.
      size: Width and height, inches.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Figure], None]
    size: tuple[float, float] = (8.0, 4.5)


@dataclass(frozen=True)
class ExperimentResults:
    """All that an experiment writes.

    Attributes:
      title: Of the page.
      summary: Paragraphs for readers who read nothing else; the first says what was found.
      figures: Every number, as JSON; NumPy scalars and arrays too.
      tables: The first is the one that the command prints.
      plots: In the order of the page.
    """

    title: str
    summary: tuple[str, ...]
    figures: dict[str, Any]
    tables: tuple[ResultTable, ...]
    plots: tuple[Plot, ...]
