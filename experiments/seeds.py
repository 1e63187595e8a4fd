"""Figures over seeds, and the cells, rows and tables that several experiments show them in."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.results import ResultTable
from pebr_tf.report.formats import DASH, change, share

MEASURES = ("precision", "recall", "average", "empty")
ORACLE = "oracle"
# Lists this much shorter on average than asked for are no longer compared at an equal average.
_SHORT = 0.99
# Policy -> average -> group -> measure -> `spread`.
FiguresByPolicy = Mapping[str, Mapping[str, Any]]
# Precision and recall, or None where there are none.
Pair = tuple[float, float] | None
# Title, policy, and where its figures are.
Row = tuple[str, str, FiguresByPolicy]


def spread(values: Iterable[float]) -> dict[str, Any]:
    """`mean`, `deviation` and `seeds`, the values themselves.

    The deviation is the sample's, over one less than the seeds; NaN for one seed.
    """
    each = [float(value) for value in values]
    deviation = float(np.std(each, ddof=1)) if len(each) > 1 else math.nan
    return {"mean": float(np.mean(each)), "deviation": deviation, "seeds": each}


def over_seeds(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Policy to average to group to measure to `spread`.

    Args:
      runs: What `measured_step` gives, of each seed.
    """
    return {
        policy: {
            k: {
                group: {
                    measure: spread(run["at"][policy][k][group][measure] for run in runs)
                    for measure in MEASURES
                }
                for group in groups
            }
            for k, groups in at.items()
        }
        for policy, at in runs[0]["at"].items()
    }


def gain(
    runs: Sequence[Mapping[str, Any]], k: int, measure: str, policy: str = "level"
) -> dict[str, Any]:
    """`spread` of what a policy has more than top k on the same towers."""
    return spread(
        run["at"][policy][str(k)]["overall"][measure]
        - run["at"]["top_k"][str(k)]["overall"][measure]
        for run in runs
    )


def mean(found: FiguresByPolicy, policy: str, k: int, measure: str) -> float:
    """Of all queries, over the seeds."""
    return float(found[policy][str(k)]["overall"][measure]["mean"])


def pair(found: FiguresByPolicy, policy: str, k: int) -> Pair:
    """Mean precision and recall, None if the policy was not measured."""
    if policy not in found:
        return None
    return mean(found, policy, k, "precision"), mean(found, policy, k, "recall")


def plain(value: float) -> str:
    """A share: `.123`."""
    return share(value).replace("0.", ".", 1)


def printed(value: float) -> str:
    """A share with the digits of the paper: `.9592`."""
    return f"{value:.4f}".removeprefix("0")


def signed(value: float) -> str:
    """A difference of shares: `+.012`."""
    return change(plain(value))


def plus_minus(values: Mapping[str, Any]) -> str:
    """A `spread`: `.123 ± .004`, or `.123` of one seed."""
    shown = plain(values["mean"])
    return shown if math.isnan(values["deviation"]) else f"{shown} ± {plain(values['deviation'])}"


def signed_plus_minus(values: Mapping[str, Any]) -> str:
    """A `spread` of differences: `+.012 ± .004`, or `+.012` of one seed."""
    shown = plus_minus(values)
    return shown.replace(plain(values["mean"]), signed(values["mean"]), 1)


def pairs_in_bold(pairs: Sequence[Pair], compared: Sequence[bool] | None = None) -> list[str]:
    """Cells `.123/.456`, the best precision and the best recall in bold, and what equals them.

    Args:
      pairs: Of one column.
      compared: Which of them compete; None: all.
    """
    inside = [True] * len(pairs) if compared is None else compared
    competing = [each for each, may in zip(pairs, inside, strict=True) if may and each is not None]
    best = [plain(max(column)) for column in zip(*competing, strict=True)] or ["", ""]
    cells = []
    for each, may in zip(pairs, inside, strict=True):
        if each is None:
            cells.append(DASH)
            continue
        shown = [plain(value) for value in each]
        bold = [may and text == top for text, top in zip(shown, best, strict=True)]
        marked = (f"**{text}**" if thick else text for text, thick in zip(shown, bold, strict=True))
        cells.append(f"**{'/'.join(shown)}**" if all(bold) else "/".join(marked))
    return cells


def policy_table(
    title: str, rows: Sequence[Row], averages: Sequence[int], note: str
) -> ResultTable:
    """Precision and recall at each average, the best of the column in bold but for the oracle.

    Args:
      title: Of the table.
      rows: In order.
      averages: The columns.
      note: Below it.
    """
    compared = [policy != ORACLE for _, policy, _ in rows]
    columns = [
        pairs_in_bold([pair(found, policy, k) for _, policy, found in rows], compared)
        for k in averages
    ]
    cells = [
        (name, *(column[place] for column in columns)) for place, (name, _, _) in enumerate(rows)
    ]
    return ResultTable(title, ("P/R", *heads(averages)), tuple(cells), note)


def spread_tables(
    dataset: str, rows: Sequence[Row], averages: Sequence[int], seeds: int
) -> tuple[ResultTable, ...]:
    """Recall and precision with their deviation over seeds; nothing for one seed.

    Args:
      dataset: For the titles.
      rows: As for `policy_table`.
      averages: The columns.
      seeds: How many.
    """
    if seeds < 2:
        return ()
    return tuple(
        ResultTable(
            f"{dataset}: {measure}, mean ± standard deviation over {seeds} seeds",
            (measure, *heads(averages)),
            tuple(
                (name, *(plus_minus(found[policy][str(k)]["overall"][measure]) for k in averages))
                for name, policy, found in rows
                if policy in found
            ),
        )
        for measure in ("recall", "precision")
    )


def heads(averages: Sequence[int]) -> tuple[str, ...]:
    """Titles of the columns: `k = 150`."""
    return tuple(f"k = {k:,}" for k in averages)


def noise(rows: Sequence[Row], averages: Sequence[int], seeds: int) -> str:
    """A sentence on the seeds of a table and their largest deviation."""
    if seeds < 2:
        return " One seed, so differences may be noise."
    largest = {
        measure: max(
            found[policy][str(k)]["overall"][measure]["deviation"]
            for _, policy, found in rows
            if policy in found
            for k in averages
        )
        for measure in ("precision", "recall")
    }
    return (
        f" Means of {seeds} seeds, whose standard deviation is at most "
        f"{plain(largest['precision'])} in precision and {plain(largest['recall'])} in recall."
    )


def short_lists(rows: Sequence[Row], averages: Sequence[int]) -> str:
    """A sentence on lists that ties keep from the average asked for; empty if there are none."""
    short = [
        f"{name} ({mean(found, policy, k, 'average'):,.1f} at k = {k:,})"
        for name, policy, found in rows
        if policy in found and policy != ORACLE
        for k in averages
        if mean(found, policy, k, "average") < _SHORT * k
    ]
    if not short:
        return ""
    return f" Equal scores come together, so these have fewer items than k: {', '.join(short)}."
