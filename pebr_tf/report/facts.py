"""Tables of one subject each: the knobs, single queries, gates, latency, data and model."""

from __future__ import annotations

from typing import Any

from pebr_tf.metrics import STRATA
from pebr_tf.report.formats import (
    DASH,
    amount,
    average,
    change,
    count,
    finite,
    milliseconds,
    percent,
    share,
    wide_minus,
)
from pebr_tf.report.markup import Markup, element, heads, row, table
from pebr_tf.report.reading import GROUPS, entries, lookup, number, place
from pebr_tf.report.verdict import received


def calibration_table(evaluation: dict[str, Any]) -> Markup:
    """For each share asked for: what was kept, and at how many items.

    Where calibration cannot vouch for a share it promises another; a column then says which.
    """
    asked = entries(evaluation, "calibration", "asked")
    promised = entries(evaluation, "calibration", "promised", "overall")
    differs = any(share(a) != share(b) for a, b in zip(asked, promised, strict=False))
    columns = {"promised": promised} if differs else {}
    for group in GROUPS:
        columns[group] = entries(evaluation, "calibration", "kept", group)
    averages = entries(evaluation, "calibration", "average")
    knob = lookup(evaluation, "default_knob", "knob")
    served = number(evaluation, "default_knob", "value") if knob == "recall" else None
    rows = [
        row(
            share(value),
            *(share(place(column, at)) for column in columns.values()),
            average(place(averages, at)),
            class_="default" if served is not None and finite(value) == served else None,
        )
        for at, value in enumerate(asked)
    ]
    errors = [share(number(evaluation, "calibration", "error", group)) for group in GROUPS]
    blank = [""] * differs
    rows.append(row("mean error", *blank, *errors, "", class_="total"))
    return table(
        None, [heads("asked", *columns, "items a query")], rows, "Recall asked for and recall kept"
    )


def counts_table(evaluation: dict[str, Any]) -> Markup:
    """Numbers of items at the default knob, by stratum."""
    knob = lookup(evaluation, "default_knob")
    groups = {
        "overall": lookup(knob, "figures"),
        **{stratum: lookup(knob, "by_stratum", stratum) for stratum in STRATA},
    }
    rows = [
        row(
            group,
            average(number(figures, "average")),
            *(count(number(figures, key)) for key in ("p10", "p50", "p90", "p99")),
            *(percent(number(figures, key)) for key in ("empty", "capped")),
        )
        for group, figures in groups.items()
    ]
    head = heads("queries", "average", "p10", "median", "p90", "p99", "empty", "capped")
    return table(None, [head], rows, "Items a query by stratum")


def examples_table(evaluation: dict[str, Any]) -> Markup:
    """Single queries: what they got and what of the relevant it holds."""
    rows = [
        row(
            # The page cannot know in which direction a query is written; the browser can.
            element("bdi", str(lookup(example, "query") or DASH), dir="auto"),
            element("td", str(lookup(example, "stratum") or DASH)),
            count(lookup(example, "count")),
            count(lookup(example, "relevant")),
            amount(lookup(example, "kept")),
            wide_minus(share(lookup(example, "threshold"))),
        )
        for example in entries(evaluation, "examples")
    ]
    head = heads("query", "stratum", "items", "relevant", "kept", "threshold", words=2)
    return table(None, [head], rows, "Examples of queries", "examples")


def budget_table(evaluation: dict[str, Any]) -> Markup:
    """The average asked for and the average received."""
    rows = []
    answers = entries(evaluation, "budget", "received")
    for at, asked in enumerate(entries(evaluation, "budget", "asked")):
        answer, wanted = finite(place(answers, at)), finite(asked)
        off = answer / wanted - 1 if answer is not None and wanted else None
        rows.append(row(count(asked), average(answer), change(percent(off))))
    return table(
        None, [heads("asked", "received", "difference")], rows, "Budget asked for and received"
    )


def gates_table(evaluation: dict[str, Any]) -> Markup:
    """What was required, what was received, and whether that passed."""
    rows = []
    for gate in entries(evaluation, "gates"):
        passed = bool(lookup(gate, "passed"))
        verdict = element(
            "td", "✓ passed" if passed else "✗ failed", class_="good" if passed else "bad"
        )
        required = str(lookup(gate, "required") or DASH)
        required = required.replace(">=", "≥").replace("<=", "≤")
        title = str(lookup(gate, "title") or lookup(gate, "name"))
        rows.append(row(title, required, wide_minus(received(gate)), verdict))
    head = element(
        "tr",
        element("th", "gate", scope="col"),
        element("th", "required", scope="col", class_="number"),
        element("th", "received", scope="col", class_="number"),
        element("th", "outcome", scope="col"),
    )
    return table(None, [head], rows, "Gates", "named")


def latency_table(evaluation: dict[str, Any]) -> Markup:
    """Time of a search by the size of its batch."""
    times = {key: entries(evaluation, "latency", key) for key in ("p50_ms", "p99_ms")}
    rates = entries(evaluation, "latency", "queries_per_second")
    rows = [
        row(
            count(size),
            milliseconds(place(times["p50_ms"], at)),
            milliseconds(place(times["p99_ms"], at)),
            count(place(rates, at)),
        )
        for at, size in enumerate(entries(evaluation, "latency", "batch"))
    ]
    head = heads("batch", "median", "p99", "queries a second")
    return table(None, [head], rows, "Latency by batch")


def model_and_data(evaluation: dict[str, Any]) -> Markup:
    """What was trained, on what, and what was measured with it."""
    model, data, index = (lookup(evaluation, part) for part in ("model", "data", "index"))
    strata = ", ".join(f"{count(number(data, 'strata', stratum))} {stratum}" for stratum in STRATA)
    return element(
        "div",
        _facts(
            "Model",
            ("Loss", _word(model, "loss")),
            ("Logit family", _word(model, "family")),
            ("Dimension", count(number(model, "dimension"))),
            ("Training steps", count(number(model, "steps"))),
            ("Policy", _word(model, "policy")),
            ("Level temperature T", _plain(number(model, "level_temperature"))),
        ),
        _facts(
            "Data",
            ("Items", count(number(data, "items"))),
            ("Training clicks", count(number(data, "train_clicks"))),
            ("Calibration queries", count(number(data, "calibrate_queries"))),
            ("Test queries", count(number(data, "test_queries"))),
            ("Test clicks", count(number(data, "test_clicks"))),
            ("Test queries by stratum", strata),
            ("Span", _word(data, "span")),
        ),
        _facts(
            "Index",
            ("Kind", _word(index, "kind")),
            ("Items", count(number(index, "items"))),
            ("Recall, macro", share(number(index, "recall_macro"))),
            ("Recall, micro", share(number(index, "recall_micro"))),
            ("Measured on", f"{count(number(index, 'queries'))} queries"),
        ),
        class_="facts",
    )


def _facts(title: str, *pairs: tuple[str, str]) -> Markup:
    lines = [element("div", element("dt", name), element("dd", value)) for name, value in pairs]
    return element("div", element("h3", title), element("dl", *lines))


def _word(tree: Any, name: str) -> str:
    value = lookup(tree, name)
    return str(value) if isinstance(value, str | int) else DASH


def _plain(value: float | None) -> str:
    return DASH if value is None else f"{value:g}"
