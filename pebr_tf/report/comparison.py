"""An evaluation beside that of the last release, and beside the last blessed model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pebr_tf.metrics import STRATA
from pebr_tf.report.formats import DASH, change, count, finite, milliseconds, percent, share
from pebr_tf.report.markup import Markup, element, row, table
from pebr_tf.report.reading import default_policy, entries, lookup, named, number, place

_Format = Callable[[object], str]
# Name, this value, the previous one, how it is shown, and whether more is better; None if neither.
_Measure = tuple[str, float | None, float | None, _Format, bool | None]


def comparison_table(evaluation: dict[str, Any]) -> Markup:
    """The measures of both releases, with the difference and what it means.

    Args:
      evaluation: The content of evaluation.json, with its `previous`.
    """
    rows = []
    for name, now, before, text, rising in _measures(evaluation, evaluation["previous"]):
        difference = None if now is None or before is None else now - before
        shown = change(text(difference))
        rows.append(row(name, text(before), text(now), shown, _meaning(shown, rising)))
    version = lookup(evaluation, "previous", "version")
    head = element(
        "tr",
        element("th", "measure of the default policy", scope="col"),
        element(
            "th",
            "previous" if version is None else f"release {version}",
            scope="col",
            class_="number",
        ),
        element("th", "this one", scope="col", class_="number"),
        element("th", "change", scope="col", class_="number"),
        element("th", "which is", scope="col"),
    )
    return table(None, [head], rows, "Comparison with the previous release", "named")


def baseline_table(evaluation: dict[str, Any]) -> Markup:
    """Both models on the same clicks.

    Args:
      evaluation: The content of evaluation.json, with its `baseline`.
    """
    earlier = entries(evaluation, "baseline", "policies")
    fixed, before = named(earlier, "top_k"), default_policy({"policies": earlier})
    rows = []
    for k in entries(evaluation, "average_k"):
        for measure in ("recall", "precision"):
            path = ("at", str(k), "overall", measure)
            base, old, new = (
                number(policy, *path) for policy in (fixed, before, default_policy(evaluation))
            )
            difference = None if old is None or new is None else new - old
            shown = change(share(difference))
            name = f"{measure} at k = {count(k)}"
            rows.append(
                row(name, share(base), share(old), share(new), shown, _meaning(shown, True))
            )
    titles = ("its top_k", "its default policy", "this one", "change")
    head = element(
        "tr",
        element("th", "measure", scope="col"),
        *(element("th", title, scope="col", class_="number") for title in titles),
        element("th", "which is", scope="col"),
    )
    return table(None, [head], rows, "Comparison with the last blessed model", "named")


def _measures(this: dict[str, Any], previous: dict[str, Any]) -> Iterator[_Measure]:
    both = this, previous

    def pair(*path: str) -> tuple[float | None, float | None]:
        return number(this, *path), number(previous, *path)

    policies = [default_policy(evaluation) for evaluation in both]
    for k in entries(this, "average_k"):
        for measure in ("recall", "precision"):
            now, before = (number(policy, "at", str(k), "overall", measure) for policy in policies)
            yield f"{measure} at k = {count(k)}", now, before, share, True
    yield "calibration error", *pair("calibration", "error", "overall"), share, False
    for stratum in STRATA:
        errors = pair("calibration", "error", stratum)
        yield f"calibration error, {stratum}", *errors, share, False
    figures = "default_knob", "figures"
    yield "empty rate", *pair(*figures, "empty"), percent, False
    yield "items a query, median", *pair(*figures, "p50"), count, None
    yield "items a query, p99", *pair(*figures, "p99"), count, None
    yield "index recall", *pair("index", "recall_macro"), share, True
    now, before = (finite(place(entries(e, "latency", "p99_ms"), 0)) for e in both)
    yield "latency, p99", now, before, milliseconds, False


def _meaning(shown: str, rising: bool | None) -> Markup:
    """What a change is, by its sign as it is shown: one that rounds to nothing has none."""
    if shown == DASH:
        return element("td", DASH)
    if shown[0].isdigit():
        return element("td", "the same", class_="quiet")
    more = shown.startswith("+")
    if rising is None:
        return element("td", "more" if more else "fewer", class_="quiet")
    better = more == rising
    return element("td", "better" if better else "worse", class_="good" if better else "bad")
