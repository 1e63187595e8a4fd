"""The table in the terminal, the outcome in a sentence, and numbers as text."""

import io
from dataclasses import replace

import pytest
from evaluation_example import example, rejected
from rich.console import Console

from pebr_tf.release.evaluation import GateResult
from pebr_tf.report import formats, outcome, summary_table


def printed(evaluation):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(summary_table(evaluation))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_policy_is_one_line_of_eighty_characters():
    lines = printed(example())
    assert max(map(len, lines)) <= 80
    cells = {line.split("  ")[0].strip(): line.split() for line in lines if line.strip()}
    assert cells["level, T = 0.6"][-4:] == [".187/.762", ".100/.851", ".035/.924", "0.004"]
    assert cells["top k"][-3:] == [".124/.688", ".070/.795", ".031/.904"]
    assert cells["oracle"][-3:] == [".402/.905", ".168/.948", ".052/.981"]
    assert lines[-1] == "Blessed: all 6 gates passed."
    assert len([line for line in lines if "/." in line]) == 9


@pytest.mark.parametrize(
    ("name", "sign", "bound", "received", "reason"),
    [
        ("min_lift", ">=", 0.0, -0.012, "is -0.0120, below the required 0.00 (min_lift)"),
        ("min_lift", ">=", 0.0, -0.0004, "is -0.000400, below the required 0.00 (min_lift)"),
        # Three digits would show the bound itself.
        ("max_error", "<=", 0.03, 0.030001, "is 0.030001, above the allowed 0.03 (max_error)"),
        ("max_p99_ms", "<=", 20, 1234.56, "is 1,235, above the allowed 20.00 (max_p99_ms)"),
    ],
)
def test_a_failed_gate_is_named_with_both_numbers(name, sign, bound, received, reason):
    gate = GateResult(name, "title", sign, bound, received)
    assert outcome(replace(example(), gates=[gate])) == f"Not blessed: title {reason}."


def test_outcomes():
    assert outcome(example()) == "Blessed: all 6 gates passed."
    assert outcome(replace(example(), gates=[])) == "Blessed."
    two = rejected()
    two.gates[5] = replace(two.gates[5], received=0.021)
    assert outcome(two) == (
        "Not blessed: gain in recall over top_k is -0.0120 for 2,391 queries, below the required "
        "0.00 (min_recall_lift); share of empty lists is 0.0210 for 2,391 queries, above the "
        "allowed 0.01 (max_empty_rate)."
    )
    doubtful = example()
    doubtful.gates[3] = replace(doubtful.gates[3], received=0.0612)
    assert outcome(doubtful) == (
        "Blessed, with 1 warning: error of the recall knob, worst stratum is 0.0612 for 143 head "
        "queries, above the allowed 0.05 (max_stratum_calibration_error), which so few cannot "
        "decide."
    )


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (formats.share, 0.8505, "0.851"),
        (formats.share, -0.0001, "0.000"),
        (formats.share, None, "–"),
        (formats.percent, 0.0049, "0.5%"),
        (formats.percent, -0.00001, "0.0%"),
        (formats.count, 4120, "4,120"),
        (formats.count, 42.25, "42.2"),
        (formats.average, 99.96, "100"),
        (formats.average, 1043.2, "1,043"),
        (formats.milliseconds, 9.996, "10.0 ms"),
        (formats.milliseconds, -1204.4, "-1,204 ms"),
        (formats.compact, 2000, "2k"),
        (formats.compact, 1_500_000, "1.5M"),
        (formats.change, "0.056", "+0.056"),
        (formats.change, "-0.012", "−0.012"),
        (formats.change, "0.000", "0.000"),
    ],
)
def test_numbers_as_text(form, value, text):
    assert form(value) == text
