"""Precision and recall of every policy at equal averages, overall and by stratum."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pebr_tf.metrics import STRATA
from pebr_tf.report.formats import change, count, percent, share
from pebr_tf.report.markup import Markup, element, joined, nothing, row, table
from pebr_tf.report.reading import (
    GROUPS,
    ORACLE,
    best,
    default_policy,
    entries,
    lookup,
    middle_k,
    named,
    number,
)

_MEASURES = ("precision", "recall")
# Ties may keep a policy from reaching an average; beyond this share it is no longer equal.
_UNEQUAL = 0.02


def by_average(policies: list[Any], evaluation: dict[str, Any], label: str) -> Markup:
    """The table of all queries: a pair of columns an average k, and the empty rate.

    Args:
      policies: Of the evaluation, or those of its unseen pairs.
      evaluation: The content of evaluation.json.
      label: What the table is called.
    """
    levels = entries(evaluation, "average_k")
    middle = middle_k(evaluation)
    return _comparison(
        None,
        label,
        policies,
        [(f"k = {count(k)}", k, "overall") for k in levels],
        last=None if middle is None else (f"empty at {count(middle)}", middle),
    )


def by_stratum(policies: list[Any], evaluation: dict[str, Any]) -> Markup:
    """A table for each stratum, and what the default gains over top_k in each."""
    if not policies:
        return nothing()
    levels = entries(evaluation, "average_k")
    all_queries = count(number(evaluation, "data", "test_queries"))
    tables = []
    for stratum in STRATA:
        queries = count(number(evaluation, "data", "strata", stratum))
        tables.append(
            _comparison(
                f"{stratum.capitalize()}: {queries} of {all_queries} queries",
                f"Precision and recall of {stratum} queries",
                policies,
                [(f"k = {count(k)}", k, stratum) for k in levels],
            )
        )
    return element("div", *tables, _gains(evaluation, levels), class_="columns")


def _gains(evaluation: dict[str, Any], levels: Sequence[int]) -> Markup | None:
    default = default_policy(evaluation)
    top_k = named(entries(evaluation, "policies"), "top_k")
    if default is None or top_k is None or default is top_k:
        return None
    rows = []
    for group in GROUPS:
        cells = []
        for k, measure in itertools.product(levels, _MEASURES):
            ours, theirs = (
                number(policy, "at", str(k), group, measure) for policy in (default, top_k)
            )
            gain = None if ours is None or theirs is None else ours - theirs
            cells.append(element("td", change(share(gain)), class_=_classes(measure)))
        rows.append(row(group, *cells))
    groups = [(f"k = {count(k)}", k, "overall") for k in levels]
    caption = f"What {lookup(default, 'title')} gains over top_k"
    return table(caption, _head("Queries", groups, None), rows, caption)


def unequal(policies: list[Any], evaluation: dict[str, Any]) -> Markup | None:
    """Which policies could not reach an average k, if any."""
    notes = [
        f"{lookup(policy, 'title')} {count(average)} at k = {count(k)}"
        for policy in policies
        for k in entries(evaluation, "average_k")
        if (average := number(policy, "at", str(k), "overall", "average")) is not None
        and abs(average - k) > _UNEQUAL * k
    ]
    if not notes:
        return None
    return element("p", f"Averages that could not be met: {'; '.join(notes)}.", class_="note")


def _comparison(
    caption: str | None,
    label: str,
    policies: list[Any],
    groups: Sequence[tuple[str, int, str]],
    last: tuple[str, int] | None = None,
) -> Markup:
    tops = {
        (k, group, measure): best(policies, k, group, measure)
        for _, k, group in groups
        for measure in _MEASURES
    }
    rows: dict[bool, list[Markup]] = {False: [], True: []}
    for policy in policies:
        cells = [
            _cell(policy, k, group, measure, tops[k, group, measure])
            for _, k, group in groups
            for measure in _MEASURES
        ]
        if last is not None:
            empty = percent(number(policy, "at", str(last[1]), "overall", "empty"))
            cells.append(element("td", empty, class_="number open"))
        rows[lookup(policy, "name") == ORACLE].append(
            element(
                "tr",
                element("th", _name(policy), scope="row"),
                *cells,
                class_="default" if lookup(policy, "default") else None,
            )
        )
    bodies = [
        element("tbody", *part, class_="apart" if oracle else None)
        for oracle, part in rows.items()
        if part
    ]
    return table(caption, _head("Policy", groups, last), bodies, label, "named")


def _head(
    first: str, groups: Sequence[tuple[str, int, str]], last: tuple[str, int] | None
) -> list[Markup]:
    spans = [
        element("th", title, scope="colgroup", colspan="2", class_="group open")
        for title, _, _ in groups
    ]
    pair = joined(
        [
            element("th", _abbreviated("P", "precision"), scope="col", class_="number open"),
            element("th", _abbreviated("R", "recall"), scope="col", class_="number"),
        ]
    )
    final = element("th", last[0], scope="col", rowspan="2", class_="number open") if last else None
    return [
        element("tr", element("th", first, scope="col", rowspan="2"), *spans, final),
        element("tr", *[pair] * len(groups)),
    ]


def _abbreviated(short: str, long: str) -> Markup:
    return element("abbr", short, title=long)


def _name(policy: Any) -> Markup:
    title = str(lookup(policy, "title") or lookup(policy, "name"))
    mark = element("span", "default", class_="tag") if lookup(policy, "default") else None
    return joined([title, mark])


def _cell(policy: Any, k: int, group: str, measure: str, top: float | None) -> Markup:
    value = number(policy, "at", str(k), group, measure)
    wins = value is not None and round(value, 3) == top and lookup(policy, "name") != ORACLE
    text: str = element("b", share(value), title="best of the column") if wins else share(value)
    return element("td", text, class_=_classes(measure))


def _classes(measure: str) -> str:
    # The first of a pair keeps its distance from the pair before.
    return "number open" if measure == _MEASURES[0] else "number"
