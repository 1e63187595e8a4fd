"""`pebr query`: answers from a release, in this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pebr_tf.cli.options import release_option
from pebr_tf.cli.output import current_step, make_console
from pebr_tf.errors import UserError

if TYPE_CHECKING:
    from serving.retrieval import RetrievalResponse

# Queries per batch: few calls, and the first answers soon appear.
BATCH = 256


@click.command()
@release_option
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
    release: Path, limit: int, as_json: bool, queries: tuple[str, ...], **knobs: float | None
) -> None:
    """Answer queries from a release.

    Without a knob, the default of the release decides how many items are returned. A QUERY of -
    reads queries from standard input, one per line.
    """
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
    for begin in range(0, len(texts), BATCH):
        answer = retriever.retrieve(texts[begin : begin + BATCH], knob, value)
        for index in range(len(answer)):
            if as_json:
                _print_json(answer, index, limit)
                continue
            if begin + index:
                click.echo()
            _print_table(answer, index, limit)


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
        **{
            name: _number(getattr(answer.encoded, name)[index])
            for name in ("tau", "alpha", "beta", "level")
        },
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
        percent = f"{expected:.0%}" if expected >= 0.1 else f"{100 * expected:.2g}%"
        facts.append(f"expected to keep {percent} of the relevant")
    if answer.encoded.unfamiliar[index]:
        facts.append("unfamiliar: no recall is expected")
    if answer.items.truncated[index]:
        facts.append("cut by the limit")
    text = escape(_plain(answer.queries[index]))
    console.print(f"[bold]{text}[/bold]  [dim]{' · '.join(facts)}[/dim]")
    if rows := answer.rows(index, limit):
        console.print(_items_table(rows, list(answer.columns)))
    for note in answer.notes:
        console.print(f"[yellow]{escape(note)}[/yellow]")
    if count > limit:
        console.print(f"[dim]{count - limit:,} more[/dim]")


def _items_table(rows: list[dict[str, Any]], columns: list[str]) -> Table:
    """Rank, cosine, id and payload of each item."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    for rank, row in enumerate(rows, start=1):
        payload = (Text(_plain(row[name] or ""), no_wrap=True) for name in columns)
        table.add_row(str(rank), f"{row['score']:.3f}", Text(_plain(str(row["item_id"]))), *payload)
    return table


def _plain(text: str) -> str:
    printable = (character if character.isprintable() else " " for character in text)
    return " ".join("".join(printable).split())


def _number(value: float) -> float | None:
    """A finite number, or None: NaN, or a threshold that all items pass."""
    return float(value) if abs(value) < float("inf") else None
