"""The tables of the page as rows of text; report.html lays them out."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pebr_tf.metrics.results import GROUPS, ListSummary, PolicyResult
from pebr_tf.metrics.strata import STRATA
from pebr_tf.release.evaluation import (
    ModelEvaluation,
    PreviousRelease,
    default_result,
    named_policy,
)
from pebr_tf.report.formats import (
    DASH,
    average,
    change,
    count,
    milliseconds,
    percent,
    share,
    wide_minus,
)

MEASURES = ("precision", "recall")
ORACLE = "oracle"
# Ties may keep a policy from reaching an average; a larger difference is reported.
_UNEQUAL = 0.02


@dataclass(frozen=True)
class Cell:
    """Text of a table, with the CSS classes of its cell."""

    text: str
    style: str = "number"
    best: bool = False


_STATES = {
    "passed": Cell("✓ passed", "good"),
    "undecided": Cell("? undecided", "quiet"),
    "failed": Cell("✗ failed", "bad"),
}


@dataclass(frozen=True)
class Row:
    """A row: its head, then its cells; `style` is `default`, `total`, `apart` or nothing."""

    head: str
    cells: Sequence[Cell]
    style: str = ""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
      label: Its name for screen readers.
      head: Column heads, that of the rows' heads included.
      groups: Titles above pairs of columns P and R, which then follow `head`'s first.
      caption: Shown above the table.
    """

    label: str
    head: Sequence[Cell]
    rows: Sequence[Row]
    groups: Sequence[str] = ()
    caption: str = ""


def by_average(
    evaluation: ModelEvaluation, policies: Sequence[PolicyResult], label: str
) -> Table | None:
    """All queries: a pair of columns for each average k, and the empty rate."""
    if not policies:
        return None
    middle = evaluation.middle_k
    rows = _policy_rows(policies, evaluation.average_k, "overall", empty_at=middle)
    head = [Cell("Policy", ""), Cell(f"empty at {count(middle)}", "number open")]
    return Table(label, head, rows, _average_titles(evaluation))


def by_stratum(evaluation: ModelEvaluation) -> list[Table]:
    """One table per stratum, and the gain of the default policy over top_k in each."""
    total = count(evaluation.data.test_queries)
    titles = _average_titles(evaluation)
    tables = [
        Table(
            f"Precision and recall of {stratum} queries",
            [Cell("Policy", "")],
            _policy_rows(evaluation.policies, evaluation.average_k, stratum),
            titles,
            f"{stratum.capitalize()}: {count(evaluation.data.strata.get(stratum))} of {total} "
            "queries",
        )
        for stratum in STRATA
    ]
    default = default_result(evaluation.policies)
    top_k = named_policy(evaluation.policies, "top_k")
    if default is not top_k:
        rows = []
        for group in GROUPS:
            cells = []
            for k, measure in itertools.product(evaluation.average_k, MEASURES):
                both = (_figure(policy, k, group, measure) for policy in (default, top_k))
                cells.append(Cell(change(share(_difference(*both))), _pair_style(measure)))
            rows.append(Row(group, cells))
        caption = f"Gain of {default.title} over top_k"
        tables.append(Table(caption, [Cell("Queries", "")], rows, titles, caption))
    return tables


def unequal_averages(evaluation: ModelEvaluation) -> str:
    """The policies that could not reach an average k, in one sentence; empty if there are none."""
    notes = [
        f"{policy.title} {count(found)} at k = {count(k)}"
        for policy in evaluation.policies
        for k in evaluation.average_k
        if abs((found := policy.at[k]["overall"].average) - k) > _UNEQUAL * k
    ]
    return f"Averages that could not be met: {'; '.join(notes)}." if notes else ""


