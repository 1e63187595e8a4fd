"""Gates by hand, on both sides of each requirement, with few queries and with many."""

from dataclasses import replace

import numpy as np
import pytest
from evaluation_example import change, example

from pebr_tf.config import Gates
from pebr_tf.metrics.significance import Evidence, error_noise
from pebr_tf.release.evaluation import BaselineResult, GateResult
from pebr_tf.release.gates import check_gates, failures

MANY, FEW, FAST = 10_000, 24, Gates(max_p99_milliseconds=10)


def around(mean, queries):
    """[Q] shares 0 and 1 in random order, with this mean."""
    generator = np.random.default_rng(int(1e6 * mean))
    return generator.permutation(np.where(np.arange(queries) < round(mean * queries), 1.0, 0.0))


def evaluation(precision=0.12, recall=0.66, error=0.02, worst=0.04, found=0.99, empty=0.0, p99=9.0):
    """top_k has precision .1 and recall .6."""
    content = example()
    change(content.policies[0], 150, precision=precision, recall=recall)
    change(content.policies[2], 150, precision=0.1, recall=0.6)
    content.calibration.error.clear()
    content.calibration.error.update(overall=error, head=worst, tail=0.0)
    content.calibration.queries.update(overall=10_000, head=5_000, tail=5_000)
    overall = content.default_knob.groups["overall"]
    content.default_knob.groups["overall"] = replace(overall, empty=empty)
    content.latency[0] = replace(content.latency[0], p99_ms=p99)
    return content


def evidence(queries=MANY, precision=0.12, recall=0.66, found=0.99, empty=0.0, gain=0.5, **_):
    """As many head queries as tail queries."""
    both = [
        np.stack([around(ours, queries), around(theirs, queries)], axis=1)
        for ours, theirs in ((precision, 0.1), (recall, 0.6))
    ]
    return Evidence(
        strata=np.arange(queries) % 2 * 2,
        precision=both[0],
        recall=both[1],
        gain=around(gain, queries),
        recalls=np.stack([around(0.5, queries), around(0.9, queries)], axis=1),
        empty=around(empty, queries) > 0,
        index_recall=np.stack([np.ones(queries), around(found, queries)], axis=1),
    )


def checked(queries=MANY, gates=FAST, **figures):
    others = {name: value for name, value in figures.items() if name != "gain"}
    return check_gates(evaluation(**others), evidence(queries, **figures), gates)


def test_a_model_that_passes_all():
    gates = checked(gates=Gates())
    assert " ".join(gate.name for gate in gates) == (
        "min_precision_lift min_recall_lift min_query_gain max_calibration_error "
        "max_stratum_calibration_error min_index_recall max_empty_rate"
    )
    assert all(gate.state == "passed" for gate in gates)
    assert failures(gates) == []
    assert gates[1].received == pytest.approx(0.1)
    assert (gates[1].required, gates[1].queries) == (">= 0.00", MANY)
    assert (gates[4].stratum, gates[4].measured_on) == ("head", "5,000 head queries")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"precision": 0.09},
            "gain in precision over top_k at k = 150 is -0.100 for 10,000 queries, below the "
            "required 0.00 (min_precision_lift)",
        ),
        ({"recall": 0.588}, "is -0.0200 for 10,000 queries, below the required 0.00 (min_recall"),
        ({"gain": 0.0}, "is 0.000 for 10,000 queries, below the required 0.0101 (min_query"),
        ({"error": 0.051}, "is 0.0510 for 10,000 queries, above the allowed 0.03 (max_calibration"),
        ({"worst": 0.09}, "worst stratum is 0.0900 for 5,000 head queries, above the allowed 0.05"),
        ({"found": 0.97}, "is 0.970 for 10,000 queries, below the required 0.98 (min_index_recall"),
        ({"empty": 0.02}, "is 0.0200 for 10,000 queries, above the allowed 0.01 (max_empty_rate)"),
        ({"p99": 11.0}, "is 11.0, above the allowed 10.00 (max_p99_milliseconds)"),
    ],
)
def test_each_gate_fails_alone_with_both_numbers(change, text):
    (sentence,) = failures(checked(**change))
    assert text in sentence


@pytest.mark.parametrize(
    "change",
    [
        *({"precision": 1 / 24}, {"recall": 14 / 24}, {"error": 0.051}, {"worst": 0.09}),
        *({"found": 23 / 24}, {"empty": 1 / 24}),
    ],
)
def test_the_same_shortfalls_are_undecided_with_few_queries(change):
    gates = checked(FEW, **change)
    assert failures(gates) == []
    (sentence,) = failures(gates, "undecided")
    assert sentence.endswith(", which so few cannot decide")


def test_a_model_that_few_queries_cannot_tell_from_a_broken_one_fails():
    """One query of 24 gains: chance alone gives as much."""
    (sentence,) = failures(checked(FEW, gain=1 / 24))
    assert "over another query's list at k = 50 is 0.0417 for 24 queries, below the re" in sentence
    assert failures(checked(FEW, gates=Gates(min_query_gain=None), gain=1 / 24)) == []


def test_the_chance_of_an_error_is_divided_among_the_strata():
    """Of two strata, each may fail by chance in 2.5% of cases, not in 5%."""
    (gate,) = (each for each in checked() if each.stratum)
    # As many calibrate queries as test queries.
    expected = 2**0.5 * error_noise(evidence().recalls[::2], 0.975)
    assert gate.noise == pytest.approx(expected)


def test_how_many_queries_would_decide():
    gate = GateResult("name", "title", ">=", 0.1, 0.08, queries=100, noise=0.04)
    assert (gate.state, gate.queries_to_decide) == ("undecided", 400)
    assert replace(gate, noise=0.019).state == "failed"
    assert replace(gate, received=0.1).state == "passed"
    assert replace(gate, sign="<=", received=0.12).state == "undecided"


@pytest.mark.parametrize(
    ("recall", "gates", "sentences"),
    [
        (0.69, Gates(), 0),
        (0.75, Gates(), 1),
        (0.75, Gates(min_baseline_recall_lift=None), 0),
        (None, Gates(min_baseline_recall_lift=9), 0),
    ],
)
def test_the_last_blessed_model_is_to_be_reached(recall, gates, sentences):
    content, found = evaluation(), evidence()
    if recall is not None:
        level, top_k = (example().policies[index] for index in (0, 2))
        change(level, 150, recall=recall)
        change(top_k, 150, recall=0.9)
        content = replace(content, baseline=BaselineResult("model", 1, 0.6, [top_k, level]))
        found = replace(found, baseline_recall=around(recall, MANY))
    received = failures(check_gates(content, found, gates))
    assert len(received) == sentences
    assert all("-0.120 for 10,000 queries, below the required -0.05" in each for each in received)
