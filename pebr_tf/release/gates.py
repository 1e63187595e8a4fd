"""What an evaluation must reach for a model to be blessed."""

from __future__ import annotations

from pebr_tf.config import Gates
from pebr_tf.metrics.results import PolicyResult
from pebr_tf.metrics.strata import STRATA
from pebr_tf.release.evaluation import GateResult, ModelEvaluation, default_result, named_policy


def check_gates(evaluation: ModelEvaluation, gates: Gates) -> list[GateResult]:
    """Each gate with what it requires, what it received, and whether it passed.

    Lifts compare the default policy with top_k at the middle average.
    """
    middle = evaluation.middle_k
    ours = default_result(evaluation.policies)
    top_k = named_policy(evaluation.policies, "top_k")
    error, index = evaluation.calibration.error, evaluation.index

    def lift(measure: str, over: PolicyResult = top_k) -> float:
        base, value = (getattr(p.at[middle]["overall"], measure) for p in (over, ours))
        return float((value - base) / max(base, 1e-9))

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
            min(index.recall_macro, index.recall_micro),
        ),
        _at_most(
            "max_empty_rate",
            "queries without a result at the default knob",
            gates.max_empty_rate,
            evaluation.default_knob.groups["overall"].empty,
        ),
    ]
    if evaluation.baseline and gates.min_baseline_recall_lift is not None:
        results.append(
            _at_least(
                "min_baseline_recall_lift",
                f"recall over the last blessed model at k = {middle}",
                gates.min_baseline_recall_lift,
                lift("recall", default_result(evaluation.baseline.policies)),
            )
        )
    if gates.max_p99_milliseconds is not None:
        results.append(
            _at_most(
                "max_p99_milliseconds",
                "time of a search, p99, one query per call",
                gates.max_p99_milliseconds,
                evaluation.latency[0].p99_ms,
            )
        )
    return results


def failures(gates: list[GateResult]) -> list[str]:
    """One sentence with both numbers for each gate that failed."""
    return [
        f"{gate.title} ({gate.name}) must be {gate.required}. Received: {gate.received:.4f}."
        for gate in gates
        if not gate.passed
    ]


def _at_least(name: str, title: str, least: float, received: float) -> GateResult:
    return GateResult(name, title, ">=", least, float(received))


def _at_most(name: str, title: str, most: float, received: float) -> GateResult:
    return GateResult(name, title, "<=", most, float(received))
