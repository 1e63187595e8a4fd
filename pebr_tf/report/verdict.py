"""The outcome of an evaluation in one sentence."""

from __future__ import annotations

from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.release.gates import failures


def outcome(evaluation: ModelEvaluation) -> str:
    """Whether the model is blessed, and which gates failed or are undecided, with both numbers.

    Returns:
      `Blessed: all 7 gates passed.`, `Blessed, with 1 warning: error of the recall knob is 0.0912
      for 24 head queries, above the allowed 0.05 (...), which so few cannot decide.` or
      `Not blessed: gain in recall over top_k is -0.012 for 900 queries, below the required 0.00.`
    """
    gates = evaluation.gates
    failed, undecided = failures(gates), failures(gates, "undecided")
    if failed:
        return f"Not blessed: {'; '.join(failed)}."
    if undecided:
        number = f"{len(undecided)} warning{'s' if len(undecided) > 1 else ''}"
        return f"Blessed, with {number}: {'; '.join(undecided)}."
    return f"Blessed: all {len(gates)} gates passed." if gates else "Blessed."
