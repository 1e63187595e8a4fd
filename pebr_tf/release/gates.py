"""What an evaluation must reach for a model to be blessed.

docs/pipeline.md, "Gates", says how sure each must be. A model must be better than one that cannot
tell queries apart with a confidence of 99.9%: at 95%, one of twenty broken models would pass.
"""

import numpy as np

from pebr_tf.config import Gates
from pebr_tf.metrics.results import PolicyResult
from pebr_tf.metrics.significance import CONFIDENCE, Evidence, error_noise, noise
from pebr_tf.metrics.strata import STRATA
from pebr_tf.release.evaluation import GateResult, ModelEvaluation, default_result, named_policy

# Of the gate that rejects broken models.
CERTAINTY = 0.999


def check_gates(evaluation: ModelEvaluation, evidence: Evidence, gates: Gates) -> list[GateResult]:
    """Each gate with what it requires, what it received, and how sure that is.

    Lifts compare the default policy with top_k at the middle average. `evidence` is of the queries
    of the evaluation.
    """
    middle, queries = evaluation.middle_k, len(evidence.strata)
    top_k = named_policy(evaluation.policies, "top_k")
    results = [
        _lift(
            "min_precision_lift",
            f"gain in precision over top_k at k = {middle}",
            gates.min_precision_lift,
            _figures(evaluation, top_k, "precision"),
            evidence.precision,
        ),
        _lift(
            "min_recall_lift",
            f"gain in recall over top_k at k = {middle}",
            gates.min_recall_lift,
            _figures(evaluation, top_k, "recall"),
            evidence.recall,
        ),
    ]
    if gates.min_query_gain is not None:
        # Lists that are all the same have no gain and no noise: one query must differ at least.
        bound = gates.min_query_gain + max(noise(-evidence.gain, CERTAINTY), 1 / queries)
        title = f"gain in recall over another query's list at k = {min(evaluation.average_k)}"
        gain = float(evidence.gain.mean())
        results.append(GateResult("min_query_gain", title, ">=", bound, gain, queries))
    # Macro and micro recall of the index: the smaller one counts.
    index_recalls = evidence.index_recall.mean(axis=0)
    smaller = evidence.index_recall[:, index_recalls.argmin()]
    results += [
        _error(evaluation, evidence, "max_calibration_error", gates.max_calibration_error, None),
        _worst_stratum(evaluation, evidence, gates.max_stratum_calibration_error),
        GateResult(
            "min_index_recall",
            "share of the exact answer that the index finds",
            ">=",
            gates.min_index_recall,
            float(index_recalls.min()),
            len(smaller),
            noise(smaller),
        ),
        GateResult(
            "max_empty_rate",
            "share of empty lists at the default knob",
            "<=",
            gates.max_empty_rate,
            evaluation.default_knob.groups["overall"].empty,
            queries,
            noise(-evidence.empty.astype(np.float64)),
        ),
    ]
    least = gates.min_baseline_recall_lift
    if evaluation.baseline and evidence.baseline_recall is not None and least is not None:
        results.append(
            _lift(
                "min_baseline_recall_lift",
                f"gain in recall over the last blessed model at k = {middle}",
                least,
                _figures(evaluation, default_result(evaluation.baseline.policies), "recall"),
                np.stack([evidence.recall[:, 0], evidence.baseline_recall], axis=1),
            )
        )
    if gates.max_p99_milliseconds is not None:
        results.append(
            GateResult(
                "max_p99_milliseconds",
                "time of a search, p99, one query per call",
                "<=",
                gates.max_p99_milliseconds,
                evaluation.latency[0].p99_ms,
            )
        )
    return results


def _figures(evaluation: ModelEvaluation, base: PolicyResult, measure: str) -> tuple[float, float]:
    policies = default_result(evaluation.policies), base
    ours, theirs = (getattr(each.at[evaluation.middle_k]["overall"], measure) for each in policies)
    return ours, theirs


def _lift(
    name: str, title: str, bound: float, figures: tuple[float, float], values: np.ndarray
) -> GateResult:
    """A relative gain; `figures` are means of `values` [Q, 2], ours and theirs.

    The noise of the gain is that of the mean of ours - (1 + bound) * theirs, divided by theirs.
    """
    ours, theirs = figures[0], max(figures[1], 1e-9)
    chance = noise(values[:, 0] - (1 + bound) * values[:, 1])
    return GateResult(
        name, title, ">=", bound, (ours - theirs) / theirs, len(values), chance / theirs
    )


def _error(
    evaluation: ModelEvaluation,
    evidence: Evidence,
    name: str,
    bound: float,
    stratum: str | None,
    confidence: float = CONFIDENCE,
) -> GateResult:
    """The mean error of the recall knob, of all queries or of one stratum.

    What is expected was itself measured, on calibrate queries from the same distribution. The
    difference of two means of n and m queries varies by the root of 1 / n + 1 / m.
    """
    group = stratum or "overall"
    recalls = evidence.recalls
    if stratum is not None:
        recalls = recalls[evidence.strata == STRATA.index(stratum)]
    found, queries = evaluation.calibration, len(recalls)
    both = np.sqrt(1 + queries / max(found.queries.get(group, 1), 1))
    return GateResult(
        name,
        "error of the recall knob" + (", worst stratum" if stratum else ""),
        "<=",
        bound,
        found.error[group],
        queries,
        float(both * error_noise(recalls, confidence)),
        stratum,
    )


def _worst_stratum(evaluation: ModelEvaluation, evidence: Evidence, bound: float) -> GateResult:
    """The stratum with the largest error, or with the largest that is significant.

    One of three strata exceeds its own 95% noise more often than in 5% of cases, so the allowed
    share of errors is divided among them.
    """
    name = "max_stratum_calibration_error"
    strata = [each for each in STRATA if each in evaluation.calibration.error]
    confidence = 1 - (1 - CONFIDENCE) / max(len(strata), 1)
    results = [_error(evaluation, evidence, name, bound, stratum, confidence) for stratum in strata]
    return max(results, key=lambda gate: (gate.state == "failed", gate.shortfall))


def failures(gates: list[GateResult], state: str = "failed") -> list[str]:
    """What was found, with both numbers, for each gate that failed or is in another `state`."""
    return [gate.finding for gate in gates if gate.state == state]
