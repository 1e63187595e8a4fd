"""A whole evaluation, made by hand, with plausible numbers."""

import copy
from dataclasses import replace

from pebr_tf.metrics.results import (
    BudgetResult,
    CalibrationResult,
    CountHistogram,
    Curve,
    ExampleQuery,
    KnobResult,
    ListSummary,
    PolicyResult,
)
from pebr_tf.release.evaluation import (
    DataSummary,
    GateResult,
    IndexResult,
    LatencyResult,
    ModelEvaluation,
    ModelSummary,
)

AVERAGE_K = [50, 150, 500]
# Name, title, and precision and recall at each average k.
POLICIES = [
    ("level", "level, T = 0.6", [(0.187, 0.762), (0.100, 0.851), (0.035, 0.924)]),
    ("level_sample", "level from the head", [(0.171, 0.741), (0.095, 0.832), (0.034, 0.915)]),
    ("top_k", "top k", [(0.124, 0.688), (0.070, 0.795), (0.031, 0.904)]),
    ("score", "one cosine for all", [(0.206, 0.551), (0.121, 0.699), (0.056, 0.854)]),
    ("gap", "gap to the best cosine", [(0.219, 0.701), (0.112, 0.806), (0.036, 0.906)]),
    ("cdf", "literal pEBR (CDF)", [(0.152, 0.314), (0.138, 0.483), (0.115, 0.750)]),
    ("nucleus", "nucleus", [(0.160, 0.722), (0.083, 0.818), (0.033, 0.910)]),
    ("adapter", "cosine adapter", [(0.169, 0.729), (0.088, 0.829), (0.034, 0.917)]),
    ("oracle", "oracle", [(0.402, 0.905), (0.168, 0.948), (0.052, 0.981)]),
]
# How a stratum differs from all queries: factor of precision, recall less, factor of k.
STRATA = {"head": (2.4, 0.035, 3.6), "torso": (1.3, 0.012, 1.4), "tail": (0.6, -0.015, 0.5)}
EMPTY = {"score": 0.031, "cdf": 0.27}


def figures(precision, recall, average, empty=0.0):
    return ListSummary(
        precision=round(precision, 6),
        recall=round(recall, 6),
        micro_precision=round(0.7 * precision, 6),
        micro_recall=round(0.93 * recall, 6),
        average=average,
        empty=empty,
        truncated=0.0,
        p10=round(0.06 * average),
        p50=round(0.4 * average),
        p90=round(2.3 * average),
        p99=round(9.1 * average),
    )


def policy(name, title, pairs, less):
    at = {}
    for k, (precision, recall) in zip(AVERAGE_K, pairs, strict=True):
        empty = EMPTY.get(name, 0.0) * 50 / k
        at[k] = {"overall": figures(precision * (1 - less), recall - less, k - 0.02, empty)}
        for stratum, (factor, drop, width) in STRATA.items():
            of_stratum = min(precision * (1 - less) * factor, 1)
            at[k][stratum] = figures(of_stratum, recall - less - drop, k * width, empty)
    precisions, recalls = zip(*pairs, (pairs[-1][0] / 4, pairs[-1][1]), strict=True)
    curve = Curve([*AVERAGE_K, 2000], list(precisions), list(recalls))
    return PolicyResult(name, title, name == "level", at, curve)


def calibration():
    """The tail falls short a little."""
    requested = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    strays = {"overall": 0.006, "head": 0.021, "torso": 0.011, "tail": -0.028}
    return CalibrationResult(
        requested=requested,
        expected={group: list(requested) for group in strays},
        measured={
            group: [
                round(a + stray * (1.35 - a) * (1 + 0.3 * (-1) ** i), 4)
                for i, a in enumerate(requested)
            ]
            for group, stray in strays.items()
        },
        average=[6.1, 8.4, 12.0, 17.3, 26.2, 41.5, 70.8, 136.4, 301.7, 1043.2],
        error={"overall": 0.0041, "head": 0.0136, "torso": 0.0071, "tail": 0.0182},
        queries={"overall": 2404, "head": 150, "torso": 570, "tail": 1684},
    )


