"""`pebr query`: answers from a release, in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len, set_cell_size
from rich.markup import escape
from rich.text import Text

from pebr_tf.cli.output import current_step, make_console
from pebr_tf.errors import UserError

if TYPE_CHECKING:
    from serving.retrieval import RetrievalResponse

# Queries per batch: few calls, and the first answers soon appear.
BATCH = 256


@click.command()
@click.option(
    "--release",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="A release, or a folder of releases: the latest.",
)
@click.option("--recall", type=float, help="Share of the relevant items to keep, on average.")
@click.option("--share", type=float, help="Share of each query's own relevant items to keep.")
@click.option("--budget", type=float, help="Average items per query.")
@click.option("--top-k", type=int, help="Items per query.")
@click.option("--score", type=float, help="Least cosine.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Items to print."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per query.")
@click.argument("queries", nargs=-1, required=True, metavar="QUERY...")
def query(
    release: Path,
    recall: float | None,
    share: float | None,
    budget: float | None,
    top_k: int | None,
    score: float | None,
    limit: int,
    as_json: bool,
    queries: tuple[str, ...],
) -> None:
    """Answer queries from a release.

    Without a knob, the default of the release decides how many items are returned. A QUERY of -
    reads queries from standard input, one per line.
    """
    knobs = {
        "recall": recall,
        "share": share,
        "budget": budget,
        "top_k": top_k,
        "score": score,
    }
    given = {name: value for name, value in knobs.items() if value is not None}
    if len(given) > 1:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UserError(f"at most one knob may be given. Received: {named}.")
    knob, value = next(iter(given.items()), (None, None))
    texts = _texts(queries)
    from pebr_tf.release.release import find_release
    from serving.retriever import Retriever

    with current_step("loading the release"):
        retriever = Retriever.load(find_release(release))
    show: Callable[[RetrievalResponse, int, int], None] = _print_json if as_json else _print_table
    for begin in range(0, len(texts), BATCH):
        answer = retriever.retrieve(texts[begin : begin + BATCH], knob, value)
        for index in range(len(answer)):
            if not as_json and begin + index:
                click.echo()
            show(answer, index, limit)


def _texts(queries: tuple[str, ...]) -> list[str]:
    texts = []
    for text in queries:
        if text == "-":
            texts += [line.strip() for line in sys.stdin if line.strip()]
        elif text.strip():
            texts.append(text)
        else:
            raise UserError(f"a query must be a text that is not blank. Received: {text!r}.")
    if not texts:
        raise UserError("standard input must hold one query per line. Received: nothing.")
    return texts


def _print_json(answer: RetrievalResponse, index: int, limit: int) -> None:
    items = answer.items
    content = {
        "query": answer.queries[index],
        "knob": answer.knob,
        "value": answer.value,
        "stratum": answer.stratum(index),
        "count": int(items.counts[index]),
        "threshold": _number(items.thresholds[index]),
        "level": _number(answer.encoded.level[index]),
        "level_source": answer.level_source,
        "expected_recall": _number(answer.expected_recall[index]),
        "truncated": bool(items.truncated[index]),
        "unfamiliar": bool(answer.encoded.unfamiliar[index]),
        "notes": answer.notes,
        "items": answer.rows(index, limit),
    }
    click.echo(json.dumps(content, ensure_ascii=False))


def _print_table(answer: RetrievalResponse, index: int, limit: int) -> None:
    console = make_console()
    count = int(answer.items.counts[index])
    facts = [answer.stratum(index), f"{count:,} item{'s' if count != 1 else ''}"]
    if (threshold := _number(answer.items.thresholds[index])) is not None:
        facts.append(f"cosine from {threshold:.3f}")
    if (expected := _number(answer.expected_recall[index])) is not None:
        digits = 0 if expected >= 0.1 else 1
        facts.append(f"expected to keep {expected:.{digits}%} of the relevant")
    if answer.encoded.unfamiliar[index]:
        facts.append("unfamiliar: no recall is expected")
    if answer.items.truncated[index]:
        facts.append("cut by the limit")
    text = escape(_plain(answer.queries[index]))
    console.print(f"[bold]{text}[/bold]  [dim]{' · '.join(facts)}[/dim]")
    for line in _lines(answer.rows(index, limit), list(answer.columns)):
        console.print(line, no_wrap=True, overflow="ellipsis")
    for note in answer.notes:
        console.print(f"[yellow]{escape(note)}[/yellow]")
    if count > limit:
        console.print(f"[dim]{count - limit:,} more[/dim]")


def _lines(rows: list[dict[str, Any]], columns: list[str]) -> Iterator[Text]:
    """Rank, cosine, id and payload of each item, in columns as wide as they need to be."""
    cells = []
    for rank, row in enumerate(rows, start=1):
        known = (_plain(row[name] or "") for name in columns)
        cells.append([str(rank), f"{row['score']:.3f}", _plain(str(row["item_id"])), *known])
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    for row_cells in cells:
        position, score = row_cells[0].rjust(widths[0]), row_cells[1].rjust(widths[1])
        item_id, *payload = map(set_cell_size, row_cells[2:], widths[2:])
        yield Text.assemble(
            (f"{position}  ", "dim"),
            f"{score}  ",
            (f"{item_id}  ", "dim"),
            "  ".join(payload).rstrip(),
        )


def _plain(text: str) -> str:
    printable = (character if character.isprintable() else " " for character in text)
    return " ".join("".join(printable).split())


def _number(value: float) -> float | None:
    """A finite number, or None: NaN, or a threshold that all items pass."""
    return float(value) if abs(value) < float("inf") else None
