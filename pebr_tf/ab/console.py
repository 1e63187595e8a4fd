"""The read-out in the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pebr_tf.ab.analysis import Analysis, ArmReadout, MetricReadout

DASH = "–"
GAP = "  "
# Digits of a value that are shown, and the most decimals.
DIGITS, MAX_DECIMALS = 4, 6
# Names are cut to make room for numbers, but not below this width.
MIN_NAME_WIDTH = 12
MAX_ARM_WIDTH = 32


def print_analysis(console: Console, analysis: Analysis) -> None:
    """Warnings, the arms, and a table of all metrics."""
    for index, warning in enumerate(analysis.warnings):
        loud = index == 0 and analysis.sample_ratio.mismatch
        label, style = ("WARNING", "bold red") if loud else ("Note", "yellow")
        console.print(Text.assemble((f"{label}: ", style), (warning, style if loud else "")))
    if analysis.warnings:
        console.print()
    console.print(arms_table(analysis))
    console.print(_verdict(analysis))
    console.print()
    for line in metrics_lines(analysis, console.width):
        # Lines wrap on a narrow terminal: a number must not lose its last digits.
        console.print(line, soft_wrap=True)
    for at, note in enumerate(notes(analysis)):
        console.print(Text(note if at else f"\n{note}", style="dim"))


def arms_table(analysis: Analysis) -> Table:
    """The arms and their users."""
    ratio = analysis.sample_ratio
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("arm", no_wrap=True, overflow="ellipsis", max_width=MAX_ARM_WIDTH)
    for heading in ("users", "rows", "share", "expected"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, users, rows, share, expected in zip(
        analysis.arms, analysis.users, analysis.rows, ratio.shares, ratio.expected, strict=True
    ):
        table.add_row(Text(name), f"{users:,}", f"{rows:,}", f"{share:.2%}", f"{expected:.2%}")
    return table


def _verdict(analysis: Analysis) -> Text:
    ratio = analysis.sample_ratio
    verdict = "mismatch" if ratio.mismatch else "as expected"
    return Text(
        f"Sample ratio: {verdict}, p {_p_equals(ratio.p_value)}.",
        style="bold red" if ratio.mismatch else "green",
    )


def metrics_lines(analysis: Analysis, width: int = 80) -> list[Text]:
    """Each metric by arm: value, difference, lift with its interval, p-value.

    A lift that differs from 0 at the confidence of the intervals is bold. Lines have `width`
    characters if the numbers leave room for names.
    """
    head = _Row("metric", ("value", "difference", f"lift ({_percent(analysis)} interval)", "p"))
    blocks = [_rows(readout, analysis.confidence) for readout in analysis.metrics]
    rows = [head, *(row for block in blocks for row in block)]
    widths = [max(map(len, cells)) for cells in zip(*(row.cells for row in rows), strict=True)]
    room = max(width - sum(widths) - len(GAP) * len(widths), MIN_NAME_WIDTH)
    longest = min(max(cell_len(row.name) for row in rows), room)
    lines = [
        Text(head.line(longest, widths).plain, style="bold"),
        Text("─" * (longest + sum(widths) + len(GAP) * len(widths))),
    ]
    for at, (readout, block) in enumerate(zip(analysis.metrics, blocks, strict=True)):
        lines += [Text()] * bool(at)
        lines.append(Text(readout.name, style="cyan"))
        lines += [row.line(longest, widths) for row in block]
    return lines


def notes(analysis: Analysis) -> list[str]:
    """What CUPED gained, and what the p-values are corrected for."""
    lines = []
    for readout in analysis.metrics:
        if readout.cuped:
            reductions = " and ".join(
                DASH if math.isnan(share) else f"{max(share, 0.0):.0%}"
                for share in readout.variance_reduction
            )
            lines.append(
                f"CUPED, {readout.name}: {' and '.join(readout.past)} took off {reductions} of "
                "the variance."
            )
    if len(analysis.arms) > 2:
        lines.append(
            f"p-values are corrected for {len(analysis.arms) - 1} arms (Holm); intervals are not."
        )
    return lines


@dataclass(frozen=True)
class _Row:
    """A line of the table: a name, and cells that are never cut."""

    name: str
    cells: tuple[str, str, str, str]
    bold: bool = False

    def line(self, longest: int, widths: list[int]) -> Text:
        name = Text(self.name)
        name.truncate(longest, overflow="ellipsis", pad=True)
        value, difference, *judged = (
            GAP + cell.rjust(width) for cell, width in zip(self.cells, widths, strict=True)
        )
        text = Text(name.plain + value + difference)
        text.append("".join(judged), style="bold" if self.bold else "")
        text.rstrip()
        return text


def _rows(readout: MetricReadout, confidence: float) -> list[_Row]:
    """One row per arm, and below it the same adjusted for the past."""
    largest = max(abs(arm.value) for arm in readout.arms)
    places = DIGITS
    if largest > 0:
        places = min(max(DIGITS - 1 - math.floor(math.log10(largest)), 0), MAX_DECIMALS)
    rows = []
    for index, arm in enumerate(readout.arms):
        rows.append(_row(f"  {arm.name}", arm, places, confidence))
        if readout.cuped and index:
            rows.append(_row("    CUPED", readout.cuped[index], places, confidence))
    return rows


def _row(name: str, arm: ArmReadout, places: int, confidence: float) -> _Row:
    value, compared = f"{arm.value:,.{places}f}", arm.comparison
    if compared is None:
        return _Row(name, (value, "", "", ""))
    margin = compared.high - compared.difference
    return _Row(
        name,
        (
            value,
            f"{_rounded(compared.difference, places):+,.{places}f} ± {margin:,.{places}f}",
            _lift(compared.lift, compared.lift_low, compared.lift_high),
            _p_value(arm.p_value_holm),
        ),
        bold=arm.p_value_holm < 1 - confidence,
    )


def _lift(lift: float, low: float, high: float) -> str:
    if math.isnan(lift):
        return DASH
    whole, begin, end = (f"{_rounded(100 * share, 1):+,.1f}" for share in (lift, low, high))
    return f"{whole}%" if math.isnan(low) else f"{whole}% ({begin} to {end})"


def _p_value(p_value: float) -> str:
    if math.isnan(p_value):
        return DASH
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _p_equals(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def _percent(analysis: Analysis) -> str:
    return f"{100 * analysis.confidence:g}%"


def _rounded(value: float, places: int) -> float:
    return round(value, places) + 0.0
