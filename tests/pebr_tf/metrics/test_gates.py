"""Gates by hand, on both sides of each requirement."""

import pytest

from pebr_tf.config import Gates
from pebr_tf.metrics import failures, gates_of


def evaluation(precision=0.12, recall=0.66, error=0.02, worst=0.04, found=0.99, empty=0.0, p99=9.0):
    """top_k has precision .1 and recall .6."""

    def at(p, r):
        return {"150": {"overall": {"precision": p, "recall": r}}}

    return {
        "average_k": [50, 150, 500],
        "policies": [
            {"name": "level", "default": True, "at": at(precision, recall)},
            {"name": "top_k", "default": False, "at": at(0.1, 0.6)},
        ],
        "calibration": {"error": {"overall": error, "head": worst, "tail": 0.0}},
        "index": {"recall_macro": 1.0, "recall_micro": found},
        "default_knob": {"figures": {"empty": empty}},
        "latency": {"p99_ms": [p99, 1e9]},
    }


def test_a_model_that_passes_all():
    gates = gates_of(evaluation(), Gates())
    assert [gate["name"] for gate in gates] == [
        "min_precision_lift",
        "min_recall_lift",
        "max_calibration_error",
        "max_stratum_calibration_error",
        "min_index_recall",
        "max_empty_rate",
    ]
    assert all(gate["passed"] for gate in gates)
    assert failures(gates) == []
    assert gates[1] == {
        "name": "min_recall_lift",
        "title": "recall over top_k at k = 150",
        "required": ">= 0.00",
        "received": pytest.approx(0.1),
        "passed": True,
    }


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"precision": 0.09},
            "k = 150 (min_precision_lift) must be >= 0.00. Received: -0.1000.",
        ),
        ({"recall": 0.594}, "(min_recall_lift) must be >= 0.00. Received: -0.0100."),
        ({"error": 0.031}, "(max_calibration_error) must be <= 0.03. Received: 0.0310."),
        ({"worst": 0.06}, "(max_stratum_calibration_error) must be <= 0.05. Received: 0.0600."),
        ({"found": 0.97}, "(min_index_recall) must be >= 0.98. Received: 0.9700."),
        ({"empty": 0.02}, "(max_empty_rate) must be <= 0.01. Received: 0.0200."),
        ({"p99": 11.0}, "(max_p99_milliseconds) must be <= 10.00. Received: 11.0000."),
    ],
)
def test_each_gate_fails_alone_and_says_both_numbers(change, text):
    (sentence,) = failures(gates_of(evaluation(**change), Gates(max_p99_milliseconds=10)))
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
    at = {"150": {"overall": {"precision": 0.1, "recall": recall}}}
    worse = {"150": {"overall": {"precision": 0.1, "recall": 0.9}}}
    policies = [
        {"name": "top_k", "default": False, "at": worse},
        {"name": "level", "default": True, "at": at},
    ]
    content["baseline"] = None if recall is None else {"policies": policies}
    assert failures(gates_of(content, gates)) == sentences
