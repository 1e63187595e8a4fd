"""The table that ends a run in the terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from pebr_tf.report.formats import DASH, count, share
from pebr_tf.report.reading import ORACLE, best, entries, lookup, number
from pebr_tf.report.verdict import outcome

_MEASURES = ("precision", "recall")


def summary_table(evaluation: dict[str, Any]) -> Table:
    """Precision and recall of each policy at each average k; calibration error of the default.

    Args:
      evaluation: The content of evaluation.json. What it lacks is shown as an en dash.

    Returns:
      A table 80 characters wide or less; the best of each column is bold, the oracle last.
    """
    policies = entries(evaluation, "policies")
    levels = entries(evaluation, "average_k")
    table = Table(
        title="Precision/recall on held-out clicks, at an average of k items a query",
        title_justify="left",
        caption=Text(outcome(evaluation)),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="",
        caption_style="green" if lookup(evaluation, "blessed") else "red",
        pad_edge=False,
    )
    table.add_column("policy", no_wrap=True, overflow="ellipsis")
    for k in levels:
        table.add_column(f"k = {count(k)}", justify="right", no_wrap=True)
    table.add_column("calibration error", justify="right", min_width=11)
    tops = {(k, m): best(policies, k, "overall", m) for k in levels for m in _MEASURES}
    ordered = sorted(policies, key=lambda policy: lookup(policy, "name") == ORACLE)
    for at, policy in enumerate(ordered):
        following = ordered[at + 1 : at + 2]
        default = bool(lookup(policy, "default"))
        error = share(number(evaluation, "calibration", "error", "overall")) if default else ""
        table.add_row(
            Text(str(lookup(policy, "title") or lookup(policy, "name"))),
            *(_pair(policy, k, tops) for k in levels),
            error,
            style="cyan" if default else "dim" if lookup(policy, "name") == ORACLE else None,
            end_section=any(lookup(after, "name") == ORACLE for after in following),
        )
    return table


def _pair(policy: Any, k: int, tops: dict[tuple[int, str], float | None]) -> Text:
    text = Text()
    for measure in _MEASURES:
        value = number(policy, "at", str(k), "overall", measure)
        wins = value is not None and round(value, 3) == tops[k, measure]
        if text:
            text.append("/")
        text.append(
            # Three digits after the point fill a column; a leading 0 says nothing.
            DASH if value is None else share(value).removeprefix("0"),
            style="bold" if wins and lookup(policy, "name") != ORACLE else "",
        )
    return text
