"""The read-out in the terminal."""

import math

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pebr_tf.ab.analysis import Analysis, ArmReadout
from pebr_tf.report.formats import two_digits

DASH = "–"
# Digits of a value that are shown, and the most decimals.
DIGITS, MAX_DECIMALS = 4, 6
# Names are folded to make room for numbers, but not below this width.
MIN_NAME_WIDTH = 12


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
    # Not cropped on a narrow terminal: a number must not lose its last digits.
    console.print(metrics_table(analysis), crop=False)
    for at, note in enumerate(notes(analysis)):
        console.print(Text(note if at else f"\n{note}", style="dim"))


def arms_table(analysis: Analysis) -> Table:
    ratio = analysis.sample_ratio
    table = _table("arm", "users", "rows", "share", "expected")
    for name, users, rows, share, expected in zip(
        analysis.arms, analysis.users, analysis.rows, ratio.shares, ratio.expected, strict=True
    ):
        table.add_row(Text(name), f"{users:,}", f"{rows:,}", f"{share:.2%}", f"{expected:.2%}")
    return table


def _table(name: str, *headings: str) -> Table:
    """A table whose numbers are never cut; its names are folded to make room for them."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column(name, min_width=MIN_NAME_WIDTH, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _verdict(analysis: Analysis) -> Text:
    ratio = analysis.sample_ratio
    verdict = "mismatch" if ratio.mismatch else "as expected"
    equals = "< 0.001" if ratio.p_value < 0.001 else f"= {ratio.p_value:.3f}"
    return Text(
        f"Sample ratio: {verdict}, p {equals}.",
        style="bold red" if ratio.mismatch else "green",
    )


def metrics_table(analysis: Analysis) -> Table:
    """Each metric by arm: value, difference, lift with its interval, p-value.

    A lift that differs from 0 at the confidence of the intervals is bold.
    """
    interval = f"lift ({100 * analysis.confidence:g}% interval)"
    table = _table("metric", "value", "difference", interval, "p")
    for readout in analysis.metrics:
        if table.rows:
            table.add_row()
        table.add_row(Text(readout.name, "cyan"))
        largest = max(abs(arm.value) for arm in readout.arms)
        places = DIGITS
        if largest > 0:
            places = min(max(DIGITS - 1 - math.floor(math.log10(largest)), 0), MAX_DECIMALS)
        for index, arm in enumerate(readout.arms):
            table.add_row(Text(f"  {arm.name}"), *_cells(arm, places, analysis.confidence))
            if readout.cuped and index:
                cells = _cells(readout.cuped[index], places, analysis.confidence)
                table.add_row("    CUPED", *cells)
    return table


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


def _cells(arm: ArmReadout, places: int, confidence: float) -> list[Text]:
    value, compared = Text(f"{arm.value:,.{places}f}"), arm.comparison
    if compared is None:
        return [value]
    margin = compared.high - compared.difference
    difference = f"{_rounded(compared.difference, places):+,.{places}f} ± {margin:,.{places}f}"
    style = "bold" if arm.p_value_holm < 1 - confidence else ""
    lift = _lift(compared.lift, compared.lift_low, compared.lift_high)
    p_value = DASH if math.isnan(arm.p_value_holm) else _p_value(arm.p_value_holm)
    return [value, Text(difference), Text(lift, style), Text(p_value, style)]


def _lift(lift: float, low: float, high: float) -> str:
    if math.isnan(lift):
        return DASH
    places = max(1, two_digits(100 * lift))
    whole, begin, end = (
        f"{_rounded(100 * share, places):+,.{places}f}" for share in (lift, low, high)
    )
    return f"{whole}%" if math.isnan(low) else f"{whole}% ({begin} to {end})"


def _p_value(p_value: float) -> str:
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _rounded(value: float, places: int) -> float:
    return round(value, places) + 0.0
