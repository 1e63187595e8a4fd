"""The outcome of an evaluation in one sentence."""

from __future__ import annotations

from pebr_tf.release.evaluation import GateResult, ModelEvaluation

_MAX_DIGITS = 9


def outcome(evaluation: ModelEvaluation) -> str:
    """Whether the model is blessed, and if not which gates failed, with both numbers.

    Returns:
      `Blessed: all 6 gates passed.` or
      `Not blessed: recall lift -0.012 is below the required 0.00.`
    """
    gates = evaluation.gates
    if evaluation.blessed:
        return f"Blessed: all {len(gates)} gates passed." if gates else "Blessed."
    return f"Not blessed: {'; '.join(_failure(gate) for gate in gates if not gate.passed)}."


def received(gate: GateResult) -> str:
    """The measured value, with as many digits as distinguish it from the bound."""
    value = gate.received
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    while (
        digits < _MAX_DIGITS
        and value != gate.bound
        and float(f"{value:.{digits}f}") == float(gate.bound_text)
    ):
        digits += 1
    return f"{value:,.{digits}f}"


def _failure(gate: GateResult) -> str:
    words = gate.name.removeprefix("min_").removeprefix("max_").replace("_", " ")
    side = "below the required" if gate.sign == ">=" else "above the allowed"
    return f"{words} {received(gate)} is {side} {gate.bound_text}"
