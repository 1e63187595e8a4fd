"""The outcome of an evaluation in one sentence."""

from __future__ import annotations

import re
from typing import Any

from pebr_tf.report.formats import finite
from pebr_tf.report.reading import entries, lookup

_BOUND = re.compile(r"([<>])=?\s*(\S+)")
_MOST_DIGITS = 9


def outcome(evaluation: dict[str, Any]) -> str:
    """Whether the model is blessed, and if not which gates failed, with both numbers.

    Args:
      evaluation: The content of evaluation.json.

    Returns:
      `Blessed: all 6 gates passed.` or
      `Not blessed: recall lift -0.012 is below the required 0.00.`
    """
    gates = entries(evaluation, "gates")
    if lookup(evaluation, "blessed"):
        return f"Blessed: {_all_of(len(gates))} passed." if gates else "Blessed."
    failures = [_failure(gate) for gate in gates if not lookup(gate, "passed")]
    return f"Not blessed: {'; '.join(failures)}." if failures else "Not blessed."


def received(gate: dict[str, Any]) -> str:
    """What a gate received, to as many digits as tell it from the bound."""
    value = finite(lookup(gate, "received"))
    if value is None:
        return "not measured"
    bound = _BOUND.fullmatch(str(lookup(gate, "required")))
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    while bound and digits < _MOST_DIGITS and _hidden(value, bound[2], digits):
        digits += 1
    return f"{value:,.{digits}f}"


def _all_of(gates: int) -> str:
    return "the one gate" if gates == 1 else f"all {gates} gates"


def _failure(gate: dict[str, Any]) -> str:
    name = str(lookup(gate, "name") or lookup(gate, "title") or "a gate")
    words = name.removeprefix("min_").removeprefix("max_").replace("_", " ")
    required = str(lookup(gate, "required"))
    bound = _BOUND.fullmatch(required)
    if finite(lookup(gate, "received")) is None:
        return f"{words} was not measured, required is {required}"
    if bound is None:
        return f"{words} is {received(gate)}, required is {required}"
    side = "below the required" if bound[1] == ">" else "above the allowed"
    return f"{words} {received(gate)} is {side} {bound[2]}"


def _hidden(value: float, bound: str, digits: int) -> bool:
    try:
        limit = float(bound)
    except ValueError:
        return False
    return value != limit and float(f"{value:.{digits}f}") == limit