def calibration_table(evaluation: ModelEvaluation) -> Table:
    """For each requested recall: the measured one, and how many items it takes.

    A further column has the expected recall where that differs from the requested one.
    """
    found, knob = evaluation.calibration, evaluation.default_knob
    expected = found.expected["overall"]
    differs = any(share(a) != share(b) for a, b in zip(found.requested, expected, strict=True))
    columns: dict[str, Sequence[float | None]] = {"expected": expected} if differs else {}
    for group in GROUPS:
        columns[group] = found.measured.get(group, [None] * len(expected))
    rows = []
    for index, value in enumerate(found.requested):
        recalls = (share(column[index]) for column in columns.values())
        style = "default" if knob.knob == "recall" and knob.value == value else ""
        rows.append(_row(share(value), *recalls, average(found.average[index]), style=style))
    errors = (share(found.error.get(group)) for group in GROUPS)
    rows.append(_row("mean error", *[""] * differs, *errors, "", style="total"))
    head = _heads("requested", *columns, "items per query")
    return Table("Requested and measured recall", head, rows)


def counts_table(evaluation: ModelEvaluation) -> Table:
    names = ("average", "p10", "median", "p90", "p99", "empty", "truncated")
    rows = []
    for group in GROUPS:
        found = evaluation.default_knob.groups.get(group)
        texts = [DASH] * len(names)
        if found is not None:
            counts = (found.p10, found.p50, found.p90, found.p99)
            rates = (found.empty, found.truncated)
            texts = [average(found.average), *map(count, counts), *map(percent, rates)]
        rows.append(_row(group, *texts))
    return Table("Items per query by stratum", _heads("queries", *names), rows)


def budget_table(evaluation: ModelEvaluation) -> Table:
    budget = evaluation.budget
    rows = [
        _row(count(requested), average(measured), change(percent(measured / requested - 1)))
        for requested, measured in zip(budget.requested, budget.measured, strict=True)
    ]
    heads = _heads("requested", "measured", "difference")
    return Table("Requested and measured budget", heads, rows)


def gates_table(evaluation: ModelEvaluation) -> Table:
    """What was required, what was received of how many queries, and whether that passed."""
    rows = [
        Row(
            gate.title,
            [
                Cell(gate.required.replace(">=", "≥").replace("<=", "≤")),
                Cell(wide_minus(gate.received_text)),
                Cell(gate.measured_on),
                _STATES[gate.state],
            ],
        )
        for gate in evaluation.gates
    ]
    heads = _heads("gate", "required", "received", "queries")
    return Table("Gates", [*heads, Cell("outcome", "")], rows)


def latency_table(evaluation: ModelEvaluation) -> Table:
    rows = [
        _row(
            count(found.batch),
            milliseconds(found.p50_ms),
            milliseconds(found.p99_ms),
            count(found.queries_per_second),
        )
        for found in evaluation.latency
    ]
    return Table("Latency by batch", _heads("batch", "median", "p99", "queries per second"), rows)


def baseline_table(evaluation: ModelEvaluation) -> Table | None:
    """The last blessed model beside this one, on the same clicks."""
    if evaluation.baseline is None:
        return None
    earlier = evaluation.baseline.policies
    policies = named_policy(earlier, "top_k"), default_result(earlier)
    rows = []
    for k in evaluation.average_k:
        for measure in ("recall", "precision"):
            new = _figure(default_result(evaluation.policies), k, "overall", measure)
            top_k, old = (_figure(policy, k, "overall", measure) for policy in policies)
            cells = [Cell(share(top_k)), *_change(old, new, share, True)]
            rows.append(Row(f"{measure} at k = {count(k)}", cells))
    head = _heads("measure", "its top_k", "its default policy", "this model", "change")
    return Table("Comparison with the last blessed model", [*head, Cell("which is", "")], rows)


def previous_table(evaluation: ModelEvaluation) -> Table | None:
    """The previous release beside this model, each on its own clicks."""
    previous = evaluation.previous
    if previous is None:
        return None
    rows = [
        Row(name, _change(before, now, text, rising))
        for name, before, now, text, rising in _measures(evaluation, previous)
    ]
    head = _heads(
        "measure of the default policy", f"release {previous.version}", "this model", "change"
    )
    return Table("Comparison with the previous release", [*head, Cell("which is", "")], rows)


# Name, the value before, this one, how it is shown, and whether more is better; None if neither.
_Measure = tuple[str, float | None, float | None, Callable[[float | None], str], bool | None]


