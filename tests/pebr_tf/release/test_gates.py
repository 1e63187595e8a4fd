"""Gates by hand, on both sides of each requirement."""

from dataclasses import replace

import pytest
from evaluation_example import change, example

from pebr_tf.config import Gates
from pebr_tf.release.evaluation import BaselineResult, GateResult
from pebr_tf.release.gates import check_gates, failures


def evaluation(precision=0.12, recall=0.66, error=0.02, worst=0.04, found=0.99, empty=0.0, p99=9.0):
    """top_k has precision .1 and recall .6."""
    content = example()
    change(content.policies[0], 150, precision=precision, recall=recall)
    change(content.policies[2], 150, precision=0.1, recall=0.6)
    content.calibration.error.clear()
    content.calibration.error.update(overall=error, head=worst, tail=0.0)
    overall = content.default_knob.groups["overall"]
    content.default_knob.groups["overall"] = replace(overall, empty=empty)
    content.latency[0] = replace(content.latency[0], p99_ms=p99)
    index = replace(content.index, recall_macro=1.0, recall_micro=found)
    return replace(content, index=index)


def test_a_model_that_passes_all():
    gates = check_gates(evaluation(), Gates())
    assert [gate.name for gate in gates] == [
        "min_precision_lift",
        "min_recall_lift",
        "max_calibration_error",
        "max_stratum_calibration_error",
        "min_index_recall",
        "max_empty_rate",
    ]
    assert all(gate.passed for gate in gates)
    assert failures(gates) == []
    assert gates[1] == GateResult(
        "min_recall_lift", "recall over top_k at k = 150", ">=", 0.0, pytest.approx(0.1)
    )
    assert gates[1].required == ">= 0.00"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"precision": 0.09}, "k = 150 (min_precision_lift) must be >= 0.00. Received: -0.1000."),
        ({"recall": 0.594}, "(min_recall_lift) must be >= 0.00. Received: -0.0100."),
        ({"error": 0.031}, "(max_calibration_error) must be <= 0.03. Received: 0.0310."),
        ({"worst": 0.06}, "(max_stratum_calibration_error) must be <= 0.05. Received: 0.0600."),
        ({"found": 0.97}, "(min_index_recall) must be >= 0.98. Received: 0.9700."),
        ({"empty": 0.02}, "(max_empty_rate) must be <= 0.01. Received: 0.0200."),
        ({"p99": 11.0}, "(max_p99_milliseconds) must be <= 10.00. Received: 11.0000."),
    ],
)
def test_each_gate_fails_alone_with_both_numbers(change, text):
    (sentence,) = failures(check_gates(evaluation(**change), Gates(max_p99_milliseconds=10)))
    assert sentence.endswith(text)


@pytest.mark.parametrize(
    ("recall", "gates", "sentences"),
    [
        (0.69, Gates(), []),
        (
            0.7,
            Gates(),
            [
                "recall over the last blessed model at k = 150 (min_baseline_recall_lift) must be "
                ">= -0.05. Received: -0.0571."
            ],
        ),
        (0.7, Gates(min_baseline_recall_lift=None), []),
        (None, Gates(min_baseline_recall_lift=9), []),
    ],
)
def test_the_last_blessed_model_is_to_be_reached(recall, gates, sentences):
    content = evaluation()
    if recall is not None:
        level, top_k = (example().policies[index] for index in (0, 2))
        change(level, 150, recall=recall)
        change(top_k, 150, recall=0.9)
        content = replace(content, baseline=BaselineResult("model", 1, 0.6, [top_k, level]))
    assert failures(check_gates(content, gates)) == sentences
