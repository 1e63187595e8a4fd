"""The outcome of an evaluation in sentences: blessed or not, what is served, what to do next."""

from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.release.gates import failures
from pebr_tf.report.formats import count, share

# What helps against a gate that failed, besides a bound that allows more.
_REMEDIES = {
    "min_query_gain": "check the columns of queries and items (pebr config check --data), or hold "
    "out more clicks: few do not tell the model from one that knows nothing",
    "min_precision_lift": "serve lists of equal length (cutoff.policy: top_k)",
    "min_recall_lift": "serve lists of equal length (cutoff.policy: top_k)",
    "max_calibration_error": "hold out by pair (split.by): test and calibrate queries differ",
    "max_stratum_calibration_error": "hold out by pair (split.by), or raise strata.min_queries",
    "min_index_recall": "raise index.recall_target, or search exactly (index.exact_below)",
    "max_empty_rate": "raise cutoff.floor",
    "min_baseline_recall_lift": "train longer (training.steps)",
    "max_p99_milliseconds": "lower index.recall_target or cutoff.limit",
}

# More queries than so many times those that were measured decide nothing in practice.
MANY_TIMES = 100


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


def served(evaluation: ModelEvaluation) -> str:
    """What the default knob gives, beside lists of equal length."""
    knob, found = evaluation.default_knob, evaluation.default_knob.groups["overall"]
    low, high = knob.interval
    needs = "never reaches" if knob.top_k_items is None else f"needs {count(knob.top_k_items)} for"
    return (
        f"Served at {knob.knob} {knob.value:g}: recall {share(found.recall)} (95% interval "
        f"{share(low)} to {share(high)}) with {count(found.average)} items per query; top k "
        f"{needs} that recall, and reaches {share(knob.top_k_recall)} with as many."
    )


def next_steps(evaluation: ModelEvaluation) -> list[str]:
    """What to do now, one sentence each."""
    steps = [
        f"{gate.name}: {_REMEDIES[gate.name]}; or change evaluation.gates.{gate.name}."
        for gate in evaluation.gates
        if gate.state == "failed"
    ]
    steps += [
        f"{gate.name}: about {count(gate.queries_to_decide)} instead of {gate.measured_on} would "
        "decide it."
        if gate.queries_to_decide < MANY_TIMES * gate.queries
        else f"{gate.name}: the difference is too small to be decided by more queries."
        for gate in evaluation.gates
        if gate.state == "undecided"
    ]
    if evaluation.blessed:
        steps.append("Serve it (pebr serve), and compare it with what you have (pebr ab).")
    return steps