def _measures(this: ModelEvaluation, previous: PreviousRelease) -> Iterator[_Measure]:
    both = previous, this
    policies = [default_result(each.policies) for each in both]
    for k in this.average_k:
        for measure in ("recall", "precision"):
            before, now = (_figure(policy, k, "overall", measure) for policy in policies)
            yield f"{measure} at k = {count(k)}", before, now, share, True
    for group in GROUPS:
        before, now = (each.calibration.error.get(group) for each in both)
        name = "calibration error" + ("" if group == "overall" else f", {group}")
        yield name, before, now, share, False
    old, new = (each.default_knob.groups["overall"] for each in both)
    yield "empty rate", old.empty, new.empty, percent, False
    yield "items per query, median", old.p50, new.p50, count, None
    yield "items per query, p99", old.p99, new.p99, count, None
    before, now = (each.index.recall_macro for each in both)
    yield "index recall", before, now, share, True
    before, now = (each.latency[0].p99_ms for each in both)
    yield "latency, p99", before, now, milliseconds, False


def _change(
    before: float | None,
    now: float | None,
    text: Callable[[float | None], str],
    rising: bool | None,
) -> list[Cell]:
    """Both values, the difference, and its meaning; a difference that rounds to 0 has none."""
    shown = change(text(_difference(now, before)))
    if shown == DASH:
        meaning = Cell(DASH, "")
    elif shown[0].isdigit():
        meaning = Cell("the same", "quiet")
    else:
        more = shown.startswith("+")
        if rising is None:
            meaning = Cell("more" if more else "fewer", "quiet")
        else:
            meaning = Cell("better", "good") if more == rising else Cell("worse", "bad")
    return [Cell(text(before)), Cell(text(now)), Cell(shown), meaning]


def _policy_rows(
    policies: Sequence[PolicyResult],
    average_k: Sequence[int],
    group: str,
    empty_at: int | None = None,
) -> list[Row]:
    """Precision and recall at each average, and the empty rate at one of them."""
    columns = list(itertools.product(average_k, MEASURES))
    best = {column: best_figure(policies, column[0], group, column[1]) for column in columns}
    rows = []
    for policy in sorted(policies, key=lambda policy: policy.name == ORACLE):
        cells = []
        for k, measure in columns:
            value = _figure(policy, k, group, measure)
            wins = is_best(policy, value, best[k, measure])
            cells.append(Cell(share(value), _pair_style(measure), wins))
        if empty_at is not None:
            cells.append(Cell(percent(policy.at[empty_at][group].empty), "number open"))
        style = "apart" if policy.name == ORACLE else "default" if policy.default else ""
        rows.append(Row(policy.title, cells, style))
    return rows


def best_figure(policies: Sequence[PolicyResult], k: int, group: str, measure: str) -> float | None:
    """The highest value of a policy other than the oracle."""
    values = [_figure(policy, k, group, measure) for policy in policies if policy.name != ORACLE]
    return max((value for value in values if value is not None), default=None)


def is_best(policy: PolicyResult, value: float | None, best: float | None) -> bool:
    """Whether a value is the best of its column, in the digits shown."""
    return policy.name != ORACLE and value is not None and share(value) == share(best)


def _figure(policy: PolicyResult, k: int, group: str, measure: str) -> float | None:
    found: ListSummary | None = policy.at.get(k, {}).get(group)
    return None if found is None else getattr(found, measure)


def _difference(new: float | None, old: float | None) -> float | None:
    if new is None or old is None:
        return None
    # A change below 0.0005 and below 1% of the old value counts as none.
    return 0.0 if abs(new - old) < min(5e-4, abs(old) / 100) else new - old


def _average_titles(evaluation: ModelEvaluation) -> list[str]:
    return [f"k = {count(k)}" for k in evaluation.average_k]


def _row(head: str, *texts: str, style: str = "") -> Row:
    return Row(head, [Cell(text) for text in texts], style)


def _heads(first: str, *others: str) -> list[Cell]:
    return [Cell(first, ""), *(Cell(other) for other in others)]


def _pair_style(measure: str) -> str:
    # The first of a pair keeps its distance from the pair before.
    return "number open" if measure == MEASURES[0] else "number"
