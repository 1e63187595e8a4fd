"""What an evaluation must reach for a model to be blessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pebr_tf.config import Gates
from pebr_tf.metrics.strata import STRATA


def gates_of(evaluation: Mapping[str, Any], gates: Gates) -> list[dict[str, Any]]:
    """Each gate with what it requires, what it received, and whether it is passed.

    Lifts compare the default policy with top_k at the average in the middle of those compared at.

    Args:
      evaluation: With policies, calibration, default_knob, index and latency, and with a baseline
        where there is one.
      gates: The requirements.
    """
    middle = evaluation["average_k"][len(evaluation["average_k"]) // 2]
    ours = next(policy for policy in evaluation["policies"] if policy["default"])
    fixed = next(policy for policy in evaluation["policies"] if policy["name"] == "top_k")
    error = evaluation["calibration"]["error"]
    index = evaluation["index"]

    def lift(measure: str, over: Mapping[str, Any] = fixed) -> float:
        base = over["at"][str(middle)]["overall"][measure]
        return float((ours["at"][str(middle)]["overall"][measure] - base) / max(base, 1e-9))

    results = [
        _at_least(
            "min_precision_lift",
            f"precision over top_k at k = {middle}",
            gates.min_precision_lift,
            lift("precision"),
        ),
        _at_least(
            "min_recall_lift",
            f"recall over top_k at k = {middle}",
            gates.min_recall_lift,
            lift("recall"),
        ),
        _at_most(
            "max_calibration_error",
            "error of the recall knob",
            gates.max_calibration_error,
            error["overall"],
        ),
        _at_most(
            "max_stratum_calibration_error",
            "error of the recall knob, worst stratum",
            gates.max_stratum_calibration_error,
            max((error[name] for name in STRATA if name in error), default=0.0),
        ),
        _at_least(
            "min_index_recall",
            "share of the exact answer that the index finds",
            gates.min_index_recall,
            min(index["recall_macro"], index["recall_micro"]),
        ),
        _at_most(
            "max_empty_rate",
            "queries without a result at the default knob",
            gates.max_empty_rate,
            evaluation["default_knob"]["figures"]["empty"],
        ),
    ]
    baseline = evaluation.get("baseline")
    if baseline and gates.min_baseline_recall_lift is not None:
        earlier = next(policy for policy in baseline["policies"] if policy["default"])
        results.append(
            _at_least(
                "min_baseline_recall_lift",
                f"recall over the last blessed model at k = {middle}",
                gates.min_baseline_recall_lift,
                lift("recall", earlier),
            )
        )
    if gates.max_p99_milliseconds is not None:
        results.append(
            _at_most(
                "max_p99_milliseconds",
                "time of a search, p99, one query a call",
                gates.max_p99_milliseconds,
                evaluation["latency"]["p99_ms"][0],
            )
        )
    return results


def failures(gates: list[dict[str, Any]]) -> list[str]:
    """A sentence for each gate that was not passed, with both numbers."""
    return [
        f"{gate['title']} ({gate['name']}) must be {gate['required']}. "
        f"Received: {gate['received']:.4f}."
        for gate in gates
        if not gate["passed"]
    ]


def _at_least(name: str, title: str, least: float, received: float) -> dict[str, Any]:
    return _gate(name, title, f">= {_number(least)}", received, received >= least)


def _at_most(name: str, title: str, most: float, received: float) -> dict[str, Any]:
    return _gate(name, title, f"<= {_number(most)}", received, received <= most)


def _number(value: float) -> str:
    """At least two decimals, and as many as the number has."""
    return max(f"{value:.2f}", f"{value:g}", key=len)


def _gate(name: str, title: str, required: str, received: float, passed: bool) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "required": required,
        "received": float(received),
        "passed": bool(passed),
    }
