"""The report of an evaluation as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pebr_tf.files import replacing_file
from pebr_tf.report import facts
from pebr_tf.report.comparison import baseline_table, comparison_table
from pebr_tf.report.figures import calibration_chart, counts_chart, curves
from pebr_tf.report.markup import Markup, element, joined, section
from pebr_tf.report.policies import by_average, by_stratum, unequal
from pebr_tf.report.reading import entries, lookup
from pebr_tf.report.style import STYLE
from pebr_tf.report.summary import headline, tiles

# Nothing is loaded and nothing runs, whatever the text of a query tries.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_NOTES = (
    (
        "Equal average k.",
        "Policies give each query a list of its own length, so they are compared where they return "
        "the same number of items on average over all test queries: k. More recall at the same k "
        "means that the items went to the queries that needed them.",
    ),
    (
        "Precision and recall",
        "are macro averages: each query counts once, however many clicks it has. Relevant is what "
        "was clicked in the held-out split, so precision is low by nature: items that nobody was "
        "shown count as wrong. An empty list counts as precision 0.",
    ),
    (
        "The recall knob",
        "is the share of the relevant items to keep. It is calibrated on other queries than those "
        "measured here. It promises what is asked for, within the range that held-out clicks can "
        "vouch for; the calibration error is the mean distance between promised and kept. "
        "The budget knob is the average number of items a query.",
    ),
    (
        "The oracle",
        "knows what is relevant and picks the best length of each list in the same ranking. "
        "It shows how much a cut-off alone could gain.",
    ),
    (
        "Unseen pairs",
        "leave pairs of the training split out of candidates and truth, so that nothing "
        "memorised counts.",
    ),
    (
        "Strata",
        "are head, torso and tail queries by their share of the training clicks.",
    ),
)


def write_report(evaluation: dict[str, Any], path: Path) -> None:
    """Writes the report, whole or not at all.

    Args:
      evaluation: The content of evaluation.json. What it lacks is shown as an en dash.
      path: The HTML file; replaced if it exists.
    """
    page = render(evaluation)
    with replacing_file(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(evaluation: dict[str, Any]) -> str:
    """The report as text."""
    sections = _sections(evaluation)
    title = "Blessed" if lookup(evaluation, "blessed") else "Not blessed"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · retrieval evaluation"),
        element("style", Markup(STYLE)),
    )
    links = [(identifier, heading) for identifier, heading, _, _ in sections]
    body = element(
        "body",
        headline(evaluation, links),
        element(
            "main",
            tiles(evaluation),
            *(
                section(identifier, heading, note, *children)
                for identifier, heading, note, children in sections
            ),
        ),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _sections(
    evaluation: dict[str, Any],
) -> list[tuple[str, str, str | None, list[Markup | None]]]:
    """Identifier, title, note and content of each section, in order."""
    policies, unseen = entries(evaluation, "policies"), entries(evaluation, "unseen")
    marked = "Bold is the best of a column; the oracle stands apart."
    parts: list[tuple[str, str, str | None, list[Markup | None]]] = [
        (
            "policies",
            "Policies",
            f"Precision and recall on held-out clicks at an equal average of k items. {marked}",
            [
                by_average(policies, evaluation, "Precision and recall at equal average k"),
                unequal(policies, evaluation),
            ],
        ),
        (
            "strata",
            "By stratum",
            "The same cut-offs, measured on the queries of each stratum alone.",
            [by_stratum(policies, evaluation)],
        ),
        ("curves", "Curves", None, [curves(evaluation)]),
        (
            "calibration",
            "Calibration",
            "What is kept of the held-out clicks when a share of them is asked for.",
            [_beside(calibration_chart(evaluation), facts.calibration_table(evaluation))],
        ),
        (
            "counts",
            "Items a query",
            "At the default knob, with floor and limit.",
            [_beside(counts_chart(evaluation), facts.counts_table(evaluation))],
        ),
        (
            "examples",
            "Examples",
            "Test queries across the breadth, at the default knob. Threshold is the cosine where "
            "a list ends.",
            [facts.examples_table(evaluation)],
        ),
        (
            "unseen",
            "Unseen pairs",
            f"Pairs of the training split left out of candidates and truth. {marked}",
            [by_average(unseen, evaluation, "Precision and recall on unseen pairs")],
        ),
        (
            "budget",
            "Budget knob",
            "The average number of items asked for, and received on the test queries.",
            [facts.budget_table(evaluation)],
        ),
        ("gates", "Gates", None, [facts.gates_table(evaluation)]),
    ]
    if lookup(evaluation, "baseline"):
        parts.append(
            (
                "baseline",
                "Last blessed model",
                "Its towers on the clicks and the items of this run, with a level temperature "
                "tuned on them.",
                [baseline_table(evaluation)],
            )
        )
    if lookup(evaluation, "previous"):
        parts.append(("previous", "Previous release", None, [comparison_table(evaluation)]))
    parts.append(
        (
            "facts",
            "Model and data",
            None,
            [facts.model_and_data(evaluation), facts.latency_table(evaluation)],
        )
    )
    parts.append(("notes", "How to read this", None, [_notes()]))
    return parts


def _beside(chart: Markup, numbers: Markup) -> Markup:
    return element("div", chart, numbers, class_="columns")


def _notes() -> Markup:
    return joined(
        element("p", element("b", term), f" {text}", class_="reading") for term, text in _NOTES
    )
