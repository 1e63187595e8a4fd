"""The top of the page: the outcome, what it means in words, and the key figures."""

from __future__ import annotations

from typing import Any

from pebr_tf.metrics import STRATA
from pebr_tf.report.formats import DASH, change, count, milliseconds, percent, share
from pebr_tf.report.markup import Markup, element
from pebr_tf.report.reading import (
    default_policy,
    entries,
    lookup,
    middle_k,
    named,
    number,
    place,
)
from pebr_tf.report.verdict import outcome


def headline(evaluation: dict[str, Any], links: list[tuple[str, str]]) -> Markup:
    """The head of the page.

    Args:
      evaluation: The content of evaluation.json.
      links: Identifier and title of each section.
    """
    blessed = bool(lookup(evaluation, "blessed"))
    word, colon, reason = outcome(evaluation).partition(":")
    return element(
        "header",
        element("p", "Retrieval evaluation", class_="eyebrow"),
        element("h1", element("span", word, class_="good" if blessed else "bad"), colon, reason),
        *(element("p", sentence, class_="deck") for sentence in _sentences(evaluation)),
        element(
            "nav",
            *(element("a", title, href=f"#{identifier}") for identifier, title in links),
            aria_label="Sections",
        ),
    )


def tiles(evaluation: dict[str, Any]) -> Markup:
    """The key figures."""
    k = middle_k(evaluation)
    errors = {
        stratum: error
        for stratum in STRATA
        if (error := number(evaluation, "calibration", "error", stratum)) is not None
    }
    worst = max(errors, key=lambda stratum: errors[stratum], default=None)
    figures = lookup(evaluation, "default_knob", "figures")
    batch = place(entries(evaluation, "latency", "batch"), 0)
    return element(
        "dl",
        _against_top_k(evaluation, "recall", k),
        _against_top_k(evaluation, "precision", k),
        _tile(
            "Calibration error",
            share(number(evaluation, "calibration", "error", "overall")),
            f"worst stratum: {worst} {share(errors[worst])}" if worst else "of the recall knob",
        ),
        _tile("Empty rate", percent(number(figures, "empty")), f"at {_knob(evaluation)}"),
        _tile(
            "Items, median query",
            count(number(figures, "p50")),
            f"p99 {count(number(figures, 'p99'))}",
        ),
        _tile(
            "Index recall",
            share(number(evaluation, "index", "recall_macro")),
            f"against exact search; micro {share(number(evaluation, 'index', 'recall_micro'))}",
        ),
        _tile(
            "Latency, p99",
            milliseconds(place(entries(evaluation, "latency", "p99_ms"), 0)),
            f"batch of {count(batch)}; median "
            + milliseconds(place(entries(evaluation, "latency", "p50_ms"), 0)),
        ),
        class_="tiles",
    )


def _sentences(evaluation: dict[str, Any]) -> list[str]:
    k, policy = middle_k(evaluation), default_policy(evaluation)
    top_k = named(entries(evaluation, "policies"), "top_k")
    sentences = []
    if policy is not None and k is not None:
        ours, theirs = (lookup(entry, "at", str(k), "overall") for entry in (policy, top_k))
        sentences.append(
            f"With {count(k)} items a query on average, {lookup(policy, 'title')} finds "
            f"{percent(number(ours, 'recall'))} of the held-out clicks at a precision of "
            f"{percent(number(ours, 'precision'))}; the best {count(k)} of every query find "
            f"{percent(number(theirs, 'recall'))} at {percent(number(theirs, 'precision'))}."
        )
    figures = lookup(evaluation, "default_knob", "figures")
    if figures is not None:
        sentences.append(
            f"Served at {_knob(evaluation)}, it keeps {percent(number(figures, 'recall'))} with "
            f"{count(number(figures, 'average'))} items a query on average: half of the queries "
            f"get at most {count(number(figures, 'p50'))}, one in a hundred more than "
            f"{count(number(figures, 'p99'))}."
        )
    return sentences


def _knob(evaluation: dict[str, Any]) -> str:
    knob = lookup(evaluation, "default_knob", "knob")
    value = number(evaluation, "default_knob", "value")
    return f"{knob} {DASH if value is None else f'{value:g}'}" if knob else "the default knob"


def _against_top_k(evaluation: dict[str, Any], measure: str, k: int | None) -> Markup:
    path = ("at", str(k), "overall", measure)
    ours = number(default_policy(evaluation), *path)
    theirs = number(named(entries(evaluation, "policies"), "top_k"), *path)
    difference = None if ours is None or theirs is None else ours - theirs
    return _tile(
        f"{measure.capitalize()} at k = {count(k)}",
        share(ours),
        f"top_k {share(theirs)}, {change(share(difference))}",
    )


def _tile(name: str, value: str, remark: str) -> Markup:
    return element(
        "div",
        element("dt", name),
        element("dd", value, class_="value"),
        element("dd", remark),
    )