EXAMPLES = [
    ("huawei phone", "head", 1873, 412, 398, 0.4127),
    ("usb-c cable 2m", "torso", 118, 31, 30, 0.5512),
    ("手机壳 透明", "tail", 1, 1, 0, 0.8020),
]
GATES = [
    ("min_precision_lift", "gain in precision over top_k", ">=", 0.0, 0.4286, 2391, 0.03),
    ("min_recall_lift", "gain in recall over top_k", ">=", 0.0, 0.0704, 2391, 0.009),
    ("max_calibration_error", "error of the knob", "<=", 0.03, 0.0041, 2391, 0.01),
    (
        *("max_stratum_calibration_error", "error of the recall knob, worst stratum"),
        *("<=", 0.05, 0.0182, 143, 0.04, "head"),
    ),
    ("min_index_recall", "share found", ">=", 0.98, 0.9941, 500, 0.002),
    ("max_empty_rate", "share of empty lists", "<=", 0.01, 0.0008, 2391, 0.001),
]


def example():
    """A blessed evaluation with a previous release."""
    evaluation = ModelEvaluation(
        model=ModelSummary("beta_nce", False, "beta", 128, 3000, "level", 0.6),
        data=DataSummary(
            items=20000,
            train_clicks=239655,
            calibrate_queries=2404,
            test_queries=2391,
            test_clicks=30112,
            strata={"head": 143, "torso": 562, "tail": 1686},
            span=7,
        ),
        average_k=list(AVERAGE_K),
        policies=[policy(*entry, 0.0) for entry in POLICIES],
        unseen=[policy(*entry, 0.031) for entry in POLICIES],
        calibration=calibration(),
        default_knob=KnobResult(
            "recall",
            0.9,
            {
                "overall": replace(figures(0.088, 0.902, 301.7, 0.0008), p50=42, p99=4120),
                "head": figures(0.211, 0.909, 1204.0),
                "torso": figures(0.114, 0.905, 402.5),
                "tail": figures(0.051, 0.887, 91.6),
            },
            (0.893, 0.911),
            496,
            0.871,
        ),
        budget=BudgetResult(list(AVERAGE_K), [51.2, 147.8, 512.9]),
        counts=CountHistogram(
            [0, *(2**power for power in range(15))],
            [2, 61, 152, 258, 317, 389, 402, 311, 221, 126, 73, 42, 25, 12, 0],
        ),
        examples=[ExampleQuery(*entry) for entry in EXAMPLES],
        index=IndexResult("scann", 20000, 0.9941, 0.9968, 500),
        latency=[LatencyResult(1, 1.83, 4.214, 512.4), LatencyResult(32, 14.2, 31.7, 2190.8)],
        gates=[GateResult(*entry) for entry in GATES],
    )
    previous = copy.deepcopy(evaluation).as_previous(1731)
    for entry, (_, _, pairs) in zip(previous.policies, POLICIES, strict=True):
        for k, (precision, recall) in zip(AVERAGE_K, pairs, strict=True):
            change(entry, k, precision=precision + 0.004, recall=recall - 0.013)
    previous.calibration.error.update(overall=0.0093, tail=0.0182)
    previous.latency[0] = replace(previous.latency[0], p99_ms=3.905)
    return replace(evaluation, previous=previous)


def change(policy, k, **figures):
    """Replaces figures over all queries at one average."""
    policy.at[k]["overall"] = replace(policy.at[k]["overall"], **figures)


def with_queries(*texts):
    found = example()
    return replace(found, examples=[replace(found.examples[0], query=text) for text in texts])


def rejected():
    """The example with a recall below that of top_k, and so not blessed."""
    evaluation = example()
    change(evaluation.policies[0], 150, recall=0.795 * (1 - 0.012))
    evaluation.gates[1] = replace(evaluation.gates[1], received=-0.012)
    return evaluation
