"""The table in the terminal, the outcome in a sentence, and numbers as text."""

import io
from dataclasses import fields, replace

import pytest
from evaluation_example import example, rejected
from rich.console import Console

from pebr_tf.config import Gates
from pebr_tf.release.evaluation import GateResult
from pebr_tf.report import formats, next_steps, outcome, served, summary_table
from pebr_tf.report.verdict import _REMEDIES


def printed(evaluation):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(summary_table(evaluation))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_policy_is_one_line_of_eighty_characters():
    lines = printed(example())
    assert max(map(len, lines)) <= 80
    cells = {line.split("  ")[0].strip(): line.split() for line in lines if line.strip()}
    assert cells["level, T = 0.6"][-4:] == [".187/.762", ".100/.851", ".0350/.924", "0.0041"]
    assert cells["top k"][-3:] == [".124/.688", ".0700/.795", ".0310/.904"]
    assert cells["oracle"][-3:] == [".402/.905", ".168/.948", ".0520/.981"]
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


def test_what_is_served_and_what_to_do_next():
    assert served(example()) == (
        "Served at recall 0.9: recall 0.902 (95% interval 0.893 to 0.911) with 302 items per "
        "query; top k needs 496 for that recall, and reaches 0.871 with as many."
    )
    never = example()
    never = replace(never, default_knob=replace(never.default_knob, top_k_items=None))
    assert "; top k never reaches that recall, and" in served(never)
    assert next_steps(example()) == [
        "Serve it (pebr serve), and compare it with what you have (pebr ab)."
    ]
    assert next_steps(rejected()) == [
        "min_recall_lift: serve lists of equal length (cutoff.policy: top_k); or change "
        "evaluation.gates.min_recall_lift."
    ]
    doubtful = example()
    doubtful.gates[3] = replace(doubtful.gates[3], received=0.07)
    assert next_steps(doubtful)[0] == (
        "max_stratum_calibration_error: about 572 instead of 143 head queries would decide it."
    )
    doubtful.gates[3] = replace(doubtful.gates[3], received=0.0501)
    assert next_steps(doubtful)[0] == (
        "max_stratum_calibration_error: the difference is too small to be decided by more queries."
    )


def test_every_gate_has_a_remedy():
    gates = {each.name for each in fields(Gates)}
    assert set(_REMEDIES) == gates


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (formats.share, 0.8505, "0.851"),
        (formats.share, 0.0191, "0.0191"),
        (formats.share, 0.011, "0.0110"),
        (formats.share, 0.000421, "0.00042"),
        (formats.share, -0.0000001, "0.000"),
        (formats.share, None, "–"),
        (formats.percent, 0.124, "12.4%"),
        (formats.percent, 0.00491, "0.49%"),
        (formats.percent, -0.000000001, "0.0%"),
        (formats.count, 4120, "4,120"),
        (formats.count, 42.25, "42.2"),
        (formats.average, 99.96, "100"),
        (formats.average, 0.0421, "0.042"),
        (formats.milliseconds, 0.00421, "0.0042 ms"),
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
